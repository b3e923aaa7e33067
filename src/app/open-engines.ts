// Opens the engines that runs are executed with: the local one, the OpenClaw gateway if there is
// one, and those of the agents whose definition names a remote agent.

import type { Catalogue } from '../agents/catalogue.ts'
import { CircuitBreaker, withBreaker } from '../engines/circuit-breaker.ts'
import { createEngineRouter } from '../engines/engine-router.ts'
import type { Engines, EngineState, TurnEngine } from '../engines/engine.ts'
import { createLocalEngine } from '../engines/local/local-engine.ts'
import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import type { Models } from '../models/model.ts'
import type { Config } from './config.ts'
import { RemoteAgents } from './remote-agents.ts'

type EngineDependencies = {
  catalogue: Catalogue
  models: Models
  environment: Record<string, string | undefined>
  clock: Clock
  ids: Ids
  version: string
  /** A request to this model is sent again. */
  onRetry: (model: string) => void
}

export type OpenEngines = {
  router: Engines
  localName: string
  /** The engines besides the local one that every agent can use. */
  otherNames: string[]
  states(): { name: string; state: EngineState }[]
}

export async function openEngines(config: Config, dependencies: EngineDependencies): Promise<OpenEngines> {
  const { catalogue, models, environment, clock, onRetry } = dependencies
  const local = createLocalEngine({
    models,
    clock,
    random: Math.random,
    retries: config.limits.providerRetries,
    retryBudgetMs: config.limits.providerRetryBudgetMs,
    onRetry,
  })
  const remoteAgents = new RemoteAgents({ catalogue, environment, clock })
  const openclaw = await openOpenclaw(config, dependencies)
  const router = createEngineRouter({
    local,
    others: openclaw === undefined ? [] : [openclaw.engine],
    defaultName: config.engine,
    fallback: config.engineFallback,
    engineOfAgent: (agentId) => remoteAgents.engineOfAgent(agentId),
    openEngine: (name) => remoteAgents.open(name),
  })
  return {
    router,
    localName: local.name,
    otherNames: openclaw === undefined ? [] : [openclaw.engine.name],
    states: () => [
      { name: local.name, state: 'available' },
      ...(openclaw === undefined ? [] : [{ name: openclaw.engine.name, state: openclaw.breaker.state }]),
      ...remoteAgents.states(),
    ],
  }
}

/**
 * Undefined if this server has no gateway; then its code is not loaded. If the gateway refuses the WebSocket, the engine asks it over
 * HTTP, as a chat completion.
 */
async function openOpenclaw(
  { openclawUrl: url, openclawToken: token }: Config,
  { clock, ids, version }: EngineDependencies,
): Promise<{ engine: TurnEngine; breaker: CircuitBreaker } | undefined> {
  if (url === null) return undefined
  const [{ createOpenclawEngine, openclawUrl }, { createOpenAiClient }] = await Promise.all([
    import('../engines/openclaw/openclaw-engine.ts'),
    import('../models/openai-client.ts'),
  ])
  const breaker = new CircuitBreaker(clock)
  const chatCompletions = createOpenAiClient({
    baseUrl: `${openclawUrl(url, 'http')}/v1`,
    apiKey: token ?? undefined,
    provider: 'openclaw',
    keyVariable: 'OPENCLAW_TOKEN',
    ids,
    clock,
  })
  const engine = createOpenclawEngine({ url, token: token ?? undefined, version, clock, chatCompletions })
  return { engine: withBreaker(engine, breaker), breaker }
}

// The engines of agents whose definition names a remote agent: one engine and one circuit
// breaker per agent, opened when the agent is used for the first time. They read the
// definition at each turn, so that a changed url or header counts from the next turn on.

import type { AgentCard } from '../agents/agent-definition.ts'
import type { Catalogue } from '../agents/catalogue.ts'
import { CircuitBreaker, withBreaker } from '../engines/circuit-breaker.ts'
import type { EngineState, TurnEngine } from '../engines/engine.ts'
import { type AgUiSettings, createAgUiEngine } from '../engines/ag-ui/ag-ui-engine.ts'
import { type HeaderEnvironment, headersProblem } from '../engines/ag-ui/headers.ts'
import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'

const prefix = 'ag-ui:'

/** The reason why the agent cannot be used on this server: a variable of its headers is not set. */
export function remoteAgentProblem({ engine }: AgentCard, environment: HeaderEnvironment): string | null {
  if (typeof engine !== 'object') return null
  const problem = headersProblem(engine.headers, environment)
  return problem === null ? null : `engine.headers: ${problem}`
}

/** The name of the engine of an agent whose definition names a remote agent. */
export function remoteEngineOf({ id, engine }: AgentCard): string | undefined {
  return typeof engine === 'object' ? `${prefix}${id}` : undefined
}

export class RemoteAgents {
  private readonly dependencies: { catalogue: Catalogue; environment: HeaderEnvironment; clock: Clock }
  private readonly opened = new Map<
    string,
    { url: string; plain: TurnEngine; engine: TurnEngine; breaker: CircuitBreaker }
  >()

  constructor(dependencies: { catalogue: Catalogue; environment: HeaderEnvironment; clock: Clock }) {
    this.dependencies = dependencies
  }

  /** The engine that the definition of the agent names; undefined if it names none. */
  engineOfAgent(agentId: string): string | undefined {
    const { card } = this.dependencies.catalogue.get(agentId)
    return typeof card.engine === 'object' ? remoteEngineOf(card) : card.engine
  }

  /** Undefined if no agent has an engine of this name. */
  open(name: string): TurnEngine | undefined {
    const settings = this.settingsOf(name)
    if (settings === undefined) return undefined
    const { clock, environment } = this.dependencies
    const known = this.opened.get(name)
    if (known?.url === settings.url) return known.engine
    // Connections of turns under way stay with the engine; a new url gets a new breaker.
    const plain =
      known?.plain ??
      createAgUiEngine({ name, environment, clock, settings: () => this.settingsOf(name) ?? gone(name) })
    const breaker = new CircuitBreaker(clock)
    const engine = withBreaker(plain, breaker)
    this.opened.set(name, { url: settings.url, plain, engine, breaker })
    return engine
  }

  /** Those that were used since the start of the server. */
  states(): { name: string; state: EngineState }[] {
    return [...this.opened].map(([name, { breaker }]) => ({ name, state: breaker.state }))
  }

  private settingsOf(name: string): AgUiSettings | undefined {
    if (!name.startsWith(prefix)) return undefined
    try {
      const { engine } = this.dependencies.catalogue.lastWorking(name.slice(prefix.length)).card
      return typeof engine === 'object' ? engine : undefined
    } catch (error) {
      // The agent was removed or never existed.
      if (error instanceof AppError) return undefined
      throw error
    }
  }
}

function gone(name: string): never {
  throw new AppError('engine_unavailable', `The agent of the engine ${name} no longer names a remote agent.`)
}

// Chooses the engine of a run: the one that the request names, else the one of the agent,
// else the server's default. The choice is part of the spec of the run and never changes,
// except by the fallback, which is journaled.

import { AppError } from '../errors/app-error.ts'
import type { Engine, Engines } from './engine.ts'

export type EngineRouterOptions = {
  /** Always present; the only engine that jobs and one-shot agents use. */
  local: Engine
  others: readonly Engine[]
  defaultName: string
  /** `local`: runs whose engine is not available go to the local engine. */
  fallback: 'local' | 'none'
  /** The name of the engine that an agent's definition asks for. */
  engineOfAgent(agentId: string): string | undefined
  /** Engines that are not known at start-up, because an agent's definition describes them. */
  openEngine?(name: string): Engine | undefined
}

export function createEngineRouter(options: EngineRouterOptions): Engines {
  const { local, others, defaultName, fallback } = options
  const byName = new Map([local, ...others].map((engine) => [engine.name, engine]))
  const find = (name: string) => byName.get(name) ?? options.openEngine?.(name)
  const get = (name: string) => {
    const engine = find(name)
    if (engine === undefined) {
      throw new AppError(
        'engine_unknown',
        `This server has no engine ${JSON.stringify(name)}; use one of: ${[...byName.keys()].join(', ')}.`,
      )
    }
    return engine
  }
  return {
    defaultName: get(defaultName).name,
    get,
    resolve: (name, agentId) => get(name ?? options.engineOfAgent(agentId) ?? defaultName).name,
    fallbackOf: (name) => (fallback === 'local' && name !== local.name ? local.name : undefined),
  }
}

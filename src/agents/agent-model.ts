// The model of an agent, for requests that name none. An agent whose model has no provider is unavailable: the
// caller did not choose the model, so the request is not at fault.

import { AppError } from '../errors/app-error.ts'
import type { Models } from '../models/model.ts'
import { type ModelChoice, resolveChain } from '../journal/model-chain.ts'
import type { AgentCard } from './agent-definition.ts'

/** Throws `agent_unavailable` with the reason. */
export function modelsOfAgent(
  card: Pick<AgentCard, 'id' | 'model'>,
  models: Pick<Models, 'resolve'>,
): ReturnType<typeof resolveChain> {
  try {
    return resolveChain(card.model, models)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new AppError('agent_unavailable', `The agent ${card.id} cannot be used: ${error.message}`, { cause: error })
  }
}

/** Why the server cannot use the model, and what to do; null if it can. */
export function modelProblem(model: ModelChoice | undefined, models: Pick<Models, 'resolve'>): string | null {
  try {
    resolveChain(model, models)
    return null
  } catch (error) {
    if (error instanceof AppError) return error.message
    throw error
  }
}

// The model of an agent, for requests that name none. An agent whose model has no provider is unavailable: the
// caller did not choose the model, so the request is not at fault.

import { AppError } from '../errors/app-error.ts'
import type { Models } from '../models/model.ts'
import type { AgentCard } from './agent-definition.ts'

/** Throws `agent_unavailable` with the reason. */
export function modelOfAgent(card: Pick<AgentCard, 'id' | 'model'>, models: Pick<Models, 'resolve'>): string {
  try {
    return models.resolve(card.model)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new AppError('agent_unavailable', `The agent ${card.id} cannot be used: ${error.message}`, { cause: error })
  }
}

/** Why the server cannot use the model, and what to do; null if it can. */
export function modelProblem(model: string | undefined, models: Pick<Models, 'resolve'>): string | null {
  try {
    models.resolve(model)
    return null
  } catch (error) {
    if (error instanceof AppError) return error.message
    throw error
  }
}

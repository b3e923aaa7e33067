// The agents that a person can talk to, for the APIs that list agents as such. Agents whose card names
// the endpoint of one-shot runs answer one question over collected data; they are not listed.

import type { AgentCard } from '../agents/agent-definition.ts'
import { modelProblem } from '../agents/agent-model.ts'
import type { Services } from './routes.ts'

const oneShotEndpoint = '/v1/agent/run'

/** The cards of those that can be used now, in the order of the catalogue. */
export function chatAgents({ catalogue, models }: Pick<Services, 'catalogue' | 'models'>): AgentCard[] {
  return catalogue.list().flatMap(({ definition }) => {
    if (definition === null || definition.card.endpoint === oneShotEndpoint) return []
    return modelProblem(definition.card.model, models) === null ? [definition.card] : []
  })
}

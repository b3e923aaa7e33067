// The agents of this server, from one or more folders of definitions (read-agents.ts). The whole list is replaced
// at once when definitions are read again, so a reader never sees half of a change.
//
// A definition may break while the server runs. New runs are then refused with the reason. Runs under way keep
// the last definition that worked in this process.

import { AppError } from '../errors/app-error.ts'
import type { AgentDefinition } from './agent-definition.ts'
import { type AgentListing, type AgentProblem, type AgentsFound, readAgents } from './read-agents.ts'

export const chatAgentId = 'chat_conversation'

export interface Catalogue {
  /** For a new run. Throws `agent_not_found`, or `agent_unavailable` with the reason. */
  get(agentId: string): AgentDefinition
  /** For a run under way: the definition, or the last one that worked. Throws as `get` does if there is none. */
  lastWorking(agentId: string): AgentDefinition
  /** The built-in agents in a fixed order, then all others by id. */
  list(): readonly AgentListing[]
}

export interface ReloadableCatalogue extends Catalogue {
  /** Throws and changes nothing if a folder of definitions cannot be read at all. */
  reload(): Promise<AgentsFound>
  /** What the last reading found. */
  readonly found: AgentsFound
}

/**
 * `directories` hold one folder per agent; an agent of a later directory replaces the agent with the same id of an earlier
 * one. The server does not start without a chat agent that works; all others may be broken.
 */
export async function readCatalogue(
  directories: readonly string[],
  problemOf?: AgentProblem,
): Promise<ReloadableCatalogue> {
  let found = await readAgents(directories, problemOf)
  const chat = found.listings.find(({ id }) => id === chatAgentId)
  if (chat?.definition == null) {
    const reason = chat?.error ?? `there is no such folder in ${directories.join(' or ')}`
    throw new AppError('config_invalid', `The agent ${chatAgentId} cannot be used: ${reason}.`)
  }
  const working = new Map<string, AgentDefinition>()
  const remember = () => {
    for (const { id, definition } of found.listings) if (definition !== null) working.set(id, definition)
  }
  remember()

  const get = (agentId: string): AgentDefinition => {
    const listing = found.listings.find(({ id }) => id === agentId)
    if (listing === undefined)
      throw new AppError(
        'agent_not_found',
        `There is no agent ${JSON.stringify(agentId)}. GET /v1/agent/list lists those that there are.`,
      )
    if (listing.definition === null)
      throw new AppError('agent_unavailable', `The agent ${agentId} cannot be used: ${listing.error}.`)
    return listing.definition
  }

  return {
    get,
    lastWorking(agentId) {
      const current = found.listings.find(({ id }) => id === agentId)?.definition
      return current ?? working.get(agentId) ?? get(agentId)
    },
    list: () => found.listings,
    get found() {
      return found
    },
    async reload() {
      found = await readAgents(directories, problemOf)
      remember()
      return found
    },
  }
}

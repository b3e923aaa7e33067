// The agents of this server: every folder of the agents directory, read once at start-up.
// The server does not start without a valid chat agent; other agents may be broken.

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../errors/app-error.ts'
import type { AgentDefinition } from './agent-definition.ts'
import { readDefinition } from './read-definition.ts'

export const chatAgentId = 'chat_conversation'

export type AgentListing = { id: string; definition: AgentDefinition | null; error: string | null }

export interface Catalogue {
  /** Throws `agent_not_found`. */
  get(agentId: string): AgentDefinition
  list(): AgentListing[]
}

export async function readCatalogue(directory: string): Promise<Catalogue> {
  let names: string[]
  try {
    names = (await readdir(directory, { withFileTypes: true }))
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
  } catch (cause) {
    throw new AppError(
      'config_invalid',
      `The agents folder ${directory} cannot be read: set POLYLOG_AGENTS_DIR to a folder with agent definitions.`,
      { cause },
    )
  }
  const listings: AgentListing[] = []
  for (const name of names.toSorted()) {
    try {
      const definition = await readDefinition(join(directory, name))
      listings.push({ id: definition.card.id, definition, error: null })
    } catch (error) {
      listings.push({ id: name, definition: null, error: error instanceof Error ? error.message : String(error) })
    }
  }
  const byId = new Map(
    listings.flatMap((listing) => (listing.definition === null ? [] : [[listing.id, listing.definition] as const])),
  )
  if (!byId.has(chatAgentId)) {
    const reason = listings.find((listing) => listing.id === chatAgentId)?.error ?? 'there is no such folder'
    throw new AppError('config_invalid', `The agent ${chatAgentId} in ${directory} cannot be used: ${reason}.`)
  }
  return {
    get(agentId) {
      const definition = byId.get(agentId)
      if (definition === undefined)
        throw new AppError('agent_not_found', `There is no agent ${JSON.stringify(agentId)}.`)
      return definition
    },
    list: () => listings,
  }
}

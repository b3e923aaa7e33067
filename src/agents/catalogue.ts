// The agents of this server: every folder of the agents directory, read once at start-up.
// The server does not start without a valid chat agent; other agents may be broken.

import { readdir, readFile } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import Mustache from 'mustache'
import { AppError } from '../errors/app-error.ts'
import { type AgentDefinition, agentCard } from './agent-definition.ts'

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

async function readDefinition(folder: string): Promise<AgentDefinition> {
  const parsed = agentCard.safeParse(JSON.parse(await readFile(join(folder, 'agent.json'), 'utf8')))
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw new Error(`agent.json: ${issue?.path.join('.')} ${issue?.message}`)
  }
  const card = parsed.data
  const read = (path: string) => readFile(inside(folder, path), 'utf8')
  return {
    card,
    systemTemplate: await read(card.prompt.systemTemplate),
    userTemplate: card.prompt.userTemplate === undefined ? '{{{input}}}' : await read(card.prompt.userTemplate),
    defaults:
      card.prompt.defaultsFile === undefined
        ? {}
        : (JSON.parse(await read(card.prompt.defaultsFile)) as Record<string, unknown>),
  }
}

/** Throws if the path is outside the folder: a definition may only use its own files. */
function inside(folder: string, path: string): string {
  const full = resolve(folder, path)
  if (!full.startsWith(resolve(folder) + sep)) throw new Error(`${path} lies outside the agent's folder`)
  return full
}

/** Does not escape HTML, because the result is plain text for a model. */
export function renderTemplate(template: string, values: Record<string, unknown>): string {
  return Mustache.render(template, values, {}, { escape: String }).trim()
}

// Reads all agent definitions of some folders. A definition that cannot be used is listed with the reason and
// hurts no other one. Counts and sizes are bounded, because users point this at folders of their own.

import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../errors/app-error.ts'
import type { AgentCard, AgentDefinition } from './agent-definition.ts'
import { DefinitionFiles } from './definition-files.ts'
import { BrokenDefinition, readDefinition } from './read-definition.ts'

/** Of one directory. Further folders are not read, and a warning says so. */
export const agentFoldersMax = 200
/** Of all definitions together. The list of agents shows their schemas, and must not grow without bound. */
const agentsBytesMax = 8 * 1024 * 1024

export type AgentListing = {
  id: string
  /** Null if the agent cannot be used. */
  definition: AgentDefinition | null
  /** What agent.json says, if at least that could be read. */
  card: AgentCard | null
  /** Why the agent cannot be used, and what to do; null if it can. */
  error: string | null
}

export type AgentsFound = {
  listings: AgentListing[]
  /** Problems that belong to no single agent. */
  warnings: string[]
  /** Every directory whose change may change the result. */
  directories: ReadonlySet<string>
}

/** The order in which a list shows the built-in agents. */
const builtInOrder = ['chat_conversation', 'archive_brief', 'title_summary', 'network_action', 'contact_insight']

/** The agents that come with the program. */
export const builtInAgents: ReadonlySet<string> = new Set(builtInOrder)

/** Why an agent with a correct definition cannot be used on this server; null if it can. */
export type AgentProblem = (card: AgentCard) => string | null

/** An agent of a later directory replaces the agent with the same id of an earlier one. */
export async function readAgents(
  directories: readonly string[],
  problemOf: AgentProblem = () => null,
): Promise<AgentsFound> {
  const byId = new Map<string, AgentListing>()
  const warnings: string[] = []
  const watched = new Set<string>()
  let bytes = 0
  for (const directory of directories) {
    watched.add(directory)
    const names = await folderNames(directory)
    if (names.length > agentFoldersMax) {
      warnings.push(
        `${directory} has ${names.length} folders; only the first ${agentFoldersMax} by name are read as agents.`,
      )
    }
    const found: { folder: string; listing: AgentListing }[] = []
    for (const folder of names.slice(0, agentFoldersMax)) {
      const files = new DefinitionFiles(join(directory, folder))
      const listing = await readListing(folder, files, problemOf)
      bytes += files.bytes
      found.push({ folder, listing: bytes > agentsBytesMax ? withoutRoom(listing) : listing })
      for (const used of files.directories) watched.add(used)
    }
    for (const listing of withoutDuplicates(found)) byId.set(listing.id, listing)
  }
  return { listings: [...byId.values()].toSorted(inListOrder), warnings, directories: watched }
}

/** A link to a folder counts, because the operator placed it. Hidden folders (`.git`) are skipped. */
async function folderNames(directory: string): Promise<string[]> {
  try {
    const names: string[] = []
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      if (entry.name.startsWith('.')) continue
      const isFolder =
        entry.isDirectory() || (entry.isSymbolicLink() && (await isDirectory(join(directory, entry.name))))
      if (isFolder) names.push(entry.name)
    }
    return names.toSorted()
  } catch (cause) {
    throw new AppError(
      'config_invalid',
      `The agents folder ${directory} cannot be read; set POLYLOG_AGENTS_DIR to a folder with agent definitions.`,
      { cause },
    )
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )
}

async function readListing(folder: string, files: DefinitionFiles, problemOf: AgentProblem): Promise<AgentListing> {
  try {
    const definition = await readDefinition(files)
    const problem = problemOf(definition.card)
    if (problem !== null) throw new BrokenDefinition(problem, definition.card)
    return { id: definition.card.id, definition, card: definition.card, error: null }
  } catch (error) {
    const card = error instanceof BrokenDefinition ? error.card : null
    const message = error instanceof Error ? error.message : String(error)
    // A folder without a readable id is listed by its name, which is what its author sees.
    return { id: card?.id ?? folder, definition: null, card, error: message }
  }
}

function withoutRoom({ id, card }: AgentListing): AgentListing {
  const error = `all agents together have more than ${agentsBytesMax} bytes; remove some or shorten their files`
  return { id, definition: null, card, error }
}

/** If several folders of one directory define the same agent, none of them is used: each could be the one that is meant. */
function withoutDuplicates(found: { folder: string; listing: AgentListing }[]): AgentListing[] {
  const byId = Map.groupBy(found, ({ listing }) => listing.id)
  return [...byId].map(([id, same]) => {
    const [first] = same as [(typeof found)[number]]
    if (same.length === 1) return first.listing
    const folders = same.map(({ folder }) => folder).join(' and ')
    const error = `the folders ${folders} define the same agent; change the id in agent.json of all but one`
    return { id, definition: null, card: first.listing.card, error }
  })
}

function inListOrder(a: AgentListing, b: AgentListing): number {
  return position(a) - position(b) || (a.id < b.id ? -1 : 1)
}

function position({ id }: AgentListing): number {
  const index = builtInOrder.indexOf(id)
  return index === -1 ? builtInOrder.length : index
}

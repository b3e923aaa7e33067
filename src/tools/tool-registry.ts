// All tools of this server under the names that models see: the built-in ones first, then
// those in code, then those of the MCP servers in the order of their configuration.
//
// Only the registry assigns names and checks arguments. A name is valid for every provider
// and means exactly one tool; a tool that cannot be used is listed with the reason and is
// never offered to a model.

import { AppError } from '../errors/app-error.ts'
import type { JsonValue, ToolEffect } from '../journal/event.ts'
import { defined } from '../kit/defined.ts'
import { argumentCheck, type ArgumentCheck } from '../kit/argument-check.ts'
import type { Tool, ToolListing, ToolQuestion, ToolRegistry } from './tool.ts'
import { nameTools } from './tool-names.ts'

/** `built-in`, `config` (a tool in code), or `mcp:` and the name of the server. */
export type ToolSource = 'built-in' | 'config' | `mcp:${string}`

/** A tool, or a placeholder with the reason why a tool (or a whole MCP server) is not available. */
export type ToolEntry = { source: ToolSource; tool: Tool } | { source: ToolSource; missing: MissingTool }

export type MissingTool = { name: string; description: string; effect: ToolEffect; reason: string }

export type ToolRegistryOptions = {
  close?: () => Promise<void>
  awaitSource?: ToolRegistry['awaitSource']
}

/** A registry whose tools may change, because an MCP server may be connected after the start-up. */
export type ChangingToolRegistry = ToolRegistry & { replace(entries: ToolEntry[]): void }

type RegistrySnapshot = {
  listings: ToolListing[]
  offered: Tool[]
  byName: Map<string, Tool>
  bySource: Map<string, Tool>
}

export function createToolRegistry(entries: ToolEntry[], options: ToolRegistryOptions = {}): ChangingToolRegistry {
  // Runs may hold tools of an earlier snapshot, so a check lives as long as its tool.
  const checks = new WeakMap<Tool, ArgumentCheck>()
  let current = buildSnapshot(entries, checks)

  return {
    available: () => [...current.offered],
    get: (name) => current.byName.get(name),
    find: (name, source) =>
      source === undefined ? current.byName.get(name) : current.bySource.get(JSON.stringify([source, name])),
    list: () => current.listings.map((listing) => ({ ...listing })),
    check(tool: Tool, input: JsonValue) {
      const check = checks.get(tool)
      if (check === undefined) throw new AppError('internal_error', `The tool ${tool.name} is not of this registry.`)
      return check(input) ?? tool.check?.(input) ?? null
    },
    awaitSource: async (source, signal) => {
      await options.awaitSource?.(source, signal)
    },
    replace(next) {
      current = buildSnapshot(next, checks)
    },
    close: async () => {
      await options.close?.()
    },
  }
}

function buildSnapshot(entries: ToolEntry[], checks: WeakMap<Tool, ArgumentCheck>): RegistrySnapshot {
  const names = nameTools(
    entries.map((entry) => ({ source: entry.source, name: itemOf(entry).name, isTool: 'tool' in entry })),
  )
  const listings: ToolListing[] = []
  const offered: Tool[] = []
  const byName = new Map<string, Tool>()
  const bySource = new Map<string, Tool>()

  entries.forEach((entry, position) => {
    const { name, plain, qualified, refusal } = names[position]!
    const { description, effect } = itemOf(entry)
    let reason = 'missing' in entry ? entry.missing.reason : refusal

    if ('tool' in entry && reason === null) {
      const check = argumentCheck(entry.tool.inputSchema)
      if (check.ok) {
        const tool = named(entry.tool, name, entry.source)
        offered.push(tool)
        byName.set(name, tool)
        // A name is prefixed or not depending on which other servers are connected, so a stored call may have either form.
        for (const known of [plain, name]) bySource.set(JSON.stringify([entry.source, known]), tool)
        const prefixed = JSON.stringify([entry.source, qualified])
        if (!bySource.has(prefixed)) bySource.set(prefixed, tool)
        checks.set(tool, check.check)
      } else {
        reason = `Its input schema cannot be used: ${check.reason}`
      }
    }
    const audience = 'tool' in entry ? entry.tool.audience : undefined
    listings.push({
      name,
      description,
      effect,
      available: reason === null,
      reason,
      source: entry.source,
      ...defined({ audience }),
    })
  })

  // A stored run refers to a tool by the name it had at the time. So a prefixed name stays valid after the collision is
  // gone (the other server is down now), unless another tool has that name.
  names.forEach(({ name, qualified }) => {
    const tool = byName.get(name)
    if (tool !== undefined && qualified !== null && !byName.has(qualified)) byName.set(qualified, tool)
  })
  return { listings, offered, byName, bySource }
}

function itemOf(entry: ToolEntry): Tool | MissingTool {
  return 'tool' in entry ? entry.tool : entry.missing
}

/** The same tool under its public name. Fields are listed one by one, because a spread would lose the methods of a class. */
function named(tool: Tool, name: string, source: ToolSource): Tool {
  return {
    name,
    source,
    description: tool.description,
    effect: tool.effect,
    confirm: tool.confirm,
    ...defined({ howToAllow: tool.howToAllow, audience: tool.audience }),
    ...(tool.ask === undefined ? {} : { ask: (input: JsonValue) => tool.ask?.(input) as ToolQuestion }),
    inputSchema: tool.inputSchema,
    ...(tool.check === undefined ? {} : { check: (input: JsonValue) => tool.check?.(input) ?? null }),
    timeoutMs: tool.timeoutMs,
    outputCharsMax: tool.outputCharsMax,
    ...(tool.needsWorkspace === true ? { needsWorkspace: true as const } : {}),
    describe: (input) => tool.describe(input),
    run: (input, context) => tool.run(input, context),
  }
}

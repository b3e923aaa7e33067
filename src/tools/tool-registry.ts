// All tools of a server under the names that models see: the built-in ones first,
// then those of the MCP servers in the order of their configuration.
//
// This is the only place that decides names and that checks arguments. A name here
// fits every provider and means one tool; a tool that cannot be used is listed with
// its reason and is never offered.

import { AppError } from '../errors/app-error.ts'
import type { JsonValue, ToolEffect } from '../journal/event.ts'
import { argumentCheck, type ArgumentCheck } from './argument-check.ts'
import type { Question, Tool, ToolListing, ToolRegistry } from './tool.ts'
import { nameTools } from './tool-names.ts'

/** `built-in`, or `mcp:` and the name of the server. */
export type ToolSource = 'built-in' | `mcp:${string}`

/** A tool, or what stands in its place (also: in the place of a whole MCP server) where it cannot be had. */
export type ToolEntry = { source: ToolSource; tool: Tool } | { source: ToolSource; missing: MissingTool }

export type MissingTool = { name: string; description: string; effect: ToolEffect; reason: string }

export type ToolRegistryOptions = {
  close?: () => Promise<void>
  awaitSource?: ToolRegistry['awaitSource']
}

/** A registry whose tools may change: servers come up late. */
export type ChangingToolRegistry = ToolRegistry & { replace(entries: ToolEntry[]): void }

type Build = { listings: ToolListing[]; offered: Tool[]; byName: Map<string, Tool>; bySource: Map<string, Tool> }

export function createToolRegistry(entries: ToolEntry[], options: ToolRegistryOptions = {}): ChangingToolRegistry {
  // Runs keep tools of an earlier build, so their checks are kept as long as the tools are.
  const checks = new WeakMap<Tool, ArgumentCheck>()
  let current = build(entries, checks)

  return {
    available: () => [...current.offered],
    get: (name) => current.byName.get(name),
    find: (name, source) =>
      source === undefined ? current.byName.get(name) : current.bySource.get(JSON.stringify([source, name])),
    list: () => current.listings.map((listing) => ({ ...listing })),
    check(tool: Tool, input: JsonValue) {
      const check = checks.get(tool)
      if (check === undefined) throw new AppError('internal_error', `The tool ${tool.name} is not of this registry.`)
      return check(input)
    },
    awaitSource: async (source, signal) => {
      await options.awaitSource?.(source, signal)
    },
    replace(next) {
      current = build(next, checks)
    },
    close: async () => {
      await options.close?.()
    },
  }
}

function build(entries: ToolEntry[], checks: WeakMap<Tool, ArgumentCheck>): Build {
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
        // Whether a name is prefixed depends on which other servers are up, so a stored call may have either.
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
      ...(audience === undefined ? {} : { audience }),
    })
  })

  // A stored run keeps the name that a tool had. A prefixed name goes on meaning its tool after the collision is gone
  // (the other server is down today), and is never given to another one.
  names.forEach(({ name, qualified }) => {
    const tool = byName.get(name)
    if (tool !== undefined && qualified !== null && !byName.has(qualified)) byName.set(qualified, tool)
  })
  return { listings, offered, byName, bySource }
}

function itemOf(entry: ToolEntry): Tool | MissingTool {
  return 'tool' in entry ? entry.tool : entry.missing
}

/** The same tool under its public name. Spelled out, since a spread would lose the methods of a class. */
function named(tool: Tool, name: string, source: ToolSource): Tool {
  return {
    name,
    source,
    description: tool.description,
    effect: tool.effect,
    confirm: tool.confirm,
    ...(tool.howToAllow === undefined ? {} : { howToAllow: tool.howToAllow }),
    ...(tool.audience === undefined ? {} : { audience: tool.audience }),
    ...(tool.ask === undefined ? {} : { ask: (input: JsonValue) => tool.ask?.(input) as Question }),
    inputSchema: tool.inputSchema,
    timeoutMs: tool.timeoutMs,
    outputCharsMax: tool.outputCharsMax,
    ...(tool.needsWorkspace === true ? { needsWorkspace: true as const } : {}),
    describe: (input) => tool.describe(input),
    run: (input, context) => tool.run(input, context),
  }
}

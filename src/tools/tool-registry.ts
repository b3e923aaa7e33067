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

export function createToolRegistry(entries: ToolEntry[], options: { close?: () => Promise<void> } = {}): ToolRegistry {
  const names = nameTools(
    entries.map((entry) => ({ source: entry.source, name: itemOf(entry).name, isTool: 'tool' in entry })),
  )
  const listings: ToolListing[] = []
  const offered: Tool[] = []
  const byName = new Map<string, Tool>()
  const checks = new WeakMap<Tool, ArgumentCheck>()

  entries.forEach((entry, position) => {
    const { name, refusal } = names[position]!
    const { description, effect } = itemOf(entry)
    let reason = 'missing' in entry ? entry.missing.reason : refusal

    if ('tool' in entry && reason === null) {
      const check = argumentCheck(entry.tool.inputSchema)
      if (check.ok) {
        const tool = named(entry.tool, name)
        offered.push(tool)
        byName.set(name, tool)
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

  return {
    available: () => [...offered],
    get: (name) => byName.get(name),
    list: () => listings.map((listing) => ({ ...listing })),
    check(tool: Tool, input: JsonValue) {
      const check = checks.get(tool)
      if (check === undefined) throw new AppError('internal_error', `The tool ${tool.name} is not of this registry.`)
      return check(input)
    },
    close: async () => {
      await options.close?.()
    },
  }
}

function itemOf(entry: ToolEntry): Tool | MissingTool {
  return 'tool' in entry ? entry.tool : entry.missing
}

/** The same tool under its public name. Spelled out, since a spread would lose the methods of a class. */
function named(tool: Tool, name: string): Tool {
  return {
    name,
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

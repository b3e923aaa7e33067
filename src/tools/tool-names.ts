// Assigns a name to each tool. Built-in tools keep theirs. A tool of an MCP server also keeps
// its own name, unless two tools would share it: then every MCP tool with this name gets its
// server's name as a prefix, so that names do not depend on the order of the servers.
//
// Every assigned name matches ^[a-zA-Z0-9_-]{1,64}$, which all providers accept, and is unique.

import { toToolName } from '../kit/tool-name.ts'

export type NameRequest = { source: string; name: string; isTool: boolean }

export type AssignedName = {
  name: string
  /** The tool's own name, changed only if providers would not accept it. */
  plain: string
  /** The name with the server's prefix, whether it is used or not. Null if the tool has no server. */
  qualified: string | null
  /** Why this tool cannot get a unique name; null if it has one. */
  refusal: string | null
}

export function nameTools(requests: NameRequest[]): AssignedName[] {
  const plain = requests.map((request) => toToolName(request.name))
  const uses = new Map<string, number>()
  const seen = new Set<string>()
  const repeated = requests.map((request, position) => {
    if (!takesName(request)) return false
    const key = JSON.stringify([request.source, request.name])
    if (seen.has(key)) return true
    seen.add(key)
    uses.set(plain[position]!, (uses.get(plain[position]!) ?? 0) + 1)
    return false
  })

  const taken = new Set<string>()
  const given: AssignedName[] = requests.map((request, position) => {
    const server = serverOf(request.source)
    const own = plain[position]!
    if (!takesName(request)) return { name: request.name, plain: request.name, qualified: null, refusal: null }
    if (repeated[position]) {
      return {
        name: own,
        plain: own,
        qualified: null,
        refusal: 'Its server lists another tool of the same name before it.',
      }
    }
    if (server === null) {
      taken.add(own)
      return { name: own, plain: own, qualified: null, refusal: null }
    }
    const qualified = toToolName(`${server}_${request.name}`)
    const name = uses.get(own) === 1 ? own : qualified
    return { name, plain: own, qualified, refusal: null }
  })

  // Prefixed names can still collide (server `a` with tool `b_c`, server `a_b` with tool `c`). This is rare, so we append
  // a number. The names of built-in tools are already taken at this point.
  given.forEach((item, position) => {
    const request = requests[position]!
    if (!takesName(request) || item.refusal !== null || serverOf(request.source) === null) return
    let name = item.name
    for (let number = 2; taken.has(name); number += 1) name = toToolName(`${item.name}_${number}`)
    taken.add(name)
    item.name = name
  })
  return given
}

/** An entry for an unreachable MCP server takes no name, because a model cannot call it. A missing built-in keeps its name. */
function takesName(request: NameRequest): boolean {
  return request.isTool || serverOf(request.source) === null
}

function serverOf(source: string): string | null {
  return source.startsWith('mcp:') ? source.slice('mcp:'.length) : null
}

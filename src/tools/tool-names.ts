// Which name each tool gets. Built-in tools keep theirs. A tool of an MCP server
// keeps its own too, and is prefixed with the server's name only where two tools
// would otherwise share one; then all of them are prefixed, so that no name depends
// on which server is written first.
//
// Every name that comes out fits ^[a-zA-Z0-9_-]{1,64}$, which all providers accept,
// and no two tools have the same.

import { createHash } from 'node:crypto'

export type NameRequest = { source: string; name: string; isTool: boolean }

export type NameGiven = {
  name: string
  /** The tool's own name, as far as providers accept it. */
  plain: string
  /** The name with the server's prefix, whether it is used or not. Null for what has no server. */
  qualified: string | null
  /** Why this one cannot have a name of its own. */
  refusal: string | null
}

const lengthMax = 64

export function nameTools(requests: NameRequest[]): NameGiven[] {
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
  const given: NameGiven[] = requests.map((request, position) => {
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

  // Built-in names are taken by now. What is left are prefixed names that meet again (server `a` with `b_c`, server
  // `a_b` with `c`): rare, so a number will do.
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

/** An entry for a whole server that could not be reached names nothing a model could call. A missing built-in keeps its name. */
function takesName(request: NameRequest): boolean {
  return request.isTool || serverOf(request.source) === null
}

function serverOf(source: string): string | null {
  return source.startsWith('mcp:') ? source.slice('mcp:'.length) : null
}

function toToolName(wanted: string): string {
  const clean = wanted.replaceAll(/[^a-zA-Z0-9_-]/g, '_')
  if (clean === '') return 'tool'
  if (clean.length <= lengthMax) return clean
  // Long names often differ only at their end, so what is cut off lives on in a digest.
  const digest = createHash('sha256').update(wanted).digest('hex').slice(0, 8)
  return `${clean.slice(0, lengthMax - digest.length - 1)}_${digest}`
}

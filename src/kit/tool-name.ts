// The names that all providers accept for a tool: 1 to 64 letters, digits, `_` and `-`.

import { createHash } from 'node:crypto'

const lengthMax = 64

/** The name itself if it is one of these, else the nearest one. */
export function toToolName(wanted: string): string {
  const clean = wanted.replaceAll(/[^a-zA-Z0-9_-]/g, '_')
  if (clean === '') return 'tool'
  if (clean.length <= lengthMax) return clean
  // Long names often differ only at the end, so a digest of the whole name replaces the part that is cut off.
  const digest = createHash('sha256').update(wanted).digest('hex').slice(0, 8)
  return `${clean.slice(0, lengthMax - digest.length - 1)}_${digest}`
}

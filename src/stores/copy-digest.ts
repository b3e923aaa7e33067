// Digests by which a copy compares two databases. The digest of a table is the sum of the hashes
// of its rows, so it does not depend on the order in which a database returns them.

import { createHash, type Hash } from 'node:crypto'
import type { CopyRow, CopyTable } from './copy-tables.ts'

export type TableDigest = { rows: number; hash: string }

const modulus = 1n << 128n

export class DigestSum {
  #rows = 0
  #sum = 0n

  add(hash: Buffer): void {
    this.#rows += 1
    this.#sum = (this.#sum + hash.readBigUInt64BE(0) + (hash.readBigUInt64BE(8) << 64n)) % modulus
  }

  result(): TableDigest {
    return { rows: this.#rows, hash: this.#sum.toString(16).padStart(32, '0') }
  }
}

export function hashOfRow(row: CopyRow): Buffer {
  const fields = Object.keys(row)
    .sort()
    .map((name) => {
      const value = row[name]
      return [name, value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value]
    })
  return createHash('sha256').update(JSON.stringify(fields)).digest()
}

/** The hash of each long value whose pieces come in order. */
export async function* hashesOfPieces(
  rows: AsyncIterable<CopyRow>,
  { key, body }: NonNullable<CopyTable['pieces']>,
): AsyncGenerator<{ key: string | number; hash: Buffer }> {
  let current: { key: string | number; hash: Hash } | undefined
  for await (const row of rows) {
    const found = row[key] as string | number
    if (current?.key !== found) {
      if (current !== undefined) yield { key: current.key, hash: current.hash.digest() }
      current = { key: found, hash: createHash('sha256').update(`${found}\n`) }
    }
    const piece = row[body] as string | Uint8Array
    current.hash.update(piece)
    // The pieces of a text are whole lines; those of bytes are cut anywhere.
    if (typeof piece === 'string') current.hash.update('\n')
  }
  if (current !== undefined) yield { key: current.key, hash: current.hash.digest() }
}

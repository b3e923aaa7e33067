// Generates opaque ids; passed in as a dependency, like the clock. ULIDs sort by creation
// within one process, which keeps tables compact. No code may rely on that order; use `seq`.

import { randomFillSync } from 'node:crypto'
import { monotonicFactory } from 'ulid'

export type Ids = () => string

export function ulidIds(now: () => number = Date.now): Ids {
  // The factory asks for sixteen random numbers per id. They come from a pool, because one system call each would be too slow.
  const pool = new Uint8Array(4096)
  let used = pool.length
  const next = monotonicFactory(() => {
    if (used === pool.length) {
      randomFillSync(pool)
      used = 0
    }
    return (pool[used++] as number) / 256
  })
  return () => next(now())
}

// Opaque ids, handed in like the clock. ULIDs sort by creation within one
// process, which keeps tables compact; nothing may rely on that for order:
// order comes from `seq`.

import { randomFillSync } from 'node:crypto'
import { monotonicFactory } from 'ulid'

export type Ids = () => string

export function ulidIds(now: () => number = Date.now): Ids {
  // The factory asks for sixteen random numbers an id; one system call for each of them would cost more than the run.
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

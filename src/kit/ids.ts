// Opaque ids, handed in like the clock. ULIDs sort by creation within one
// process, which keeps tables compact; nothing may rely on that for order:
// order comes from `seq`.

import { monotonicFactory } from 'ulid'

export type Ids = () => string

export function ulidIds(now: () => number = Date.now): Ids {
  const next = monotonicFactory()
  return () => next(now())
}

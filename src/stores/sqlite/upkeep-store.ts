// Upkeep of one file. Only one process uses it, so duties are kept in memory; the journal table has
// no partitions, and `expireRuns` deletes the events itself.

import type { UpkeepStore } from '../upkeep-store.ts'
import type { PartAccess } from './part-access.ts'
import type { StoreClock } from './run-store.ts'

export function upkeepStore({ db, read }: Pick<PartAccess, 'db' | 'read'>, clock: StoreClock): UpkeepStore {
  const duties = new Map<string, { node: string; until: number }>()
  const oldest = db.prepare('SELECT min(ended_at) AS oldest FROM runs WHERE ended_at IS NOT NULL')
  return {
    takeDuty: (duty, node, forMs) =>
      read(() => {
        const now = clock.monotonic()
        const held = duties.get(duty)
        if (held !== undefined && held.node !== node && held.until > now) return false
        duties.set(duty, { node, until: now + forMs })
        return true
      }),
    tidyJournal: () => read(() => ({ partitionsMade: 0, partitionsDropped: 0, rowsRemoved: 0 })),
    oldestEnd: () => read(() => oldest.get()?.oldest as number | null),
  }
}

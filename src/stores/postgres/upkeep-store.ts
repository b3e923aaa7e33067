// Duties as rows, judged by the clock of the database, and the partitions of the journal.

import type { UpkeepStore } from '../upkeep-store.ts'
import type { JournalPartitions } from './journal-partitions.ts'
import type { PartAccess } from './part-access.ts'

export function upkeepStore(
  { guarded, read, write }: PartAccess,
  partitions: Pick<JournalPartitions, 'tidy'>,
): UpkeepStore {
  return {
    takeDuty: (duty, node, forMs) =>
      write(async (db) => {
        const taken = await db.run(
          `INSERT INTO duties AS duty (name, node, until) VALUES (?, ?, polylog_now() + ?)
           ON CONFLICT (name) DO UPDATE SET node = excluded.node, until = excluded.until
           WHERE duty.node = excluded.node OR duty.until <= polylog_now()`,
          duty,
          node,
          forMs,
        )
        return taken > 0
      }),
    tidyJournal: (endedBefore) => guarded(() => partitions.tidy(endedBefore)),
    oldestEnd: () =>
      read(async (db) => {
        const row = await db.get('SELECT min(ended_at) AS oldest FROM runs WHERE ended_at IS NOT NULL')
        return (row?.['oldest'] ?? null) as number | null
      }),
  }
}

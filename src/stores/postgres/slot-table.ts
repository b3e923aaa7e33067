// The slots of all nodes together: a run that is executed has one, and `LeaseRequest.slots` is how
// many there are. A run loses its slot with its lease, by a trigger; claims are in the function
// `claim_runs` of the migration.

import type { LeaseRequest } from '../run-store.ts'
import type { Db } from './connection.ts'

/** Inserts missing rows, once for each number. Resolves when there are enough. */
export function slotRows(write: (work: (db: Db) => Promise<number>) => Promise<number>) {
  let enough = 0
  return async (lease: LeaseRequest | null | undefined): Promise<void> => {
    const slots = lease?.slots ?? 0
    if (slots <= enough) return
    await write((db) =>
      db.run('INSERT INTO slots (number) SELECT generate_series(1, ?::integer) ON CONFLICT DO NOTHING', slots),
    )
    enough = Math.max(enough, slots)
  }
}

/** Takes a free slot for the run, without waiting for other nodes. False if none is free. */
export async function takeSlot(db: Db, runId: string, { slots }: LeaseRequest): Promise<boolean> {
  if (slots === undefined) return true
  const taken = await db.run(
    'UPDATE slots SET run_id = ? WHERE number = (SELECT unnest(free_slots(?::integer, 1)))',
    runId,
    slots,
  )
  return taken > 0
}

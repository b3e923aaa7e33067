// Fills a database with finished runs of 20 tokens through the store, which is much faster than
// to execute them.

import { join } from 'node:path'
import { databaseName } from '../src/app/data-folder.ts'
import { systemClock } from '../src/kit/clock.ts'
import { openSqliteStore } from '../src/stores/sqlite/sqlite-store.ts'
import { deltas, endRun, inConversation, message, start, write } from '../test/contracts/store-fixtures.ts'

/** How many runs are under way at once, so that they share commits. */
const atOnce = 500

/** Adds runs until the database in the folder has `count`, if it has `from` now. */
export async function seedRuns(folder: string, from: number, count: number): Promise<void> {
  const store = await openSqliteStore({ file: join(folder, databaseName), clock: systemClock, commitGatherMs: 0 })
  async function seed(index: number): Promise<void> {
    const id = `seed-${String(index).padStart(9, '0')}`
    const conversation = `c-${id}`
    const createdAt = start + index
    const { run } = await store.accept(
      inConversation(id, conversation, 'absent', {
        // Many users, as on a real server.
        runOwner: `user-${index % 997}`,
        createdAt,
        title: 'go',
        messages: [message(`m-${id}`, conversation, { runId: id })],
        claim: { node: 'seed', leaseMs: 3_600_000 },
      }),
    )
    await store.append(write(run, 1, { events: deltas(2, 21), messages: [message(`a-${id}`, conversation)] }))
    await endRun(store, run, 22, createdAt + 1000)
  }
  for (let at = from; at < count; at += atOnce) {
    await Promise.all(Array.from({ length: Math.min(atOnce, count - at) }, (_, index) => seed(at + index)))
  }
  await store.close()
}

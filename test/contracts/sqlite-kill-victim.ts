// A process for sqlite-store.test.ts to kill: appends to three runs without end, and reports
// each append on stdout after it was acknowledged.

import { writeSync } from 'node:fs'
import { systemClock } from '../../src/kit/clock.ts'
import { claimedRun, delta, deltas, write } from './store-fixtures.ts'
import { openSqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'

const [file, round] = process.argv.slice(2) as [string, string]
const store = await openSqliteStore({ clock: systemClock, file, commitGatherMs: 1 })

async function work(name: string, size: number): Promise<never> {
  const run = await claimedRun(store, `${name}-${round}`)
  for (let last = 1; ; last += size) {
    const events = size === 1 ? [delta(last + 1)] : deltas(last + 1, size)
    const durable = last % 17 === 0
    await store.append(write(run, last, { events, durable, ...(durable ? { run: { status: 'running' } } : {}) }))
    report(`${run.id} ${last + size}\n`)
  }
}

/** Written at once, because the kill may come at any time. */
function report(line: string): void {
  for (;;) {
    try {
      writeSync(1, line)
      return
    } catch (error) {
      // The pipe is full: the test reads more slowly than this process writes.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
  }
}

await Promise.all([work('a', 1), work('b', 3), work('c', 1)])

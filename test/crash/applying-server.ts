// A process for kill-while-applying.test.ts to kill: applies archives one after the other,
// and says each one on stdout before and after.

import { writeSync } from 'node:fs'
import { apply } from '../contracts/store-contract-archives.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { openSqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'

const [file, ...ids] = process.argv.slice(2) as [string, ...string[]]
const store = await openSqliteStore({ clock: systemClock, file })
for (const id of ids) {
  const row = await store.readArchive(id)
  if (row === undefined) throw new Error(`no archive ${id}`)
  writeSync(1, `applying ${id}\n`)
  await apply(store, row, systemClock.now(), 1000)
  writeSync(1, `applied ${id}\n`)
}
writeSync(1, 'done\n')
setInterval(() => {}, 1000)

// What a crash of the database server means for leases. A crash empties unlogged tables; the test
// does the same.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { acceptInput, start } from '../../../test/contracts/store-fixtures.ts'
import { newStoreDatabase, query } from '../../../test/support/postgres.ts'
import { systemClock } from '../../kit/clock.ts'
import { openPostgresStore } from './postgres-store.ts'

it('after a crash of the database no run is taken over for the time of one lease, and its owner may renew', async () => {
  const { url, drop } = await newStoreDatabase()
  const set = (now: number) => query(url, `DELETE FROM test_time; INSERT INTO test_time (now) VALUES (${now})`)
  const store = await openPostgresStore({ url, clock: systemClock, commitGatherMs: 0, connectionsMax: 2 })
  const leaseMs = 1000
  const claim = async (node: string) =>
    (await store.claim({ node, leaseMs, limit: 10 })).map(({ id, takenFrom }) => [id, takenFrom])
  try {
    await set(start)
    for (const id of ['lives', 'dies']) await store.accept(acceptInput(id))
    assert.equal((await claim('owner')).length, 2)

    await query(url, 'TRUNCATE database_starts')
    const back = start + 5 * leaseMs
    await set(back)
    assert.deepEqual(await claim('other'), [])
    await store.accept(acceptInput('new'))
    assert.deepEqual(await claim('other'), [['new', undefined]])
    await set(back + leaseMs - 1)
    assert.deepEqual(await claim('other'), [])
    assert.equal((await store.renewLeases({ node: 'owner', leaseMs }, ['lives'])).length, 1)
    await set(back + leaseMs)
    assert.deepEqual(await claim('third'), [
      ['dies', 'owner'],
      ['new', 'other'],
    ])
  } finally {
    await query(url, 'INSERT INTO database_starts (at) VALUES (0) ON CONFLICT (id) DO UPDATE SET at = 0')
    await store.close()
    await drop()
  }
})

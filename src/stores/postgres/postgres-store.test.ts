// The store contract on PostgreSQL, against a real server.

import assert from 'node:assert/strict'
import pg from 'pg'
import type { OpenedStore } from '../../../test/contracts/open-store.ts'
import { storeContract } from '../../../test/contracts/store-contract.ts'
import { start } from '../../../test/contracts/store-fixtures.ts'
import { newStoreDatabase, query } from '../../../test/support/postgres.ts'
import { systemClock } from '../../kit/clock.ts'
import type { Store } from '../store.ts'
import { openPostgresStore } from './postgres-store.ts'

async function open(): Promise<OpenedStore> {
  const { url, drop } = await newStoreDatabase()
  const openStore = () => openPostgresStore({ url, clock: systemClock, commitGatherMs: 0, connectionsMax: 8 })
  const set = async (now: number) => {
    await query(url, `DELETE FROM test_time; INSERT INTO test_time (now) VALUES (${now})`)
  }
  await set(start)
  let store = await openStore()
  const reopen = async (): Promise<Store> => {
    await store.close()
    store = await openStore()
    return store
  }
  return {
    store,
    time: { set },
    reopen,
    async corrupt(runId, seq, line) {
      await store.close()
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      const found = await client.query<{ first_seq: string; last_seq: string; body: string }>(
        'SELECT first_seq, last_seq, body FROM journal WHERE run_id = $1 AND first_seq <= $2 AND last_seq >= $2',
        [runId, seq],
      )
      const [row] = found.rows
      assert.ok(row !== undefined)
      const lines = row.body.split('\n')
      lines[seq - Number(row.first_seq)] = line
      const body = lines.join('\n')
      await client.query('UPDATE journal SET body = $1 WHERE run_id = $2 AND last_seq = $3', [
        body,
        runId,
        row.last_seq,
      ])
      await client.end()
      return reopen()
    },
    async cleanup() {
      await store.close()
      await drop()
    },
  }
}

storeContract('PostgreSQL', open)

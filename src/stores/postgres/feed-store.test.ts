// The feed on PostgreSQL when transactions commit in another order than they began, which the
// contract of all stores cannot arrange.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { newStoreDatabase } from '../../../test/support/postgres.ts'
import { until } from '../../../test/support/until.ts'
import { systemClock } from '../../kit/clock.ts'
import type { FeedPosition } from '../feed-store.ts'
import type { Store } from '../store.ts'
import { openPostgresStore } from './postgres-store.ts'

const owner = 'alice'
const conversation = (id: string) => ({ id, owner, title: null, createdAt: 1, updatedAt: 1 })

/** A store, and a second connection whose transactions the test commits when it likes. */
async function withSlowWriter(body: (store: Store, slow: pg.Client, url: string) => Promise<void>): Promise<void> {
  const { url, drop } = await newStoreDatabase()
  const store = await openPostgresStore({ url, clock: systemClock })
  const slow = new pg.Client({ connectionString: url })
  await slow.connect()
  try {
    await body(store, slow, url)
  } finally {
    await slow.end()
    await store.close()
    await drop()
  }
}

async function read(store: Store, after: FeedPosition, sent: ReadonlySet<number> = new Set()) {
  const page = await store.readFeed(owner, { after, limit: 10, sent })
  assert.ok(page !== null)
  return page
}

const insert = (id: string) =>
  `INSERT INTO conversations (id, owner, created_at, updated_at, activity) VALUES ('${id}', '${owner}', 1, 1, 1)`

describe('the feed, if transactions commit out of order', () => {
  test('gives later changes at once, and the earlier one when it is committed', () =>
    withSlowWriter(async (store, slow) => {
      const { head } = await store.feedState()
      await slow.query('BEGIN')
      await slow.query(insert('slow'))
      await store.createConversation(conversation('fast'))

      const early = await read(store, head)
      assert.deepEqual(
        early.entries.map(({ id, settled }) => [id, settled]),
        [['fast', false]],
      )
      const sent = new Set(early.entries.map(({ position }) => position.number))
      assert.deepEqual((await read(store, early.next, sent)).entries, [])

      await slow.query('COMMIT')
      // The transactions of other databases of the server count, too, and those of other tests may be open.
      const late = await until('the earlier transactions to end', async () => {
        const page = await read(store, early.next, sent)
        return page.entries.every(({ settled }) => settled) && page
      })
      assert.deepEqual(
        late.entries.map(({ id, settled }) => [id, settled]),
        [['slow', true]],
      )
      // A reader that was cut off in between gets both.
      assert.deepEqual(
        (await read(store, early.next)).entries.map(({ id }) => id),
        ['slow', 'fast'],
      )
      assert.deepEqual((await read(store, late.next)).entries, [])
    }))

  test('a reader that begins while a transaction is open gets its changes', () =>
    withSlowWriter(async (store, slow) => {
      await slow.query('BEGIN')
      await slow.query(insert('slow'))
      await store.createConversation(conversation('fast'))
      const { head } = await store.feedState()
      await slow.query('COMMIT')
      const { entries } = await read(store, head)
      assert.ok(entries.some(({ id }) => id === 'slow'))
    }))

  test('a thing that an older transaction changes last is told again', () =>
    withSlowWriter(async (store, slow) => {
      await store.createConversation(conversation('c'))
      const { head } = await store.feedState()
      await slow.query('BEGIN')
      await slow.query(insert('other'))
      await store.updateConversation('c', { title: 'first' }, 2)
      const first = await read(store, head)
      await slow.query("UPDATE conversations SET title = 'second' WHERE id = 'c'")
      await slow.query('COMMIT')
      const sent = new Set(first.entries.map(({ position }) => position.number))
      const second = await read(store, first.next, sent)
      assert.deepEqual(
        [first, second].map(({ entries }) => entries.find(({ id }) => id === 'c')?.row),
        [
          { ...(await store.readConversation('c')), title: 'first' },
          { ...(await store.readConversation('c')), title: 'second' },
        ],
      )
    }))

  test('a rolled back change is not told', () =>
    withSlowWriter(async (store, slow) => {
      const { head } = await store.feedState()
      await slow.query('BEGIN')
      await slow.query(insert('slow'))
      await slow.query('ROLLBACK')
      assert.deepEqual((await read(store, head)).entries, [])
    }))

  test('a database that was restored on another server begins a new feed', () =>
    withSlowWriter(async (store, slow, url) => {
      const before = await store.feedState()
      await store.createConversation(conversation('c'))
      // The transactions of the old server have higher ids than this one has reached.
      await slow.query('UPDATE feed SET txid = txid + 1000000000')
      const reopened = await openPostgresStore({ url, clock: systemClock })
      try {
        const now = await reopened.feedState()
        assert.notEqual(now.epoch, before.epoch)
        await reopened.createConversation(conversation('d'))
        assert.deepEqual(
          (await read(reopened, now.head)).entries.map(({ id }) => id),
          ['d'],
        )
      } finally {
        await reopened.close()
      }
    }))
})

// The readers of a feed on a real store: woken by hints of this node and of others, and reset
// when their cursor is of no use any more.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { processCluster } from '../../test/support/process-cluster.ts'
import { systemClock } from '../kit/clock.ts'
import { openSqliteStore } from '../stores/sqlite/sqlite-store.ts'
import type { Store } from '../stores/store.ts'
import { FeedHints } from './feed-hints.ts'
import { FeedService } from './feed-service.ts'
import { withFeedHints } from './hinting-store.ts'

/** So long that only a hint can wake a reader. */
const never = 1_000_000_000

describe('readers of a feed', { timeout: 60_000 }, () => {
  let folder: string
  let store: Store
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polylog-feed-'))
    store = await openSqliteStore({ file: join(folder, 'polylog.db'), clock: systemClock })
  })
  after(async () => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const conversation = (id: string, owner: string) => ({ id, owner, title: null, createdAt: 1, updatedAt: 1 })

  /** Two nodes on one store. */
  function nodes() {
    const cluster = processCluster()
    const open = () => {
      const hints = new FeedHints()
      hints.connect(cluster.open())
      return {
        hinting: withFeedHints(store, (owner) => hints.changed(owner)),
        feed: new FeedService({ store, hints, clock: systemClock, pollMs: never }),
      }
    }
    return { cluster, a: open(), b: open() }
  }

  async function idsOf(reading: ReturnType<Awaited<ReturnType<FeedService['open']>>['next']>): Promise<string[]> {
    const part = await reading
    assert.ok(part !== null && 'changes' in part)
    return part.changes.map(({ id }) => id)
  }

  test('are woken by commits of their node and of other nodes', async () => {
    const { a, b } = nodes()
    const readers = [await a.feed.open('ann', undefined), await b.feed.open('ann', undefined)]
    for (const [index, node] of [a, b].entries()) {
      const waiting = readers.map((reader) => idsOf(reader.next()))
      await node.hinting.createConversation(conversation(`c${index}`, 'ann'))
      assert.deepEqual(await Promise.all(waiting), [[`c${index}`], [`c${index}`]])
    }
    for (const reader of readers) reader.close()
  })

  test('look again when hints may have been lost, and end when they are closed', async () => {
    const { a, b, cluster } = nodes()
    const reader = await b.feed.open('bob', undefined)
    const waiting = idsOf(reader.next())
    cluster.deaf = true
    await a.hinting.createConversation(conversation('lost', 'bob'))
    cluster.reconnect()
    assert.deepEqual(await waiting, ['lost'])
    const idle = reader.next()
    reader.close()
    assert.equal(await idle, null)
  })

  test('are told if what they want was forgotten, once, and go on from there', async () => {
    const { a } = nodes()
    const { cursor } = await a.feed.open('cid', undefined)
    for (let number = 0; number < 5; number += 1) await store.createConversation(conversation(`x${number}`, 'cid'))
    await store.expireFeed(1, 100)
    const reader = await a.feed.open('cid', cursor)
    assert.equal(reader.resumed, true)
    assert.deepEqual(await reader.next(), { reset: 'expired' })
    await store.createConversation(conversation('later', 'cid'))
    assert.deepEqual(await idsOf(reader.next()), ['later'])
    assert.equal(await reader.next({ wait: false }), null)
    reader.close()
  })

  test('get many changes in pages', async () => {
    const { a } = nodes()
    const reader = await a.feed.open('dan', undefined)
    for (let number = 0; number < 120; number += 1) await store.createConversation(conversation(`d${number}`, 'dan'))
    const seen: string[] = []
    for (;;) {
      const part = await reader.next({ wait: false })
      if (part === null) break
      assert.ok('changes' in part && part.changes.length <= 50)
      seen.push(...part.changes.map(({ id }) => id))
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 120 }, (_, number) => `d${number}`),
    )
    reader.close()
  })
})

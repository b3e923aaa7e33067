// Contract: the message of a queued run can be changed, and the run withdrawn, until a node
// claims it; never both.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { QueuedChange } from '../../src/stores/run-store.ts'
import type { Store } from '../../src/stores/store.ts'
import type { OpenStore } from './open-store.ts'
import {
  acceptInput,
  beforeAndAfter,
  claimNow,
  delta,
  endRun,
  inConversation,
  message,
  owner,
  seqs,
  start,
  withStore,
} from './store-fixtures.ts'

export function queuedContract(open: OpenStore): void {
  const opened = withStore(open)
  const cancel = { by: owner, reason: null, at: start }
  const change = (changes: Partial<QueuedChange> = {}): QueuedChange => ({
    runId: 'second',
    afterSeq: 1,
    events: [delta(2)],
    message: { id: 'm2', content: 'changed' },
    at: start + 9,
    ...changes,
  })

  /** A run that is executed, and one that waits for it. */
  async function queue(store: Store) {
    const first = await store.accept(
      inConversation('first', 'c', 'absent', { messages: [message('m1', 'c', { runId: 'first' })], claim: claimNow }),
    )
    await store.accept(
      inConversation('second', 'c', 'present', {
        expectBehind: 'first',
        messages: [message('m2', 'c', { runId: 'second' })],
        claim: claimNow,
      }),
    )
    return first.run
  }

  describe('a queued run', () => {
    test(
      'takes another text, again and again, and keeps its place',
      opened(async ({ store, reopen }) => {
        const first = await queue(store)
        const changed = await store.changeQueued(change())
        assert.deepEqual([changed?.lastSeq, changed?.status, changed?.cancel], [2, 'queued', null])
        assert.equal(await store.changeQueued(change()), undefined)
        await store.changeQueued(
          change({ afterSeq: 2, events: [delta(3)], message: { id: 'm2', content: 'changed again' } }),
        )
        for await (const each of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await seqs(each, 'second'), [1, 2, 3])
          assert.equal((await each.readMessage('m2'))?.content, 'changed again')
          assert.equal((await each.readConversation('c'))?.updatedAt, start + 9)
          store = each
        }
        // Leases of SQLite do not survive; the first run is claimed again there.
        const [again = first] = await store.claim({ ...claimNow, limit: 1 })
        await endRun(store, again, 1)
        const [second] = await store.claim({ ...claimNow, limit: 9 })
        assert.deepEqual([second?.id, second?.lastSeq], ['second', 3])
        assert.equal(await store.changeQueued(change({ afterSeq: 3, events: [delta(4)] })), undefined)
        assert.equal((await store.readMessage('m2'))?.content, 'changed again')
        assert.equal((await store.readRun('second'))?.lastSeq, 3)
        assert.deepEqual(await seqs(store, 'second'), [1, 2, 3])
      }),
    )

    test(
      'is withdrawn with its message, and then takes no other text',
      opened(async ({ store }) => {
        await queue(store)
        const withdrawn = await store.changeQueued(
          change({ events: [], message: { id: 'm2', state: 'abandoned' }, cancel }),
        )
        assert.deepEqual(withdrawn?.cancel, cancel)
        assert.equal((await store.readMessage('m2'))?.state, 'abandoned')
        assert.equal(await store.changeQueued(change()), undefined)
        assert.deepEqual(
          (await store.claim({ ...claimNow, limit: 0 })).map(({ id }) => id),
          ['second'],
        )
      }),
    )

    test(
      'is claimed or changed, never both',
      opened(async ({ store }) => {
        for (let round = 0; round < 10; round += 1) {
          const id = `r${round}`
          await store.accept(acceptInput(id))
          const [changed, claimed] = await Promise.all([
            store.changeQueued({ runId: id, afterSeq: 1, events: [delta(2)], at: start }),
            store.claim({ ...claimNow, limit: 1 }),
          ])
          const claimedNow = claimed[0] ?? (await store.claim({ ...claimNow, limit: 1 }))[0]
          assert.equal(claimedNow?.id, id)
          // If the change came first, the node that claimed the run sees it.
          assert.equal(claimedNow.lastSeq, changed === undefined ? 1 : 2)
          await endRun(store, claimedNow, claimedNow.lastSeq)
        }
      }),
    )

    test(
      'is listed with the other unfinished runs of all users, oldest first',
      opened(async ({ store }) => {
        const first = await queue(store)
        await store.accept(acceptInput('theirs', { runOwner: 'bob' }))
        const ids = async (limit: number) => (await store.listOpenRuns(limit)).map(({ id }) => id)
        assert.deepEqual(
          [await ids(9), await ids(2)],
          [
            ['first', 'second', 'theirs'],
            ['first', 'second'],
          ],
        )
        await endRun(store, first, 1)
        assert.deepEqual(await ids(9), ['second', 'theirs'])
      }),
    )

    test(
      'is not one that is held, ended or unknown',
      opened(async ({ store }) => {
        await store.accept(acceptInput('held', { held: {} }))
        const { run } = await store.accept(acceptInput('ended', { claim: claimNow }))
        await endRun(store, run, 1)
        for (const runId of ['held', 'ended', 'unknown']) {
          assert.equal(await store.changeQueued({ runId, afterSeq: 1, events: [delta(2)], at: start }), undefined)
        }
      }),
    )
  })
}

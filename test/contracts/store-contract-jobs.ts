// Contract: runs that wait for what they need, replies that are known again, and files
// that go with their run.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { HeldStart, Store } from '../../src/stores/store.ts'
import type { OpenStore } from './store-contract.ts'
import {
  acceptInput,
  claimedRun,
  claimNow,
  delta,
  farAway,
  interaction,
  owner,
  seqs,
  start,
  withStore,
  write,
} from './store-fixtures.ts'

export function jobContract(open: OpenStore): void {
  const opened = withStore(open)
  const claimAll = (store: Store) => store.claim({ node: 'n', now: start + 10, leaseUntil: farAway, limit: 10 })
  const starting = (changes: Partial<HeldStart> = {}): HeldStart => ({
    runId: 'r',
    afterSeq: 1,
    events: [delta(2)],
    blobs: [{ id: 'r:a', body: 'A' }],
    queueMax: 10,
    claim: null,
    ...changes,
  })
  const hold = (store: Store, id = 'r') =>
    store.accept(acceptInput(id, { hold: true, claim: claimNow, events: [delta(1)] }))

  describe('a held run', () => {
    test(
      'is there and queued, is claimed by nobody, and takes no room in the queue',
      opened(async ({ store, reopen }) => {
        const { run } = await store.accept(
          acceptInput('r', { hold: true, claim: claimNow, queueMax: 0, events: [delta(1)] }),
        )
        await store.accept(acceptInput('other', { queueMax: 1 }))

        assert.deepEqual([run.status, run.leaseOwner], ['queued', null])
        const again = await reopen()
        assert.deepEqual(
          (await claimAll(again)).map(({ id }) => id),
          ['other'],
        )
        assert.deepEqual(await seqs(again, 'r'), [1])
      }),
    )

    test(
      'counts against a bound for its owner and for all; one that started or ended does not',
      opened(async ({ store }) => {
        const held = (id: string, by: string, max: { owner: number; all: number }) => {
          const input = acceptInput(id, { hold: true, heldMax: max, events: [delta(1)] })
          return store.accept({ ...input, run: { ...input.run, owner: by } })
        }
        const code = { code: 'jobs_awaiting_upload' }
        await held('r', 'ann', { owner: 1, all: 9 })
        await assert.rejects(held('s', 'ann', { owner: 1, all: 9 }), code)
        assert.equal(await store.readRun('s'), undefined)
        await held('s', 'bob', { owner: 1, all: 9 })
        await assert.rejects(held('t', 'cid', { owner: 1, all: 2 }), code)

        await store.startHeld(starting())

        await held('t', 'ann', { owner: 1, all: 2 })
        await assert.rejects(held('u', 'cid', { owner: 1, all: 2 }), code)
      }),
    )

    test(
      'starts once, with its events and files, and is claimable then',
      opened(async ({ store, reopen }) => {
        await hold(store)

        const results = await Promise.allSettled([store.startHeld(starting()), store.startHeld(starting())])

        assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
        await assert.rejects(store.startHeld(starting({ afterSeq: 2, events: [delta(3)] })), { code: 'run_fenced' })
        const again = await reopen()
        assert.deepEqual(await seqs(again, 'r'), [1, 2])
        assert.equal((await again.readBlob('r:a'))?.body, 'A')
        assert.deepEqual(
          (await claimAll(again)).map(({ id, lastSeq }) => [id, lastSeq]),
          [['r', 2]],
        )
      }),
    )

    test(
      'may be claimed while it starts, and is written on by its owner',
      opened(async ({ store }) => {
        await hold(store)

        const run = await store.startHeld(starting({ claim: claimNow }))
        await store.append(write(run, 2, { events: [delta(3)] }))

        assert.deepEqual([run.leaseOwner, run.epoch, run.lastSeq], ['node-a', 1, 2])
        assert.deepEqual(await seqs(store, 'r'), [1, 2, 3])
        assert.deepEqual(await claimAll(store), [])
      }),
    )

    test(
      'that finds the queue full, or a wrong place in its journal, is left as it was',
      opened(async ({ store }) => {
        await hold(store)
        await store.accept(acceptInput('other', { queueMax: 1 }))

        await assert.rejects(store.startHeld(starting({ queueMax: 1 })), { code: 'queue_full' })
        await assert.rejects(store.startHeld(starting({ afterSeq: 2, events: [delta(3)] })), { code: 'run_fenced' })
        await assert.rejects(store.startHeld(starting({ runId: 'nobody' })), { code: 'run_fenced' })

        assert.deepEqual(await seqs(store, 'r'), [1])
        assert.equal(await store.readBlob('r:a'), undefined)
        assert.deepEqual(
          (await claimAll(store)).map(({ id }) => id),
          ['other'],
        )
        await store.startHeld(starting())
      }),
    )

    test(
      'is claimed to be cancelled, and does not start after that',
      opened(async ({ store }) => {
        await hold(store)
        await store.requestCancel('r', { by: owner, reason: null, at: start })

        await assert.rejects(store.startHeld(starting()), { code: 'run_fenced' })
        assert.deepEqual(
          (await claimAll(store)).map(({ id }) => id),
          ['r'],
        )
      }),
    )
  })

  describe('the key of a reply', () => {
    test(
      'is stored with the decision that it came with, and with no other',
      opened(async ({ store, reopen }) => {
        const run = await claimedRun(store, 'r')
        await store.append(
          write(run, 1, { newInteractions: [interaction('i1', 'r')], run: { status: 'waiting_user', release: true } }),
        )
        const decide = (key: string) =>
          store.decide('i1', {
            status: 'replied',
            by: owner,
            at: start,
            response: key,
            reply: { key, fingerprint: `print of ${key}` },
          })

        await decide('first')
        const second = await decide('second')

        assert.equal(second?.decided, false)
        const row = await (await reopen()).readInteraction('i1')
        assert.deepEqual([row?.response, row?.reply], ['first', { key: 'first', fingerprint: 'print of first' }])
      }),
    )
  })

  describe('files of a run', () => {
    test(
      'are dropped by their beginning, with the write that says so, and those of others stay',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')
        await claimedRun(store, 'q')
        for (const [id, of] of [
          ['r:p:1', 'r'],
          ['r:p:2', 'r'],
          ['r:x', 'r'],
          ['r:p:3', 'q'],
        ] as const)
          await store.putBlob(id, of, 'x')

        await assert.rejects(store.append({ ...write(run, 7, { events: [] }), dropBlobs: 'r:p:' }), {
          code: 'run_fenced',
        })
        assert.equal(await store.countBlobs('r', 'r:p:'), 2)
        await store.append({ ...write(run, 1, { events: [delta(2)] }), dropBlobs: 'r:p:' })

        assert.deepEqual(
          [await store.countBlobs('r', 'r:p:'), await store.countBlobs('r', ''), await store.countBlobs('q', '')],
          [0, 1, 1],
        )
      }),
    )
  })
}

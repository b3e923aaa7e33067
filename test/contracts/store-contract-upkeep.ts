// Contract: rows that no longer parse, and the expiry of runs.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { InteractionStore } from '../../src/stores/interaction-store.ts'
import type { MessageStore } from '../../src/stores/message-store.ts'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { OpenStore } from './open-store.ts'
import {
  acceptInput,
  claimedRun,
  claimNow,
  delta,
  farAway,
  deltas,
  endRun,
  inConversation,
  interaction,
  message,
  seqs,
  start,
  withStore,
  write,
} from './store-fixtures.ts'

export function upkeepContract(open: OpenStore<RunStore & MessageStore & InteractionStore>): void {
  const opened = withStore(open)

  describe('a dirty row', () => {
    const damages = [
      'not json',
      '',
      '{"seq":5,"at":1,"attempt":1,"type":"gone.type","data":{}}',
      '{"seq":5,"at":1,"attempt":1,"type":"text.delta","data":{}}',
      'null',
      'two\nlines',
    ]
    for (const damage of damages) {
      test(`(${JSON.stringify(damage)}) is skipped and counted, and the rest is read`, async (context) => {
        const opening = await open()
        try {
          if (opening.corrupt === undefined) return context.skip('this store offers no way to damage a row')
          const run = await claimedRun(opening.store, 'r')
          await opening.store.append(write(run, 1, { events: deltas(2, 5) }))
          await opening.store.append(write(run, 6, { events: deltas(7, 2) }))

          const store = await opening.corrupt('r', 5, damage)

          const page = await store.readEvents('r', 0, 100)
          assert.deepEqual(
            page.events.map((event) => event.seq),
            [1, 2, 3, 4, 6, 7, 8],
          )
          assert.deepEqual([page.skipped, page.nextAfter, page.atHead], [1, 8, true])
          assert.equal((await store.readEvents('r', 4, 1)).events[0]?.seq, 6)
          assert.equal((await store.readEvents('r', 3, 1)).events[0]?.seq, 4)
        } finally {
          await opening.cleanup()
        }
      })
    }

    test('at the very end is skipped, and the run can still be written', async (context) => {
      const opening = await open()
      try {
        if (opening.corrupt === undefined) return context.skip('this store offers no way to damage a row')
        const run = await claimedRun(opening.store, 'r')
        await opening.store.append(write(run, 1, { events: [delta(2)], run: { status: 'running' } }))

        const store = await opening.corrupt('r', 2, '????')

        assert.deepEqual(await store.readEvents('r', 1, 10), { events: [], skipped: 1, nextAfter: 2, atHead: true })
        await opening.time.set(farAway)
        const [again] = await store.claim({ node: 'b', leaseMs: 1, limit: 1 })
        await store.append(write(again!, 2, { events: [delta(3)] }))
        assert.deepEqual(await seqs(store, 'r'), [1, 3])
      } finally {
        await opening.cleanup()
      }
    })
  })

  describe('expired runs', () => {
    test(
      'go with their events, interactions, blobs and keys; their messages stay',
      opened(async ({ store }) => {
        const { run } = await store.accept(
          inConversation('old', 'c', 'absent', {
            claim: claimNow,
            messages: [message('m1', 'c', { runId: 'old' })],
            idempotency: { key: 'k', route: 'r', fingerprint: 'f' },
          }),
        )
        await store.append(write(run, 1, { events: deltas(2, 3), newInteractions: [interaction('i', 'old')] }))
        await store.putBlob('b', 'old', 'x'.repeat(2_000_000))
        assert.equal((await store.readBlob('b'))?.body.length, 2_000_000)
        await endRun(store, run, 4, start + 10)
        const young = await claimedRun(store, 'young')
        await endRun(store, young, 1, start + 20)
        await claimedRun(store, 'open')

        assert.equal(await store.expireRuns(start + 20, 10), 1)

        assert.equal(await store.readRun('old'), undefined)
        assert.deepEqual((await store.readEvents('old', 0, 10)).events, [])
        assert.equal(await store.readInteraction('i'), undefined)
        assert.equal(await store.readBlob('b'), undefined)
        assert.equal(await store.findIdempotent('alice', 'r', 'k'), undefined)
        assert.deepEqual(await store.readMessage('m1'), message('m1', 'c', { runId: 'old' }))
        assert.deepEqual(await seqs(store, 'young'), [1])
        assert.deepEqual(await store.countRuns(), { succeeded: 1, queued: 1 })
      }),
    )

    test(
      'can be removed one by one, if they have ended',
      opened(async ({ store }) => {
        const accepted = acceptInput('old', { blobs: [{ id: 'early', body: 'earlier messages' }] })
        await store.accept(accepted)
        assert.deepEqual(await store.readBlob('early'), { runId: 'old', body: 'earlier messages' })
        assert.equal(await store.removeRun('old'), false)
        const [run] = await store.claim({ node: 'n', leaseMs: 1000, limit: 1 })
        assert.ok(run !== undefined)
        await endRun(store, run, 1, start + 10)

        assert.deepEqual([await store.removeRun('old'), await store.removeRun('old')], [true, false])

        assert.equal(await store.readRun('old'), undefined)
        assert.equal(await store.readBlob('early'), undefined)
        assert.deepEqual((await store.readEvents('old', 0, 10)).events, [])
      }),
    )

    test(
      'go oldest first, as many as were asked for',
      opened(async ({ store }) => {
        for (const [index, id] of ['a', 'b', 'c'].entries())
          await endRun(store, await claimedRun(store, id), 1, start + 10 - index)

        assert.equal(await store.expireRuns(start + 100, 2), 2)

        assert.ok((await store.readRun('a')) !== undefined)
        assert.equal(await store.expireRuns(start + 100, 2), 1)
        assert.equal(await store.expireRuns(start + 100, 2), 0)
      }),
    )
  })
}

// Contract: runs that ended on another server.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { OpenStore } from './open-store.ts'
import {
  beforeAndAfter,
  claimNow,
  deltas,
  inConversation,
  interaction,
  message,
  owner,
  readAll,
  start,
  withStore,
} from './store-fixtures.ts'

/** Of the year 2019: older than anything that the store has prepared for. */
const oldId = '01D0000000000000000000RVN1'

export function importContract(open: OpenStore): void {
  const opened = withStore(open)
  const ending = {
    run: {
      status: 'succeeded' as const,
      attempt: 2,
      startedAt: start + 1,
      endedAt: start + 9,
      engine: 'local',
      error: null,
    },
    newInteractions: [interaction('i1', oldId, { status: 'confirmed', conversationId: 'c' })],
    touchConversationAt: start + 9,
  }
  const input = (changes: Parameters<typeof inConversation>[3] = {}) =>
    inConversation(oldId, 'c', 'absent', {
      title: 'moved',
      events: deltas(1, 2500),
      messages: [message('m1', 'c', { runId: oldId }), message('m2', 'c', { runId: oldId, role: 'assistant' })],
      blobs: [{ id: 'b1', body: 'long' }],
      queueMax: Number.MAX_SAFE_INTEGER,
      ...changes,
    })

  describe('an imported run', () => {
    test(
      'is there as a whole, has ended, and is never claimed',
      opened(async ({ store, reopen }) => {
        await store.importRun(input(), ending)
        for await (const from of beforeAndAfter(store, reopen)) {
          const run = await from.readRun(oldId)
          assert.deepEqual(
            [run?.status, run?.owner, run?.attempt, run?.lastSeq, run?.startedAt, run?.endedAt, run?.leaseOwner],
            ['succeeded', owner, 2, 2500, start + 1, start + 9, null],
          )
          assert.deepEqual((await readAll(from, oldId)).events, deltas(1, 2500))
          assert.deepEqual(await from.claim({ ...claimNow, limit: 9 }), [])
          assert.deepEqual(await from.openRuns('c'), [])
          assert.equal((await from.countRuns()).queued ?? 0, 0)
          const shown = await from.listMessages('c', { limit: 9 })
          assert.deepEqual(
            shown.rows.map(({ id }) => id),
            ['m1', 'm2'],
          )
          assert.equal((await from.readInteraction('i1'))?.status, 'confirmed')
          assert.equal((await from.readBlob('b1'))?.runId, oldId)
          assert.equal((await from.readConversation('c'))?.title, 'moved')
        }
      }),
    )

    test(
      'that cannot be stored leaves nothing behind',
      opened(async ({ store }) => {
        await store.importRun(input(), ending)
        await assert.rejects(store.importRun(input(), ending))
        const other = inConversation('01D0000000000000000000RVN2', 'c2', 'absent', { events: deltas(1, 3) })
        // The interaction has the id of another one.
        await assert.rejects(store.importRun(other, { ...ending, newInteractions: [interaction('i1', other.run.id)] }))
        assert.equal(await store.readRun(other.run.id), undefined)
        assert.equal(await store.readConversation('c2'), undefined)
        assert.deepEqual((await readAll(store, other.run.id)).events, [])
      }),
    )
  })
}

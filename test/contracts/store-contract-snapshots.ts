// Contract: snapshots of one-shot runs, and equal requests that share an open run.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ContactStore } from '../../src/stores/contact-store.ts'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { AcceptInput, RunStore } from '../../src/stores/run-store.ts'
import {
  type NewSnapshot,
  type SnapshotRow,
  snapshotsKept,
  type SnapshotStore,
} from '../../src/stores/snapshot-store.ts'
import type { OpenStore } from './open-store.ts'
import { contact } from './store-contract-contacts.ts'
import {
  acceptInput,
  beforeAndAfter,
  claimedRun,
  claimNow,
  delta,
  endRun,
  inConversation,
  owner,
  start,
  withStore,
  write,
} from './store-fixtures.ts'

type Opened = RunStore & ConversationStore & ContactStore & SnapshotStore

function snapshot(id: string, changes: Partial<NewSnapshot> = {}): NewSnapshot {
  return {
    id,
    owner,
    agentId: 'insight',
    operation: null,
    scopeType: 'contact',
    scopeId: 'c1',
    sourceHash: 'hash',
    promptVersion: '1',
    model: 'demo/demo',
    runId: `run-${id}`,
    output: { of: id },
    createdAt: start,
    expiresAt: null,
    scopeMustExist: false,
    ...changes,
  }
}

function stored(row: NewSnapshot): SnapshotRow {
  const { scopeMustExist, ...rest } = row
  assert.equal(typeof scopeMustExist, 'boolean')
  return rest
}

/** Ends a run of its own with the snapshot. */
async function save(store: RunStore, row: NewSnapshot): Promise<void> {
  const run = await claimedRun(store, row.runId)
  const change = { status: 'succeeded' as const, endedAt: start, release: true }
  await store.append(write(run, 1, { events: [delta(2)], run: change, snapshot: row, durable: true }))
}

export function snapshotContract(open: OpenStore<Opened>): void {
  const opened = withStore(open)
  const ids = (rows: { id: string }[]) => rows.map((row) => row.id)

  describe('a snapshot', () => {
    test(
      'is written with the end of its run or not at all, and read as it was written',
      opened(async ({ store, reopen }) => {
        const row = snapshot('s', { operation: 'op', expiresAt: start + 5, output: { text: '你好', list: [1, null] } })
        const run = await claimedRun(store, row.runId)
        const end = { status: 'succeeded' as const, endedAt: start, release: true }
        await assert.rejects(store.append(write(run, 9, { run: end, snapshot: row })), { code: 'run_fenced' })
        assert.equal(await store.readSnapshot('s'), undefined)

        await store.append(write(run, 1, { events: [delta(2)], run: end, snapshot: row, durable: true }))

        for await (const from of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await from.readSnapshot('s'), stored(row))
          assert.deepEqual(await from.findSnapshotOfRun(row.runId), stored(row))
        }
      }),
    )

    test(
      'with a large output is read as it was written',
      opened(async ({ store }) => {
        const row = snapshot('s', { output: { text: 'x"\n'.repeat(400_000) } })
        await save(store, row)

        assert.deepEqual((await store.readSnapshot('s'))?.output, row.output)
      }),
    )

    test(
      'answers a request only if every part of the key is equal',
      opened(async ({ store }) => {
        const row = snapshot('s', { operation: 'op' })
        await save(store, row)

        assert.equal((await store.findSnapshot(row, start))?.id, 's')
        for (const change of [
          { owner: 'bob' },
          { agentId: 'other' },
          { operation: null },
          { operation: 'other' },
          { scopeType: 'conversation' as const },
          { scopeId: 'c2' },
          { scopeId: null },
          { sourceHash: 'other' },
          { promptVersion: '2' },
          { model: 'openai/gpt' },
        ]) {
          assert.equal(await store.findSnapshot({ ...row, ...change }, start), undefined, JSON.stringify(change))
        }
      }),
    )

    test(
      'answers until it expires; the newest one counts',
      opened(async ({ store }) => {
        await save(store, snapshot('for-ever'))
        await save(store, snapshot('until', { expiresAt: start + 10 }))
        const at = async (now: number) => (await store.findSnapshot(snapshot('x'), now))?.id

        assert.deepEqual([await at(start), await at(start + 9), await at(start + 10)], ['until', 'until', 'for-ever'])
      }),
    )

    test(
      'has a snapshot before it if one of the same subject was written earlier, whatever its source or version',
      opened(async ({ store }) => {
        await save(store, snapshot('a', { sourceHash: 'old', promptVersion: '0', createdAt: start + 99 }))
        await save(store, snapshot('other-scope', { scopeId: 'c2' }))
        await save(store, snapshot('theirs', { owner: 'bob' }))
        await save(store, snapshot('b'))

        assert.equal((await store.snapshotBefore('b'))?.id, 'a')
        assert.equal(await store.snapshotBefore('a'), undefined)
        assert.equal(await store.snapshotBefore('nothing'), undefined)
      }),
    )

    test(
      'is listed for its owner, newest first, by agent, operation and scope, page by page',
      opened(async ({ store }) => {
        await save(store, snapshot('a', { createdAt: start + 9 }))
        await save(store, snapshot('b', { operation: 'op' }))
        await save(store, snapshot('c', { agentId: 'other', scopeId: 'c2' }))
        await save(store, snapshot('d', { scopeType: 'conversation' }))
        await save(store, snapshot('theirs', { owner: 'bob' }))
        const list = async (filter: object) => {
          const { rows, more } = await store.listSnapshots({ owner, limit: 10, ...filter })
          return [...ids(rows), ...(more ? ['…'] : [])]
        }

        assert.deepEqual(await list({}), ['d', 'c', 'b', 'a'])
        assert.deepEqual(await list({ agentId: 'insight' }), ['d', 'b', 'a'])
        assert.deepEqual(await list({ operation: null }), ['d', 'c', 'a'])
        assert.deepEqual(await list({ operation: 'op' }), ['b'])
        assert.deepEqual(await list({ scopeIds: ['c2', 'c3'] }), ['c'])
        assert.deepEqual(await list({ scopeType: 'conversation' }), ['d'])
        assert.deepEqual(await list({ limit: 2 }), ['d', 'c', '…'])
        assert.deepEqual(await list({ limit: 2, before: 'c' }), ['b', 'a'])
      }),
    )

    test(
      'pushes out the oldest one of its subject if there are too many, and none of another subject',
      opened(async ({ store }) => {
        await save(store, snapshot('other', { scopeId: 'c2' }))
        for (let index = 0; index <= snapshotsKept.contact; index++) await save(store, snapshot(`s${index}`))

        const { rows } = await store.listSnapshots({ owner, scopeIds: ['c1'], limit: 100 })
        assert.equal(rows.length, snapshotsKept.contact)
        assert.equal(rows.at(-1)?.id, 's1')
        assert.ok((await store.readSnapshot('other')) !== undefined)
      }),
    )

    test(
      'outlives its run, and is removed when it expired long enough ago',
      opened(async ({ store }) => {
        await save(store, snapshot('a', { expiresAt: start + 10 }))
        await save(store, snapshot('b', { expiresAt: start + 20 }))
        await save(store, snapshot('c'))
        await store.expireRuns(start + 1, 100)
        assert.equal(await store.readRun('run-a'), undefined)

        assert.equal(await store.expireSnapshots(start + 10, 9), 0)
        assert.equal(await store.expireSnapshots(start + 30, 1), 1)
        assert.deepEqual(ids((await store.listSnapshots({ owner, limit: 9 })).rows), ['c', 'b'])
        assert.equal(await store.expireSnapshots(start + 30, 9), 1)
        assert.equal(await store.expireSnapshots(start + 30, 9), 0)
        assert.deepEqual(ids((await store.listSnapshots({ owner, limit: 9 })).rows), ['c'])
      }),
    )

    test(
      'goes with the conversation of its scope, by id or by a name of it, and only for that owner',
      opened(async ({ store }) => {
        const { run } = await store.accept(inConversation('r', 'c', 'absent', { name: 'conv_1', claim: claimNow }))
        await endRun(store, run, 1)
        const of = (id: string, scopeId: string, by = owner) =>
          save(store, snapshot(id, { scopeType: 'conversation', scopeId, owner: by }))
        await of('by-id', 'c')
        await of('by-name', 'conv_1')
        await of('other', 'conv_2')
        await of('theirs', 'conv_1', 'bob')
        await save(store, snapshot('contact', { scopeId: 'conv_1' }))

        await store.deleteConversation('c')

        assert.deepEqual(ids((await store.listSnapshots({ owner, limit: 9 })).rows), ['contact', 'other'])
        assert.deepEqual(ids((await store.listSnapshots({ owner: 'bob', limit: 9 })).rows), ['theirs'])
      }),
    )

    test(
      'goes with the contact of its scope, only for that owner, and is not stored after that',
      opened(async ({ store }) => {
        for (const id of ['c1', 'c2']) await store.createContact(contact(id), 10)
        await save(store, snapshot('of-c1', { scopeMustExist: true }))
        await save(store, snapshot('of-c2', { scopeId: 'c2', scopeMustExist: true }))
        await save(store, snapshot('conversation', { scopeType: 'conversation' }))
        await save(store, snapshot('theirs', { owner: 'bob' }))

        await store.deleteContact(owner, 'c1')
        await save(store, snapshot('late', { scopeMustExist: true }))

        assert.deepEqual(ids((await store.listSnapshots({ owner, limit: 9 })).rows), ['conversation', 'of-c2'])
        assert.deepEqual(ids((await store.listSnapshots({ owner: 'bob', limit: 9 })).rows), ['theirs'])
        assert.equal((await store.readRun('run-late'))?.status, 'succeeded')
      }),
    )

    test(
      'of a conversation that was deleted in the meantime is not stored; the run ends all the same',
      opened(async ({ store }) => {
        await store.createConversation({ id: 'c', owner, title: null, createdAt: start, updatedAt: start })
        await store.createConversation({ id: 'd', owner, title: null, createdAt: start, updatedAt: start })
        const scoped = { scopeType: 'conversation' as const, scopeMustExist: true }
        await store.deleteConversation('c')

        await save(store, snapshot('gone', { ...scoped, scopeId: 'c' }))
        await save(store, snapshot('there', { ...scoped, scopeId: 'd' }))
        await save(store, snapshot('unchecked', { ...scoped, scopeId: 'c', scopeMustExist: false }))

        assert.equal((await store.readRun('run-gone'))?.status, 'succeeded')
        assert.deepEqual(ids((await store.listSnapshots({ owner, limit: 9 })).rows), ['unchecked', 'there'])
      }),
    )
  })

  describe('a shared run', () => {
    const asks = (id: string, changes: Partial<AcceptInput> & { runOwner?: string } = {}) =>
      acceptInput(id, { share: { key: 'k' }, ...changes })

    test(
      'answers equal requests of its owner while it is open, also after a restart',
      opened(async ({ store, reopen }) => {
        const results = await Promise.all(['a', 'b', 'c'].map((id) => store.accept(asks(id))))
        const outcomes = results.map(({ outcome, run, shared }) => [outcome, run.id, shared])
        assert.deepEqual(outcomes, [
          ['accepted', 'a', undefined],
          ['existing', 'a', true],
          ['existing', 'a', true],
        ])

        const again = await reopen()
        assert.equal((await again.accept(asks('d'))).run.id, 'a')
        assert.equal((await again.accept(asks('e', { share: { key: 'other' } }))).run.id, 'e')
        assert.equal((await again.accept(asks('f', { runOwner: 'bob' }))).run.id, 'f')
        assert.equal((await again.accept(acceptInput('g'))).run.id, 'g')
      }),
    )

    test(
      'answers no more when it has ended, whatever the end, or when its cancel was requested',
      opened(async ({ store }) => {
        for (const [index, status] of (['succeeded', 'failed', 'canceled'] as const).entries()) {
          const { run } = await store.accept(asks(`r${index}`, { claim: claimNow }))
          assert.equal(run.id, `r${index}`)
          await store.append(write(run, 1, { run: { status, endedAt: start, release: true } }))
        }
        await store.accept(asks('r3'))
        await store.requestCancel('r3', { by: owner, reason: null, at: start })

        assert.equal((await store.accept(asks('r4'))).run.id, 'r4')
      }),
    )

    test(
      'is found again by the idempotency key of a request that joined it; another request with that key is refused',
      opened(async ({ store }) => {
        const idempotency = { key: 'i', route: 'POST', fingerprint: 'f' }
        const { run } = await store.accept(asks('a', { claim: claimNow }))
        await store.accept(asks('b', { idempotency }))
        await endRun(store, run, 1)

        const again = await store.accept(asks('c', { idempotency }))
        assert.deepEqual([again.outcome, again.run.id, again.reused], ['existing', 'a', undefined])
        await assert.rejects(store.accept(asks('d', { idempotency: { ...idempotency, fingerprint: 'g' } })), {
          code: 'idempotency_key_reused',
        })
      }),
    )

    test(
      'is not accepted if a snapshot answers the request by now; an expired one does not',
      opened(async ({ store }) => {
        const row = snapshot('s', { expiresAt: start + 10 })
        await save(store, row)
        const share = { key: 'k', unlessSnapshot: row }

        await assert.rejects(store.accept(asks('a', { share })), { code: 'accept_stale' })
        assert.equal(await store.readRun('a'), undefined)
        const late = acceptInput('b', { share, createdAt: start + 10 })
        assert.equal((await store.accept(late)).outcome, 'accepted')
        assert.equal((await store.accept(asks('c', { share }))).run.id, 'b', 'an open run comes first')
      }),
    )
  })

  describe('a request that an earlier run answered', () => {
    test(
      'binds its idempotency key to that run, once; another request with the key is refused',
      opened(async ({ store, reopen }) => {
        await endRun(store, await claimedRun(store, 'r'), 1)
        await endRun(store, await claimedRun(store, 'q'), 1)
        const request = { owner, route: 'POST', key: 'i', fingerprint: 'f', runId: 'r' }
        await store.bindIdempotencyKey(request)
        await store.bindIdempotencyKey({ ...request, runId: 'q' })
        await store.bindIdempotencyKey({ ...request, key: 'j', runId: 'removed' })
        await assert.rejects(store.bindIdempotencyKey({ ...request, fingerprint: 'g' }), {
          code: 'idempotency_key_reused',
        })

        const again = await reopen()
        const bound = { runId: 'r', fingerprint: 'f', reused: true }
        assert.deepEqual(await again.findIdempotent(owner, 'POST', 'i'), bound)
        assert.equal(await again.findIdempotent(owner, 'POST', 'j'), undefined)
      }),
    )
  })
}

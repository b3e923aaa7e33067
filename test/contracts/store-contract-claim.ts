// Contract: claims, leases, cancel requests, and the lists of runs.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ClaimRequest, RunRow, RunStore } from '../../src/stores/run-store.ts'
import type { InteractionStore } from '../../src/stores/interaction-store.ts'
import type { OpenStore } from './open-store.ts'
import {
  acceptInput,
  claimedRun,
  claimNow,
  delta,
  endRun,
  farAway,
  inConversation,
  interaction,
  owner,
  start,
  withStore,
  write,
} from './store-fixtures.ts'

export function claimContract(open: OpenStore<RunStore & InteractionStore>): void {
  const opened = withStore(open)
  const claim = (store: RunStore, changes: Partial<ClaimRequest> = {}) =>
    store.claim({ ...claimNow, node: 'node-b', limit: 100, ...changes })
  const ids = (runs: RunRow[]) => runs.map((run) => run.id)

  describe('claim', () => {
    test(
      'takes queued runs oldest first, up to the limit, each with a new epoch',
      opened(async ({ store }) => {
        for (const id of ['z', 'a', 'm']) await store.accept(acceptInput(id))

        const first = await claim(store, { limit: 2 })
        const second = await claim(store, { limit: 2 })

        assert.deepEqual(ids(first), ['z', 'a'])
        assert.deepEqual(ids(second), ['m'])
        assert.deepEqual(
          [first[0]?.epoch, first[0]?.leaseOwner, first[0]?.leaseUntil, first[0]?.lastSeq],
          [1, 'node-b', farAway, 1],
        )
        assert.deepEqual(await store.readRun('z'), first[0])
      }),
    )

    test(
      'gives each run to one node, however many ask at once',
      opened(async ({ store }) => {
        await Promise.all(Array.from({ length: 40 }, (_, index) => store.accept(acceptInput(`r${index}`))))

        const claims = await Promise.all(
          Array.from({ length: 12 }, (_, index) => claim(store, { node: `node-${index}`, limit: 5 })),
        )

        const all = claims.flat()
        assert.equal(all.length, 40)
        assert.equal(new Set(ids(all)).size, 40)
        assert.ok(claims.every((runs) => runs.length <= 5))
      }),
    )

    test(
      'keeps the turns of a conversation: one at a time, in the order of acceptance',
      opened(async ({ store }) => {
        await store.accept(inConversation('r1', 'c', 'absent'))
        await store.accept(inConversation('r2', 'c', 'present', { expectBehind: 'r1' }))
        await store.accept(inConversation('r3', 'c', 'present', { expectBehind: 'r2' }))
        await store.accept(inConversation('other', 'd', 'absent'))

        const [first, other] = await claim(store)
        assert.deepEqual([first?.id, other?.id], ['r1', 'other'])
        assert.deepEqual(await claim(store), [])
        await store.append(write(first!, 1, { run: { status: 'waiting_user', release: true } }))
        assert.deepEqual(await claim(store), [])
        await store.requestCancel('r1', { by: owner, reason: null, at: start })
        const [again] = await claim(store)
        await endRun(store, again!, 1)
        assert.deepEqual(ids(await claim(store)), ['r2'])
        assert.deepEqual(ids(await store.openRuns('c')), ['r2', 'r3'])
      }),
    )

    test(
      'takes a running run whose lease has run out, and no other',
      opened(async ({ store, time }) => {
        const run = await claimedRun(store, 'r')
        await store.append(write(run, 1, { events: [delta(2)], run: { status: 'running' } }))
        await store.append(write(run, 2, { events: [delta(3)] }))

        await time.set(farAway - 1)
        assert.deepEqual(await claim(store), [])
        await time.set(farAway)
        const [taken] = await claim(store)

        assert.deepEqual([taken?.epoch, taken?.lastSeq, taken?.leaseOwner], [run.epoch + 1, 3, 'node-b'])
        assert.equal(taken?.takenFrom, run.leaseOwner)
      }),
    )

    test('judges leases by a clock that is not set with the wall clock, if the store has one', async (context) => {
      const { store, time, cleanup } = await open()
      try {
        if (time.setLeases === undefined) return context.skip('this store judges both by one clock')
        const run = await claimedRun(store, 'r')
        await store.append(write(run, 1, { run: { status: 'running' } }))
        await time.set(farAway * 9)
        await time.setLeases(farAway - 1)

        assert.deepEqual(await claim(store), [])
      } finally {
        await cleanup()
      }
    })

    test(
      'takes a parked run when its time has come, and again if its node dies at once',
      opened(async ({ store, time }) => {
        const run = await claimedRun(store, 'r')
        await store.append(write(run, 1, { run: { status: 'waiting_user', wakeAt: start + 100, release: true } }))
        await endRun(store, await claimedRun(store, 'ended'), 1)

        assert.equal(await store.msUntilWake('node-b'), 100)
        await time.set(start + 99)
        assert.deepEqual(await claim(store), [])
        await time.set(start + 100)
        assert.equal(await store.msUntilWake('node-b'), 0)
        assert.deepEqual(ids(await claim(store, { leaseMs: 100 })), ['r'])
        assert.equal(await store.msUntilWake('node-b'), null)
        await time.set(start + 150)
        assert.deepEqual(await claim(store), [])
        await time.set(start + 200)
        assert.deepEqual(ids(await claim(store)), ['r'])
      }),
    )

    test(
      'finds out when the leases of other nodes end, so that a dead node is replaced in time',
      opened(async ({ store, time }) => {
        await store.accept(acceptInput('mine', { claim: { node: 'node-b', leaseMs: 10 } }))
        assert.equal(await store.msUntilWake('node-b'), null, 'its own leases do not count')
        await store.accept(acceptInput('long', { claim: { node: 'node-c', leaseMs: 900 } }))
        const parked = await store.accept(acceptInput('parked', { claim: { node: 'node-a', leaseMs: 300 } }))
        await store.append(write(parked.run, 1, { run: { status: 'waiting_user', wakeAt: start + 700 } }))

        assert.equal(await store.msUntilWake('node-b'), 300, 'a parked run that is being looked at has a lease too')
        await time.set(start + 100)
        await store.renewLeases({ node: 'node-a', leaseMs: 300 }, ['parked'])
        assert.equal(await store.msUntilWake('node-b'), 300)
        await store.append(write(parked.run, 1, { run: { release: true } }))
        assert.equal(await store.msUntilWake('node-b'), 600)
        await time.set(start + 900)
        assert.equal(await store.msUntilWake('node-b'), 0)
        assert.deepEqual(ids(await claim(store)), ['mine', 'long', 'parked'])
        assert.equal(await store.msUntilWake('node-b'), null)
      }),
    )

    test(
      'leaves a parked run without a time alone',
      opened(async ({ store, time }) => {
        const run = await claimedRun(store, 'r')
        await store.append(write(run, 1, { run: { status: 'waiting_user', release: true } }))

        await time.set(farAway * 2)
        assert.deepEqual(await claim(store), [])
        assert.equal(await store.msUntilWake('node-b'), null)
      }),
    )

    test(
      'takes runs whose cancel was requested beyond the limit, wherever they stand',
      opened(async ({ store }) => {
        await store.accept(inConversation('first', 'c', 'absent', { claim: claimNow }))
        await store.accept(inConversation('behind', 'c', 'present', { expectBehind: 'first' }))
        const parked = await claimedRun(store, 'parked')
        await store.append(write(parked, 1, { run: { status: 'waiting_user', release: true } }))
        await store.accept(acceptInput('queued'))
        for (const id of ['behind', 'parked', 'first'])
          await store.requestCancel(id, { by: owner, reason: null, at: start })

        assert.deepEqual(ids(await claim(store, { limit: 0 })), ['behind', 'parked'])
        assert.deepEqual(ids(await claim(store, { limit: 1 })), ['queued'])
      }),
    )

    test(
      'never takes an ended run',
      opened(async ({ store, time }) => {
        const run = await claimedRun(store, 'r')
        await store.append(write(run, 1, { run: { status: 'canceled', endedAt: start, wakeAt: start } }))

        await time.set(farAway * 2)
        assert.deepEqual(await claim(store), [])
      }),
    )
  })

  describe('leases', () => {
    test(
      'are renewed for the runs that a node names and holds; it learns of cancel requests and lost runs',
      opened(async ({ store, time }) => {
        await claimedRun(store, 'a')
        const b = await claimedRun(store, 'b')
        await store.append(write(b, 1, { events: [delta(2)] }))
        await endRun(store, await claimedRun(store, 'ended'), 1)
        await store.accept(acceptInput('other', { claim: { ...claimNow, node: 'node-b' } }))
        await claimedRun(store, 'orphan')
        await store.requestCancel('a', { by: owner, reason: 'enough', at: start + 1 })

        await time.set(start + 500)
        const runs = await store.renewLeases(claimNow, ['a', 'b', 'ended', 'other', 'no such run'])

        assert.deepEqual(ids(runs).sort(), ['a', 'b'])
        assert.ok(runs.every((run) => run.leaseUntil === farAway + 500))
        assert.deepEqual(runs.find((run) => run.id === 'a')?.cancel, { by: owner, reason: 'enough', at: start + 1 })
        assert.equal(runs.find((run) => run.id === 'b')?.lastSeq, 2)
        assert.deepEqual(await store.renewLeases({ ...claimNow, node: 'nobody' }, ['a', 'b']), [])
        assert.equal((await store.readRun('orphan'))?.leaseUntil, farAway, 'a lease that nobody names runs out')
        assert.equal((await store.readRun('other'))?.leaseUntil, farAway, 'the lease of another node is its own')
      }),
    )
  })

  describe('a cancel request', () => {
    test(
      'is recorded once, the first counts, and it wakes the run',
      opened(async ({ store, time }) => {
        const run = await claimedRun(store, 'r')
        await store.append(write(run, 1, { run: { status: 'waiting_user', wakeAt: start + 500, release: true } }))

        const first = await store.requestCancel('r', { by: 'alice', reason: null, at: start + 5 })
        const second = await store.requestCancel('r', { by: 'bob', reason: 'late', at: start + 6 })

        assert.deepEqual(first?.cancel, { by: 'alice', reason: null, at: start + 5 })
        assert.deepEqual(second?.cancel, first?.cancel)
        // At once, also by a clock that is set back afterwards.
        await time.set(start - 1000)
        assert.equal(await store.msUntilWake('node-b'), 0)
      }),
    )

    test(
      'for an ended run changes nothing, and for an unknown one says so',
      opened(async ({ store }) => {
        await endRun(store, await claimedRun(store, 'r'), 1)
        const before = await store.readRun('r')

        assert.deepEqual(await store.requestCancel('r', { by: owner, reason: null, at: start }), before)
        assert.equal(await store.requestCancel('nobody', { by: owner, reason: null, at: start }), undefined)
      }),
    )

    test(
      'does not stop its writer: the epoch stays',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')

        await store.requestCancel('r', { by: owner, reason: null, at: start })

        await store.append(write(run, 1, { events: [delta(2)] }))
      }),
    )
  })

  describe('a wake-up', () => {
    test(
      'that comes while the run is at work is not lost when it parks',
      opened(async ({ store, time }) => {
        const run = await claimedRun(store, 'r')
        await store.append(write(run, 1, { run: { status: 'running' }, newInteractions: [interaction('i', 'r')] }))
        await store.decide('i', { status: 'confirmed', by: owner, at: start + 5 })
        await store.append(write(run, 1, { run: { status: 'waiting_user', wakeAt: start + 9000, release: true } }))

        await time.set(start + 5)
        assert.deepEqual(ids(await claim(store)), ['r'])
        const [again] = (await store.listRuns({ owner, limit: 1 })).rows
        await store.append(write(again!, 1, { run: { wakeAt: start + 9000, release: true } }))
        await time.set(start + 8999)
        assert.deepEqual(await claim(store), [])
      }),
    )
  })

  describe('runs', () => {
    test(
      'are listed newest first, by owner, conversation, status and family, in pages',
      opened(async ({ store }) => {
        await store.accept(inConversation('r1', 'c', 'absent'))
        await store.accept(inConversation('r2', 'c', 'present', { expectBehind: 'r1' }))
        const run = await claimedRun(store, 'r3')
        await store.accept(acceptInput('theirs', { runOwner: 'bob' }))
        await store.append(write(run, 1, { events: [delta(2)], run: { status: 'running' } }))
        await store.append(write(run, 2, { events: [delta(3)] }))

        assert.deepEqual(ids((await store.listRuns({ owner, limit: 10 })).rows), ['r3', 'r2', 'r1'])
        assert.equal((await store.listRuns({ owner, limit: 1 })).rows[0]?.lastSeq, 3)
        assert.deepEqual(ids((await store.listRuns({ owner, limit: 1, before: 'r3' })).rows), ['r2'])
        assert.deepEqual(ids((await store.listRuns({ owner, limit: 10, conversationId: 'c' })).rows), ['r2', 'r1'])
        assert.deepEqual(ids((await store.listRuns({ owner, limit: 10, status: ['running', 'failed'] })).rows), ['r3'])
        assert.deepEqual((await store.listRuns({ owner, limit: 10, status: [] })).rows, [])
        assert.deepEqual((await store.listRuns({ owner, limit: 10, family: 'jobs' })).rows, [])
        assert.deepEqual(await store.countRuns(), { queued: 3, running: 1 })
        assert.equal(await store.readRun('nobody'), undefined)
      }),
    )
  })
}

// Contract: held runs, runs that answer equal requests, and files that belong to a run.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { HeldStart, RunStore } from '../../src/stores/run-store.ts'
import type { InteractionStore } from '../../src/stores/interaction-store.ts'
import type { OpenStore } from './open-store.ts'
import { acceptInput, claimedRun, claimNow, delta, owner, seqs, start, withStore, write } from './store-fixtures.ts'

export function jobContract(open: OpenStore<RunStore & InteractionStore>): void {
  const opened = withStore(open)
  const claimAll = (store: RunStore) => store.claim({ ...claimNow, limit: 10 })
  const starting = (changes: Partial<HeldStart> = {}): HeldStart => ({
    runId: 'r',
    afterSeq: 1,
    events: [delta(2)],
    blobs: [{ id: 'r:a', body: 'A' }],
    queueMax: 10,
    claim: null,
    ...changes,
  })
  const hold = (store: RunStore, id = 'r') =>
    store.accept(acceptInput(id, { held: {}, claim: claimNow, events: [delta(1)] }))

  describe('a held run', () => {
    test(
      'is there and queued, is claimed by nobody, and takes no room in the queue',
      opened(async ({ store, reopen }) => {
        const { run } = await store.accept(
          acceptInput('r', { held: {}, claim: claimNow, queueMax: 0, events: [delta(1)] }),
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
          const input = acceptInput(id, { held: { max }, events: [delta(1)] })
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

  describe('a held run with a deadline', () => {
    const heldUntil = start + 100
    const holds = (store: RunStore, id = 'r') =>
      store.accept(acceptInput(id, { held: { until: heldUntil }, events: [delta(1)] }))

    test(
      'is claimable from then on and not before, also after a restart, and names the time to wake up',
      opened(async ({ store, time, reopen }) => {
        await holds(store)
        await hold(store, 'for ever')

        await time.set(heldUntil - 1)
        assert.deepEqual(await claimAll(store), [])
        const again = await reopen()
        assert.equal(await again.msUntilWake('node-a'), 1)
        await time.set(heldUntil)
        assert.deepEqual(
          (await claimAll(again)).map(({ id, status }) => [id, status]),
          [['r', 'queued']],
        )
        assert.equal(await again.msUntilWake('node-a'), null)
      }),
    )

    test(
      'that was claimed takes no upload any more; one that was started has no deadline',
      opened(async ({ store, time }) => {
        await holds(store)
        await holds(store, 'q')
        await store.startHeld(starting({ runId: 'q', blobs: [], claim: claimNow }))

        await time.set(heldUntil)
        const claimed = await claimAll(store)

        assert.deepEqual(
          claimed.map(({ id }) => id),
          ['r'],
        )
        await assert.rejects(store.startHeld(starting()), { code: 'run_fenced' })
        assert.equal((await store.readRun('q'))?.wakeAt, null)
      }),
    )
  })

  describe('an equal request', () => {
    const succeed = async (store: RunStore, id: string, cacheKey: string, runOwner = owner) => {
      const { run } = await store.accept(acceptInput(id, { runOwner, claim: claimNow }))
      await store.append(
        write(run, 1, { events: [delta(2)], run: { status: 'succeeded', endedAt: start, release: true, cacheKey } }),
      )
    }
    const asks = (id: string, key: string | null = null, cacheKey = 'k') =>
      acceptInput(id, {
        reuse: { cacheKey },
        idempotency: key === null ? null : { key, route: 'POST', fingerprint: 'print' },
      })

    test(
      'is answered with the newest run that succeeded under its key, and makes none',
      opened(async ({ store, reopen }) => {
        await succeed(store, 'one', 'k')
        await succeed(store, 'two', 'k')
        await succeed(store, 'three', 'other')
        await succeed(store, 'four', 'k', 'bob')

        const { outcome, run, reused } = await store.accept(asks('new'))

        assert.deepEqual([outcome, run.id, reused], ['existing', 'two', true])
        assert.equal(await (await reopen()).readRun('new'), undefined)
      }),
    )

    test(
      'that comes again with its idempotency key gets the same answer, also when a newer run could answer it',
      opened(async ({ store }) => {
        await succeed(store, 'one', 'k')
        await store.accept(asks('new', 'key'))
        await succeed(store, 'two', 'k')

        const again = await store.accept(asks('newer', 'key'))

        assert.deepEqual([again.outcome, again.run.id, again.reused], ['existing', 'one', true])
      }),
    )

    test(
      'is accepted if no run succeeded under its key: one that failed, or still runs, is no answer',
      opened(async ({ store }) => {
        const { run } = await store.accept(acceptInput('failed', { claim: claimNow }))
        await store.append(
          write(run, 1, {
            run: { status: 'failed', endedAt: start, release: true, cacheKey: 'k' },
            events: [delta(2)],
          }),
        )

        const { outcome, run: accepted, reused } = await store.accept(asks('new', 'key'))
        const again = await store.accept(asks('newer', 'key'))

        assert.deepEqual([outcome, accepted.id, reused], ['accepted', 'new', undefined])
        assert.deepEqual([again.run.id, again.reused], ['new', undefined])
        assert.equal(await store.findCached(owner, 'k'), undefined)
      }),
    )
  })

  describe('jobs of an owner', () => {
    const family = (id: string, name: string, skillId?: string, runOwner = owner) => {
      const input = acceptInput(id, { runOwner, claim: claimNow })
      return { ...input, run: { ...input.run, family: name, ...(skillId === undefined ? {} : { skillId }) } }
    }

    test(
      'are listed by family and skill; an upload may bring the skill',
      opened(async ({ store }) => {
        await store.accept(family('a', 'jobs', 'one'))
        await store.accept(family('b', 'jobs', 'two'))
        await store.accept(family('c', 'temp', 'one'))
        await store.accept(family('d', 'jobs', 'one', 'bob'))
        await store.accept({ ...family('e', 'jobs'), held: {}, claim: null })
        await store.startHeld(starting({ runId: 'e', skillId: 'one', blobs: [] }))
        const list = async (filter: object) =>
          (await store.listRuns({ owner, limit: 10, ...filter })).rows.map(({ id, skillId }) => `${id} ${skillId}`)

        assert.deepEqual(await list({ family: 'jobs', skillId: 'one' }), ['e one', 'a one'])
        assert.deepEqual(await list({ family: 'jobs', skillId: 'one', before: 'e' }), ['a one'])
        assert.deepEqual(await list({ skillId: 'three' }), [])
      }),
    )

    test(
      'are removed with everything that is theirs once they have ended, oldest first and a few at a time',
      opened(async ({ store, reopen }) => {
        for (const [id, name, runOwner, cacheKey] of [
          ['a', 'jobs', owner, 'k'],
          ['b', 'temp', owner, undefined],
          ['c', 'jobs', owner, undefined],
          ['d', 'agent', owner, undefined],
          ['e', 'jobs', 'bob', 'k'],
        ] as const) {
          const { run } = await store.accept(family(id, name, 'skill', runOwner))
          const change = { status: 'succeeded' as const, endedAt: start, release: true }
          await store.append(
            write(run, 1, { events: [delta(2)], run: { ...change, ...(cacheKey === undefined ? {} : { cacheKey }) } }),
          )
          await store.putBlob(`${id}:x`, id, 'x')
        }
        await store.accept(family('open', 'jobs', 'skill'))
        const remove = () => store.removeEndedRuns({ owner, families: ['jobs', 'temp'], limit: 2 })

        assert.deepEqual(
          [await remove(), await remove(), await remove()],
          [
            { removed: 2, cached: 1 },
            { removed: 1, cached: 0 },
            { removed: 0, cached: 0 },
          ],
        )

        const again = await reopen()
        const left = await Promise.all(
          ['a', 'b', 'c', 'd', 'e', 'open'].map(async (id) => [(await again.readRun(id))?.id, await seqs(again, id)]),
        )
        assert.deepEqual(left.slice(0, 3), [
          [undefined, []],
          [undefined, []],
          [undefined, []],
        ])
        assert.deepEqual(
          left.slice(3).map(([id]) => id),
          ['d', 'e', 'open'],
        )
        assert.deepEqual([await again.readBlob('a:x'), (await again.readBlob('e:x'))?.body], [undefined, 'x'])
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

// Contract: how many runs are executed and queued over all nodes, and which node may take a run.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as fc from 'fast-check'
import type { AppError } from '../../src/errors/app-error.ts'
import type { AcceptInput, ClaimRequest, RunRow, RunStore } from '../../src/stores/run-store.ts'
import type { NodeStore } from '../../src/stores/node-store.ts'
import type { OpenStore } from './open-store.ts'
import { acceptInput, claimNow, delta, endRun, farAway, owner, start, withStore, write } from './store-fixtures.ts'

export function slotContract(open: OpenStore<RunStore & NodeStore>): void {
  const opened = withStore(open)
  const ids = (runs: RunRow[]) => runs.map((run) => run.id)
  const lease = (slots: number, node = 'node-a') => ({ ...claimNow, node, slots })
  const claim = (store: RunStore, slots: number, changes: Partial<ClaimRequest> = {}) =>
    store.claim({ ...lease(slots, 'node-b'), limit: 100, ...changes })
  const accept = async (store: RunStore, id: string, slots: number, changes: Partial<AcceptInput> = {}) =>
    (await store.accept(acceptInput(id, { claim: lease(slots), ...changes }))).run
  const needing = (id: string, needs: string[]): AcceptInput => {
    const input = acceptInput(id)
    return { ...input, run: { ...input.run, needs } }
  }

  describe('slots', () => {
    test(
      'are counted over all nodes: a run beyond them is queued, whoever accepts it',
      opened(async ({ store }) => {
        const one = await accept(store, 'one', 2)
        const two = (await store.accept(acceptInput('two', { claim: lease(2, 'node-b') }))).run
        const three = (await store.accept(acceptInput('three', { claim: lease(2, 'node-c') }))).run

        assert.deepEqual([one.leaseOwner, two.leaseOwner, three.leaseOwner], ['node-a', 'node-b', null])
        assert.deepEqual(await claim(store, 2), [])
        await endRun(store, one, 1)
        assert.deepEqual(ids(await claim(store, 2)), ['three'])
      }),
    )

    test(
      'bound a claim, and the oldest runs get the free ones',
      opened(async ({ store }) => {
        await accept(store, 'busy', 3)
        for (const id of ['z', 'a', 'm']) await store.accept(acceptInput(id))

        assert.deepEqual(ids(await claim(store, 3)), ['z', 'a'])
        assert.deepEqual(await claim(store, 3, { node: 'node-c' }), [])
        assert.deepEqual(ids(await claim(store, 4)), ['m'])
      }),
    )

    test(
      'are free again when a run parks, is released or ends',
      opened(async ({ store }) => {
        const park = await accept(store, 'park', 3)
        const release = await accept(store, 'release', 3)
        const end = await accept(store, 'end', 3)
        assert.equal((await accept(store, 'too many', 3)).leaseOwner, null)

        await store.append(write(park, 1, { run: { status: 'waiting_user', release: true } }))
        assert.deepEqual(ids(await claim(store, 3)), ['too many'])
        await store.append(write(release, 1, { run: { release: true } }))
        assert.deepEqual(ids(await claim(store, 3)), ['release'])
        await endRun(store, end, 1)
        assert.equal((await accept(store, 'after the end', 3)).leaseOwner, 'node-a')
        assert.equal((await accept(store, 'last', 3)).leaseOwner, null)
      }),
    )

    test(
      'of a lease that has run out are free, also for other runs',
      opened(async ({ store, time }) => {
        const dead = await accept(store, 'dead', 1)
        await store.append(write(dead, 1, { run: { status: 'running' } }))
        await store.accept(acceptInput('waiting'))
        assert.deepEqual(await claim(store, 1), [])

        await time.set(farAway)

        assert.deepEqual(ids(await claim(store, 1)), ['dead'])
        assert.deepEqual(await claim(store, 1, { node: 'node-c' }), [])
      }),
    )

    test(
      'of a dead node do not block the cluster if the run of the slot cannot be taken',
      opened(async ({ store, time }) => {
        const input = needing('dead', ['dir:gone'])
        await store.accept({ ...input, claim: lease(1) })
        await store.accept(acceptInput('waiting'))
        await time.set(farAway)

        assert.deepEqual(ids(await claim(store, 1)), ['waiting'])
      }),
    )

    test(
      'are not needed to end a cancelled run',
      opened(async ({ store }) => {
        await accept(store, 'busy', 1)
        await store.accept(acceptInput('cancelled'))
        await store.requestCancel('cancelled', { by: owner, reason: null, at: start })

        const [cancelled] = await claim(store, 1)
        assert.equal(cancelled?.id, 'cancelled')
        assert.deepEqual(await claim(store, 1), [])
        // It does not count either.
        await store.accept(acceptInput('next'))
        assert.deepEqual(ids(await claim(store, 2)), ['next'])
      }),
    )

    test(
      'bound the start of a held run, which is queued then',
      opened(async ({ store }) => {
        await accept(store, 'busy', 1)
        await store.accept(acceptInput('held', { held: {} }))

        const begin = { runId: 'held', afterSeq: 1, events: [delta(2)], blobs: [] }
        await assert.rejects(store.startHeld({ ...begin, queueMax: 0, claim: lease(1) }), { code: 'queue_full' })
        const started = await store.startHeld({ ...begin, queueMax: 1, claim: lease(1) })

        assert.deepEqual([started.leaseOwner, started.lastSeq], [null, 2])
        assert.deepEqual(ids(await claim(store, 2)), ['held'])
      }),
    )

    test(
      'are never more than their number, and none is lost, whatever nodes do at once',
      opened(async ({ store }) => {
        let round = 0
        const step = fc.oneof(
          { weight: 4, arbitrary: fc.constantFrom('accept' as const) },
          { weight: 2, arbitrary: fc.constantFrom('accept two' as const) },
          { weight: 3, arbitrary: fc.constantFrom('claim' as const) },
          { weight: 3, arbitrary: fc.constantFrom('end' as const) },
          { weight: 1, arbitrary: fc.constantFrom('park' as const) },
          { weight: 1, arbitrary: fc.constantFrom('release' as const) },
        )
        const together = fc.array(step, { minLength: 2, maxLength: 16 })
        await fc.assert(
          fc.asyncProperty(
            fc.array(together, { minLength: 1, maxLength: 6 }),
            fc.integer({ min: 1, max: 6 }),
            async (batches, slots) => {
              round += 1
              const driven = new Map<string, RunRow>()
              let made = 0
              const take = (rows: RunRow[]) => {
                for (const row of rows) if (row.leaseOwner !== null) driven.set(row.id, row)
              }
              const newRun = (node: string) => acceptInput(`r${round}-${(made += 1)}`, { claim: lease(slots, node) })
              for (const batch of batches) {
                // Each run is changed once in a batch; the batch runs in parallel.
                const movable = [...driven.values()]
                await Promise.all(
                  batch.map(async (what, index) => {
                    const node = `node-${index % 3}`
                    if (what === 'accept') return take([(await store.accept(newRun(node))).run])
                    if (what === 'accept two')
                      return take((await store.acceptAll([newRun(node), newRun(node)])).map(({ run }) => run))
                    if (what === 'claim') return take(await claim(store, slots, { node, limit: 1 + (index % 4) }))
                    const run = movable.shift()
                    if (run === undefined) return
                    driven.delete(run.id)
                    if (what === 'end') await endRun(store, run, 1)
                    else {
                      const status = what === 'park' ? { status: 'waiting_user' as const } : {}
                      await store.append(write(run, 1, { run: { ...status, release: true } }))
                    }
                  }),
                )
                assert.ok(driven.size <= slots, `${driven.size} runs have a lease, and there are ${slots} slots`)
              }
              // What is free can be taken: no slot was lost.
              for (let more = 0; more < slots; more += 1) await store.accept(acceptInput(`r${round}-more-${more}`))
              take(await claim(store, slots))
              assert.equal(driven.size, slots)
              for (const run of driven.values()) await endRun(store, run, 1)
              for (;;) {
                const rest = await claim(store, slots)
                if (rest.length === 0) break
                for (const run of rest) await endRun(store, run, 1)
              }
            },
          ),
          { numRuns: 12 },
        )
      }),
    )
  })

  describe('the bound of the queue', () => {
    test(
      'is exact when many requests come at once, alone and in pairs',
      opened(async ({ store }) => {
        const outcomes = await Promise.allSettled(
          Array.from({ length: 60 }, async (_, index) => {
            const input = (name: string) => acceptInput(name, { queueMax: 25 })
            if (index % 3 !== 0) return [await store.accept(input(`r${index}`))]
            return await store.acceptAll([input(`r${index}`), input(`r${index}b`)])
          }),
        )

        const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
        for (const { reason } of refused) assert.equal((reason as AppError).code, 'queue_full')
        const accepted = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []))
        const { rows } = await store.listRuns({ owner, limit: 100 })
        assert.equal(rows.length, accepted.length)
        assert.equal(rows.length, 25)
      }),
    )
  })

  describe('needs', () => {
    test(
      'are on the row, and a claim takes only runs whose needs the node offers',
      opened(async ({ store }) => {
        const both = await store.accept(needing('both', ['mcp:search', 'engine:openclaw']))
        await store.accept(needing('search', ['mcp:search']))
        await store.accept(acceptInput('plain'))

        assert.deepEqual(both.run.needs, ['mcp:search', 'engine:openclaw'])
        assert.deepEqual((await store.readRun('plain'))?.needs, [])
        assert.deepEqual(ids(await claim(store, 9)), ['plain'])
        assert.deepEqual(ids(await claim(store, 9, { offers: ['mcp:search', 'mcp:other'] })), ['search'])
        const [taken] = await claim(store, 9, { offers: ['engine:openclaw', 'mcp:search'] })
        assert.deepEqual([taken?.id, taken?.needs], ['both', ['mcp:search', 'engine:openclaw']])
      }),
    )

    test(
      'hold for interrupted and parked runs too, and not for cancelled ones',
      opened(async ({ store, time }) => {
        const offers = ['dir:here']
        const running = await store.accept({ ...needing('running', offers), claim: lease(9) })
        await store.append(write(running.run, 1, { run: { status: 'running' } }))
        const parked = await store.accept({ ...needing('parked', offers), claim: lease(9) })
        await store.append(write(parked.run, 1, { run: { status: 'waiting_user', wakeAt: start + 1, release: true } }))
        const cancelled = await store.accept({ ...needing('cancelled', offers), claim: lease(9) })
        await store.append(write(cancelled.run, 1, { run: { status: 'running' } }))
        await time.set(farAway)

        assert.deepEqual(await claim(store, 9, { offers: ['dir:there'] }), [])
        await store.requestCancel('cancelled', { by: owner, reason: null, at: start })
        assert.deepEqual(ids(await claim(store, 9, { offers: ['dir:there'] })), ['cancelled'])
        assert.deepEqual(ids(await claim(store, 9, { offers })), ['running', 'parked'])
      }),
    )

    test(
      'that no live node offers are found, in every state in which the run could be executed',
      opened(async ({ store, time }) => {
        const needs = ['mcp:search', 'dir:here']
        await store.accept(needing('queued', needs))
        await store.accept(acceptInput('plain'))
        const parked = await store.accept({ ...needing('parked', needs), claim: lease(9) })
        await store.append(write(parked.run, 1, { run: { status: 'waiting_user', wakeAt: start + 50, release: true } }))
        const waiting = await store.accept({ ...needing('waiting', needs), claim: lease(9) })
        await store.append(write(waiting.run, 1, { run: { status: 'waiting_user', wakeAt: null, release: true } }))
        const running = await store.accept({ ...needing('running', needs), claim: { ...lease(9), leaseMs: 50 } })
        await store.append(write(running.run, 1, { run: { status: 'running' } }))
        await store.accept({ ...needing('held', needs), held: { until: start + 50 } })
        await store.accept(needing('cancelled', needs))
        await store.requestCancel('cancelled', { by: owner, reason: null, at: start })

        assert.deepEqual(ids(await store.unplaceableRuns(9)), ['queued'])
        await time.set(start + 50)
        const found = await store.unplaceableRuns(9)
        assert.deepEqual(ids(found), ['queued', 'parked', 'running', 'held'])
        assert.deepEqual(found[0]?.needs, needs)
        assert.deepEqual(ids(await store.unplaceableRuns(1)), ['queued'])
      }),
    )

    test(
      'that a live node offers alone are not missing; a node that is gone or stopping does not count',
      opened(async ({ store, time }) => {
        await store.accept(needing('run', ['mcp:search', 'dir:here']))
        const node = { id: 'n', name: 'n', version: '1', startedAt: start, capacity: 1, running: 0, leaseMs: 100 }
        const beat = (offers: string[], draining = false) => store.beatNode({ ...node, offers, draining })

        await beat(['mcp:search'])
        await store.beatNode({ ...node, id: 'm', offers: ['dir:here'], draining: false })
        assert.deepEqual(ids(await store.unplaceableRuns(9)), ['run'])
        await beat(['mcp:other', 'dir:here', 'mcp:search'])
        assert.deepEqual(await store.unplaceableRuns(9), [])
        assert.equal(await store.claimUnplaceable('run', claimNow), undefined)
        await beat(['dir:here', 'mcp:search'], true)
        assert.deepEqual(ids(await store.unplaceableRuns(9)), ['run'])
        await beat(['dir:here', 'mcp:search'])
        await time.set(start + 100)
        assert.deepEqual(ids(await store.unplaceableRuns(9)), ['run'])
      }),
    )

    test(
      'that are missing let one node claim the run to end it',
      opened(async ({ store }) => {
        await store.accept(needing('run', ['mcp:search']))
        await accept(store, 'plain', 9)

        const claims = await Promise.all(
          ['node-a', 'node-b', 'node-c'].map((node) => store.claimUnplaceable('run', lease(1, node))),
        )

        const taken = claims.filter((row) => row !== undefined)
        assert.deepEqual(
          taken.map(({ id, epoch }) => [id, epoch]),
          [['run', 1]],
        )
        await endRun(store, taken[0] as RunRow, 1)
        assert.equal(await store.claimUnplaceable('run', claimNow), undefined)
        assert.equal(await store.claimUnplaceable('plain', claimNow), undefined)
        assert.equal(await store.claimUnplaceable('nothing', claimNow), undefined)
      }),
    )

    test(
      'of older runs do not keep a claim from younger ones',
      opened(async ({ store }) => {
        for (let index = 0; index < 5; index += 1) await store.accept(needing(`stuck-${index}`, ['agent:special']))
        await store.accept(acceptInput('plain'))

        assert.deepEqual(ids(await claim(store, 9, { limit: 1 })), ['plain'])
      }),
    )
  })
}

// Contract: numbering of events, fencing, atomic appends, and reading back.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { eventBytesMax, type RunEvent } from '../../src/journal/event.ts'
import { decodedEvents } from '../../src/journal/stored-events.ts'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { InteractionStore } from '../../src/stores/interaction-store.ts'
import type { MessageStore } from '../../src/stores/message-store.ts'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { OpenStore } from './open-store.ts'
import {
  acceptInput,
  beforeAndAfter,
  claimedRun,
  claimNow,
  delta,
  farAway,
  deltas,
  inConversation,
  interaction,
  message,
  readAll,
  seqs,
  start,
  withStore,
  write,
} from './store-fixtures.ts'

export function journalContract(open: OpenStore<RunStore & ConversationStore & MessageStore & InteractionStore>): void {
  const opened = withStore(open)

  describe('events', () => {
    test(
      'are read back exactly as they were written, in order and without a hole',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')
        const odd = delta(4, 'line\nbreak, \u2028, "quotes", 中文, \u0000, 😀')
        await store.append(write(run, 1, { events: deltas(2, 2) }))
        await store.append(write(run, 3, { events: [odd], durable: true }))

        const { stored, ...page } = await store.readEvents('r', 0, 100)

        const events = [delta(1), delta(2), delta(3), odd]
        assert.deepEqual(page, { events, skipped: 0, nextAfter: 4, atHead: true })
        assert.deepEqual(decodedEvents(stored ?? []), events)
      }),
    )

    test(
      'are counted for many runs at once, and runs that do not exist are left out',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')
        await claimedRun(store, 'untouched')
        await store.append(write(run, 1, { events: deltas(2, 2) }))

        const lastSeqs = await store.readLastSeqs(['r', 'untouched', 'nobody', 'r'])

        assert.deepEqual(
          lastSeqs,
          new Map([
            ['r', 3],
            ['untouched', 1],
          ]),
        )
        assert.deepEqual(await store.readLastSeqs([]), new Map())
      }),
    )

    test(
      'that ended a run are found by whoever sees that it has ended',
      opened(async ({ store }) => {
        for (let round = 0; round < 40; round += 1) {
          const run = await claimedRun(store, `r${round}`)
          await store.append(write(run, 1, { events: deltas(2, 2) }))
          const appended = store.append(
            write(run, 3, {
              events: deltas(4, 2),
              durable: true,
              run: { status: 'succeeded', endedAt: start, release: true },
            }),
          )
          // The write is on its way after a turn of the event loop. From then on no acknowledgement can come in here,
          // so readers may see the row before the writer gets its confirmation.
          await new Promise((resolve) => setImmediate(resolve))
          let isSeen = false
          for (let tries = 0; tries < 10_000 && !isSeen; tries += 1)
            isSeen = (await store.readRun(run.id))?.endedAt === start
          // A store may also show a write only when it is acknowledged.
          if (!isSeen) await appended

          const page = await store.readEvents(run.id, round % 4, 100)

          assert.equal(page.nextAfter, 5)
          assert.equal(page.atHead, true)
          await appended
        }
      }),
    )

    test(
      'after any cursor are exactly those that came after it, whatever the page size',
      opened(async ({ store, reopen }) => {
        const run = await claimedRun(store, 'r')
        const sizes = [1, 3, 7, 1, 2, 40, 1, 1, 5]
        let last = 1
        for (let round = 0; round < 20; round += 1) {
          const size = sizes[round % sizes.length] as number
          await store.append(write(run, last, { events: deltas(last + 1, size) }))
          last += size
        }

        const check = async (from: typeof store) => {
          for (const after of [0, 1, 2, 3, 10, 11, 50, last - 1, last]) {
            for (const limit of [1, 3, 1000]) {
              const page = await from.readEvents('r', after, limit)
              const expected = deltas(after + 1, Math.min(limit, last - after))
              assert.deepEqual(page.events, expected, `after ${after}, limit ${limit}`)
              assert.equal(page.nextAfter, after + expected.length)
              assert.equal(page.atHead, page.nextAfter === last)
            }
          }
        }
        await check(store)
        await check(await reopen())
      }),
    )

    test(
      'of a run that does not exist are none',
      opened(async ({ store }) => {
        assert.deepEqual(await store.readEvents('nobody', 5, 10), {
          events: [],
          skipped: 0,
          nextAfter: 5,
          atHead: true,
        })
      }),
    )

    test(
      'of 1 MiB each are stored whole and paged one by one',
      opened(async ({ store, reopen }) => {
        const run = await claimedRun(store, 'r')
        const big = [2, 3, 4].map((seq) => delta(seq, String(seq).repeat(eventBytesMax - 200)))
        for (const event of big) await store.append(write(run, event.seq - 1, { events: [event] }))

        for await (const from of beforeAndAfter(store, reopen)) {
          const page = await from.readEvents('r', 1, 100)
          assert.ok(page.events.length >= 1 && page.events.length < 3, `${page.events.length} events in one page`)
          assert.equal(page.atHead, false)
          assert.deepEqual((await readAll(from, 'r')).events, [delta(1), ...big])
        }
      }),
    )

    test(
      'must be numbered from afterSeq on',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')

        await assert.rejects(store.append(write(run, 1, { events: [delta(3)] })), { code: 'event_invalid' })
        await assert.rejects(store.accept(acceptInput('other', { events: [delta(2)] })), { code: 'event_invalid' })

        assert.deepEqual(await seqs(store, 'r'), [1])
      }),
    )

    test('of many runs, appended at once in any mix, equal a plain list', async () => {
      const plan = fc.array(
        fc.record({ run: fc.nat(5), size: fc.integer({ min: 1, max: 4 }), durable: fc.boolean() }),
        { minLength: 1, maxLength: 120 },
      )
      await fc.assert(
        fc.asyncProperty(plan, (appends) =>
          opened(async ({ store, reopen }) => {
            const runs = await Promise.all([0, 1, 2, 3, 4, 5].map((index) => claimedRun(store, `r${index}`)))
            const expected = runs.map(() => [delta(1)] as RunEvent[])
            await Promise.all(
              appends.map(({ run, size, durable }) => {
                const list = expected[run] as RunEvent[]
                const events = deltas(list.length + 1, size)
                const promise = store.append(write(runs[run]!, list.length, { events, durable }))
                list.push(...events)
                return promise
              }),
            )
            for (const [index, list] of expected.entries()) {
              assert.deepEqual((await readAll(store, `r${index}`, 7)).events, list)
              assert.equal((await store.readRun(`r${index}`))?.lastSeq, list.length)
            }
            const again = await reopen()
            for (const [index, list] of expected.entries()) {
              assert.deepEqual((await readAll(again, `r${index}`)).events, list)
              assert.equal((await again.readRun(`r${index}`))?.lastSeq, list.length)
            }
          })(),
        ),
        { numRuns: 8 },
      )
    })

    test(
      'stay whole in a long run among many, before and after reopening',
      opened(async ({ store, reopen }) => {
        const runs = await Promise.all(Array.from({ length: 30 }, (_, index) => claimedRun(store, `r${index}`)))
        for (let seq = 2; seq <= 200; seq += 1) {
          await Promise.all(runs.map((run) => store.append(write(run, seq - 1, { events: [delta(seq)] }))))
          const quiet = runs.pop()
          if (seq > 20 && quiet !== undefined && runs.length < 10) runs.unshift(quiet)
        }
        const before = await Promise.all([0, 5, 15, 29].map(async (index) => readAll(store, `r${index}`)))
        const again = await reopen()

        const after = await Promise.all([0, 5, 15, 29].map(async (index) => readAll(again, `r${index}`)))

        assert.deepEqual(after, before)
        for (const { events, skipped } of after) {
          assert.deepEqual(events, deltas(1, events.length))
          assert.equal(skipped, 0)
        }
      }),
    )
  })

  describe('an append', () => {
    test(
      'with a stale epoch is refused and changes nothing',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')

        await assert.rejects(store.append({ ...write(run, 1, { events: [delta(2)] }), epoch: run.epoch - 1 }), {
          code: 'run_fenced',
        })
        await assert.rejects(store.append({ ...write(run, 1, { events: [delta(2)] }), epoch: run.epoch + 1 }), {
          code: 'run_fenced',
        })

        assert.deepEqual(await seqs(store, 'r'), [1])
      }),
    )

    test(
      'after another seq than the last is refused',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')
        await store.append(write(run, 1, { events: [delta(2)] }))

        await assert.rejects(store.append(write(run, 1, { events: [delta(2)] })), { code: 'run_fenced' })
        await assert.rejects(store.append(write(run, 3, { events: [delta(4)] })), { code: 'run_fenced' })
        await assert.rejects(store.append(write({ ...run, id: 'nobody' }, 0, { events: [delta(1)] })), {
          code: 'run_fenced',
        })

        assert.deepEqual(await seqs(store, 'r'), [1, 2])
      }),
    )

    test(
      'that races with another for the same seq wins or loses as a whole',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')
        const writers = ['a', 'b', 'c', 'd'].map((text) => [delta(2, text), delta(3, text)])

        const outcomes = await Promise.allSettled(writers.map((events) => store.append(write(run, 1, { events }))))

        assert.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 1)
        const winner = writers[outcomes.findIndex((outcome) => outcome.status === 'fulfilled')]
        assert.deepEqual((await readAll(store, 'r')).events, [delta(1), ...winner!])
      }),
    )

    test(
      'of a former owner is refused after the run was taken over',
      opened(async ({ store, time }) => {
        const former = await claimedRun(store, 'r')
        await store.append(write(former, 1, { events: [delta(2)], run: { status: 'running' } }))
        await time.set(farAway)
        const [taken] = await store.claim({ node: 'node-b', leaseMs: 1, limit: 5 })

        await assert.rejects(store.append(write(former, 2, { events: [delta(3)] })), { code: 'run_fenced' })

        assert.equal(taken?.epoch, former.epoch + 1)
        assert.equal(taken?.lastSeq, 2)
        await store.append(write(taken, 2, { events: [delta(3)] }))
        assert.deepEqual(await seqs(store, 'r'), [1, 2, 3])
      }),
    )

    test(
      'that is refused leaves no event, message, interaction or change of a row',
      opened(async ({ store }) => {
        const { run } = await store.accept(
          inConversation('r', 'c', 'absent', { claim: claimNow, messages: [message('m1', 'c')] }),
        )
        const everything = {
          events: [delta(2)],
          messages: [message('m2', 'c')],
          messageStates: [{ id: 'm1', state: 'abandoned' as const }],
          newInteractions: [interaction('i1', 'r')],
          touchConversationAt: start + 99,
          run: { status: 'running' as const },
        }

        await assert.rejects(store.append({ ...write(run, 1, everything), epoch: run.epoch + 1 }), {
          code: 'run_fenced',
        })
        // Refused half way: the second message has an id that is taken.
        await assert.rejects(
          store.append(write(run, 1, { ...everything, messages: [message('m2', 'c'), message('m1', 'c')] })),
          { code: 'store_unavailable' },
        )

        assert.deepEqual(await seqs(store, 'r'), [1])
        assert.equal(await store.readMessage('m2'), undefined)
        assert.equal((await store.readMessage('m1'))?.state, 'active')
        assert.equal(await store.readInteraction('i1'), undefined)
        assert.equal((await store.readConversation('c'))?.updatedAt, start)
        assert.deepEqual(await store.readRun('r'), run)
        await store.append(write(run, 1, everything))
        assert.deepEqual(await seqs(store, 'r'), [1, 2])
      }),
    )

    test(
      'that is refused does not spoil others that were sent at the same moment',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')
        const other = await claimedRun(store, 'o')

        const outcomes = await Promise.allSettled([
          store.append(write(run, 1, { events: [delta(2)] })),
          store.append(write(run, 9, { events: [delta(10)] })),
          store.append(write(other, 1, { events: [delta(2)], run: { status: 'running' } })),
          store.append(write(other, 2, { events: [delta(3)], newInteractions: [interaction('i', 'nobody')] })),
          store.append(write(run, 2, { events: [delta(3)] })),
          store.append(write(other, 2, { events: [delta(3, 'after the refusal')] })),
        ])

        assert.deepEqual(
          outcomes.map((outcome) => outcome.status),
          ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
        )
        assert.deepEqual(await seqs(store, 'r'), [1, 2, 3])
        assert.deepEqual((await readAll(store, 'o')).events, [delta(1), delta(2), delta(3, 'after the refusal')])
      }),
    )

    test(
      'writes its rows together with its events',
      opened(async ({ store, reopen }) => {
        const { run } = await store.accept(
          inConversation('r', 'c', 'absent', { claim: claimNow, messages: [message('m1', 'c', { runId: 'r' })] }),
        )
        const error = { code: 'model_error', message: 'The model failed.', retryable: true, details: { status: 500 } }
        const answer = message('m2', 'c', {
          runId: 'r',
          parentId: 'm1',
          role: 'assistant',
          metadata: { calls: [1, null, { deep: true }] },
          toolCallId: 'x',
          createdAt: start + 1,
        })
        await store.append(
          write(run, 1, {
            events: [delta(2)],
            durable: true,
            run: { status: 'running', attempt: 2, startedAt: start + 5 },
            newInteractions: [interaction('i1', 'r'), interaction('i2', 'r', { number: 2 })],
          }),
        )
        await store.append(
          write(run, 2, {
            events: [delta(3)],
            durable: true,
            messages: [answer],
            messageStates: [{ id: 'm1', state: 'superseded' }],
            interactionUpdates: [
              { id: 'i1', result: { sent: true }, executedAt: start + 7, at: start + 7 },
              { id: 'i2', closePending: true, at: start + 8 },
            ],
            touchConversationAt: start + 50,
            run: { status: 'failed', endedAt: start + 9, error, release: true },
          }),
        )

        for await (const from of beforeAndAfter(store, reopen)) {
          const row = await from.readRun('r')
          assert.deepEqual(
            [
              row?.status,
              row?.attempt,
              row?.startedAt,
              row?.endedAt,
              row?.error,
              row?.leaseOwner,
              row?.leaseUntil,
              row?.lastSeq,
            ],
            ['failed', 2, start + 5, start + 9, error, null, null, 3],
          )
          assert.deepEqual(await from.readMessage('m2'), answer)
          assert.equal((await from.readMessage('m1'))?.state, 'superseded')
          const [first, second] = await from.interactionsOf('r')
          assert.deepEqual(
            [first?.status, first?.result, first?.executedAt, first?.updatedAt],
            ['pending', { sent: true }, start + 7, start + 7],
          )
          assert.deepEqual([second?.status, second?.updatedAt], ['closed', start + 8])
          assert.equal((await from.readConversation('c'))?.updatedAt, start + 50)
        }
      }),
    )

    test(
      'tells a confirmation why its call did not run only if it was confirmed',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')
        const asked = ['confirmed', 'rejected', 'open'].map((id, index) => interaction(id, 'r', { number: index + 1 }))
        await store.append(write(run, 1, { newInteractions: asked }))
        await store.decide('confirmed', { status: 'confirmed', by: 'ada', at: start + 5 })
        await store.decide('rejected', { status: 'rejected', by: 'ada', at: start + 5 })
        const ended = { code: 'tool_cancelled', message: 'The run ended before this call finished.' }

        await store.append(
          write(run, 1, {
            interactionUpdates: asked.flatMap(({ id }) => [
              { id, closePending: true, at: start + 6 },
              { id, errorIfConfirmed: ended, at: start + 6 },
            ]),
          }),
        )

        assert.deepEqual(
          (await store.interactionsOf('r')).map((row) => [row.status, row.error, row.executedAt, row.updatedAt]),
          [
            ['confirmed', ended, null, start + 6],
            ['rejected', null, null, start + 5],
            ['closed', null, null, start + 6],
          ],
        )
      }),
    )

    test(
      'without events still checks the fence and changes the row',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')

        await assert.rejects(store.append(write(run, 0, { run: { status: 'running' } })), { code: 'run_fenced' })
        await store.append(write(run, 1, { run: { status: 'running' } }))

        assert.equal((await store.readRun('r'))?.status, 'running')
      }),
    )
  })
}

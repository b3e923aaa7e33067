// The only writer of a journal: order, numbers, one append at a time, events are stored before
// they are shown, and a writer that was refused once never writes again.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { kindOf } from '../app/run-kinds.ts'
import fc from 'fast-check'
import { manualClock } from '../../test/support/manual-clock.ts'
import { AppError } from '../errors/app-error.ts'
import type { NewEvent, RunEvent } from '../journal/event.ts'
import { decodeEvent, encodeEvent } from '../journal/event-codec.ts'
import { foldRun, newRunState } from '../journal/run-state.ts'
import type { RunWrite } from '../stores/run-store.ts'
import { RunWriter } from './run-writer.ts'

const accepted: RunEvent = {
  seq: 1,
  at: 1,
  attempt: 1,
  type: 'run.accepted',
  data: {
    owner: 'ada',
    family: 'agent',
    conversationId: 'c',
    userMessageId: 'm',
    input: 'x',
    spec: { agentId: 'a', engine: 'e', model: 'm/m' },
  },
}
const running: NewEvent = { type: 'run.state', data: { from: 'queued', to: 'running', trigger: 'turn.started' } }
const asked: NewEvent = { type: 'step.started', data: { step: 1, messageId: 'm1', model: 'm/m' } }
const delta = (text: string): NewEvent => ({ type: 'text.delta', data: { messageId: 'm1', text } })

/** A store that answers on command, and records the order of events. */
function rig({ databaseMayCrash = false } = {}) {
  const clock = manualClock(1000)
  const writes: RunWrite[] = []
  const told: string[] = []
  const waiting: { resolve: () => void; reject: (error: unknown) => void }[] = []
  let most = 0
  const writer = new RunWriter('run-1', 7, foldRun([accepted]), {
    clock,
    kindOf,
    databaseMayCrash,
    store: {
      append(write) {
        writes.push(write)
        told.push(`append ${write.events[0]?.seq ?? '-'}`)
        most = Math.max(most, waiting.length + 1)
        return new Promise((resolve, reject) => waiting.push({ resolve, reject }))
      },
    },
    bus: { publish: (_runId, events) => void told.push(`publish ${events[0]?.seq}-${events.at(-1)?.seq}`) },
  })
  const settle = async (error?: unknown) => {
    const next = waiting.shift()
    if (error === undefined) next?.resolve()
    else next?.reject(error)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { clock, writer, writes, told, settle, most: () => most }
}

describe('the writer of a run', () => {
  it('shows nothing that is not stored, and says committed only then', async () => {
    const { writer, told, settle } = rig()
    let committed = false
    const done = writer.write(running).then(() => (committed = true))

    assert.deepEqual(told, ['append 2'])
    assert.equal(committed, false)
    await settle()
    await done

    assert.deepEqual(told, ['append 2', 'publish 2-2'])
  })

  it('stores and shows an event with the fields of its schema, in their order', async () => {
    const { writer, writes, settle } = rig()
    const stray = { model: 'm/m', messageId: 'm1', unknown: 1, step: 1 }
    writer.push(running, { type: 'step.started', data: stray })
    await settle()

    const event = writes[0]?.events.at(-1) ?? assert.fail('no event')
    assert.deepEqual(event, decodeEvent(encodeEvent(event)))
    assert.equal(JSON.stringify(event.data), '{"step":1,"messageId":"m1","model":"m/m"}')
  })

  it('stores deltas again that a crash of the database lost, before anything else, and none that are on disk', async () => {
    const { clock, writer, writes, settle } = rig({ databaseMayCrash: true })
    writer.push(running, asked)
    await settle()
    for (const text of ['a', 'b', 'c']) {
      await clock.advance(10)
      writer.push(delta(text))
      await settle()
    }
    // The durable commit began before `c` was stored.
    writer.synced(clock.monotonic() - 5, 5)
    assert.equal(writes.length, 4)
    await clock.advance(10)
    writer.synced(clock.monotonic(), 5)
    writer.push(delta('d'))
    await settle()
    await settle()
    assert.deepEqual(
      writes.slice(4).map(({ afterSeq, durable, epoch, events }) => [afterSeq, durable, epoch, events.length]),
      [
        [5, true, 7, 1],
        [6, false, 7, 1],
      ],
    )
    assert.deepEqual(writes[4]?.events, writes[3]?.events)
    assert.equal(writer.lost, undefined)
  })

  it('has one append under way at a time; what comes meanwhile goes together, in order', async () => {
    const { writer, writes, told, settle, most } = rig()
    writer.push(running)
    writer.push(asked)
    writer.push(delta('a'))
    writer.push(delta('b'), delta('c'))
    assert.equal(writes.length, 1)

    await settle()
    assert.equal(writes.length, 2)
    await settle()

    assert.equal(most(), 1)
    assert.deepEqual(
      writes.map(({ afterSeq, epoch }) => [afterSeq, epoch]),
      [
        [1, 7],
        [2, 7],
      ],
    )
    assert.deepEqual(
      writes.flatMap(({ events }) => events.map(({ seq }) => seq)),
      [2, 3, 4, 5, 6],
    )
    assert.deepEqual(told, ['append 2', 'publish 2-2', 'append 3', 'publish 3-6'])
  })

  it('asks for a synced commit exactly where a barrier is in it', async () => {
    const { writer, writes, settle } = rig()
    writer.push(running)
    await settle()
    writer.push(asked, delta('a'))
    await settle()
    writer.push(delta('b'))
    writer.push(delta('c'), {
      type: 'message.done',
      data: { messageId: 'm1', role: 'assistant', text: 'abc', step: 1, state: 'active' },
    })
    await settle()
    await settle()

    assert.deepEqual(
      writes.map(({ durable }) => durable),
      [true, false, false, true],
    )
  })

  it('gives the events of one push one time, and numbers them without a hole, however they are pushed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant('settle' as const), fc.constant('tick' as const)),
          { maxLength: 30 },
        ),
        async (plan) => {
          const { writer, writes, settle, clock } = rig()
          writer.push(running, asked)
          let text = ''
          for (const what of plan) {
            if (what === 'settle') await settle()
            else if (what === 'tick') await clock.advance(5)
            else {
              const letters = Array.from({ length: what }, (_, index) => String(index))
              writer.push(...letters.map(delta))
              text += letters.join('')
            }
          }
          const all = writer.committed()
          while (writes.flatMap(({ events }) => events).length < writer.state.lastSeq - 1) await settle()
          await settle()
          await all

          const events = writes.flatMap((write) => write.events)
          assert.deepEqual(
            events.map(({ seq }) => seq),
            events.map((_, index) => index + 2),
          )
          assert.equal(events.map((event) => (event.type === 'text.delta' ? event.data.text : '')).join(''), text)
          for (const [index, write] of writes.entries())
            assert.equal(write.afterSeq, writes[index - 1]?.events.at(-1)?.seq ?? 1)
          assert.equal(writer.backlog, 0)
          assert.equal(foldRun([accepted, ...events]).steps[0]?.text ?? '', text)
        },
      ),
      { numRuns: 60 },
    )
  })

  it('is lost for good when an append is refused: it says so once, and nothing that follows is written or shown', async () => {
    const { writer, writes, told, settle } = rig()
    const losses: AppError[] = []
    writer.onLost = (error) => void losses.push(error)
    const first = assert.rejects(writer.write(running), { code: 'run_fenced' })
    writer.push(asked)
    const second = assert.rejects(writer.committed(), { code: 'run_fenced' })

    await settle(new AppError('run_fenced', 'Another writer owns this run.'))
    await Promise.all([first, second])

    assert.throws(() => writer.push(delta('late')), { code: 'run_fenced' })
    await assert.rejects(writer.committed(), { code: 'run_fenced' })
    assert.deepEqual([losses.length, writes.length, told], [1, 1, ['append 2']])
  })

  it('turns whatever a store throws into one kind of loss', async () => {
    const { writer, settle } = rig()
    const lost = assert.rejects(writer.write(running), { code: 'store_unavailable', kind: 'unavailable' })

    await settle(new TypeError('no such thing'))
    await lost

    assert.equal(writer.lost?.kind, 'unavailable')
  })

  it('refuses what does not fit the vocabulary, the state or the size, and writes nothing of it', () => {
    const { writer, writes } = rig()

    assert.throws(() => writer.push(delta('too early')), { code: 'transition_refused' })
    assert.throws(() => writer.push({ type: 'text.delta', data: { messageId: 'm1' } } as NewEvent), {
      code: 'event_invalid',
    })
    writer.push(running, asked)
    assert.throws(() => writer.push(delta('x'.repeat(1024 * 1024 + 1))), { code: 'event_too_large' })
    assert.throws(
      () =>
        new RunWriter('run-2', 1, newRunState(), {
          store: { append: () => Promise.resolve() },
          bus: { publish: () => {} },
          clock: manualClock(),
          kindOf,
        }).push(running),
      { code: 'transition_refused' },
    )
    assert.equal(writes.length, 1)
  })

  it('writes all events of a push that is refused in the middle, or none', async () => {
    const { writer, writes, settle } = rig()
    writer.push(running)
    await settle()

    assert.throws(() => writer.push(asked, { type: 'text.delta', data: {} } as NewEvent), { code: 'event_invalid' })
    assert.equal(writer.state.lastSeq, 2)
    writer.push(asked)
    await settle()

    assert.deepEqual(
      writes.flatMap(({ events }) => events.map(({ seq }) => seq)),
      [2, 3],
    )
  })

  it('counts a new attempt each time the run is taken up, beginning with one', async () => {
    const { writer, writes, settle } = rig()
    const requeued: NewEvent = {
      type: 'run.state',
      data: { from: 'running', to: 'queued', trigger: 'restart.requeued' },
    }
    writer.push(running)
    writer.push(requeued, running)
    writer.push(requeued, running)
    await settle()
    await settle()

    assert.deepEqual(
      writes.flatMap(({ events }) => events.map(({ attempt }) => attempt)),
      [1, 1, 2, 2, 3],
    )
  })
})

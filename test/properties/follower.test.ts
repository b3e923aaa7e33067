// A model test for following: for any order of appends, announcements, slow reads, cuts and
// resumes, a follower gets exactly what a plain read of the journal gives after its cursor. Real
// writer, real bus, real database.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { kindOf } from '../../src/app/run-kinds.ts'
import fc from 'fast-check'
import { type FollowedStore, Follower } from '../../src/bus/follower.ts'
import { createProcessBus, type LiveBus } from '../../src/bus/live-bus.ts'
import { AppError } from '../../src/errors/app-error.ts'
import type { NewEvent, RunEvent } from '../../src/journal/event.ts'
import { foldRun } from '../../src/journal/run-state.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { RunWriter } from '../../src/runs/run-writer.ts'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { Store } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { allEvents } from '../support/run-rig.ts'
import { openTestStore } from '../support/test-database.ts'

const folder = mkdtempSync(join(tmpdir(), 'polylog-follower-'))
let store: Store
let runs = 0

before(async () => {
  store = (await openTestStore(join(folder, 'polylog.db'))).store
})
after(async () => {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

async function newRun(bus: LiveBus, over: Pick<RunStore, 'append'> = store): Promise<RunWriter> {
  const id = `run-${++runs}`
  const accepted: RunEvent = {
    seq: 1,
    at: 1,
    attempt: 1,
    type: 'run.accepted',
    data: {
      owner: 'ada',
      family: 'agent',
      conversationId: null,
      userMessageId: null,
      input: 'x',
      spec: { agentId: 'a', engine: 'e', model: 'm/m' },
    },
  }
  const { run } = await store.accept({
    run: { id, owner: 'ada', family: 'agent', agentId: 'a', conversationId: null, createdAt: 1 },
    conversation: null,
    expectBehind: null,
    messages: [],
    events: [accepted],
    idempotency: null,
    queueMax: 10,
    claim: { node: 'n', leaseMs: 1_000_000_000 },
  })
  const writer = new RunWriter(id, run.epoch, foldRun([accepted]), { store: over, bus, clock: manualClock(), kindOf })
  writer.push({ type: 'run.state', data: { from: 'queued', to: 'running', trigger: 'turn.started' } })
  writer.push({ type: 'step.started', data: { step: 1, messageId: 'm', model: 'm/m' } })
  return writer
}

const delta = (text: string): NewEvent => ({ type: 'text.delta', data: { messageId: 'm', text } })
const ending: NewEvent[] = [
  { type: 'run.state', data: { from: 'running', to: 'failed', trigger: 'turn.failed' } },
  { type: 'run.ended', data: { status: 'failed', error: { code: 'internal_error', message: '' } } },
]

/** One client: follows from a cursor, reads at its own pace, and may hang up and come back. */
class Reader {
  readonly got: RunEvent[] = []
  readonly from: number
  private follower: Follower
  private readonly open: () => Follower
  private asking: Promise<void> | undefined
  over = false

  constructor(runId: string, from: number, bus: LiveBus) {
    this.from = from
    this.open = () => new Follower(runId, this.got.at(-1)?.seq ?? from, store, bus, systemClock)
    this.follower = this.open()
  }

  /** Reads one batch when it is called. A slow reader is one that is rarely called. */
  read(): void {
    const { follower } = this
    this.asking ??= follower.next().then((batch) => {
      this.asking = undefined
      // What a client that hung up was still being sent is lost to it.
      if (follower !== this.follower) return
      if (batch === null) this.over = true
      else this.got.push(...batch.events)
    })
  }

  /** Takes up to `count` batches as they are published. */
  receive(count: number): void {
    const { follower } = this
    let left = count
    this.asking ??= follower
      .receiveLive({
        receive: (batch) => {
          if (follower === this.follower) this.got.push(...batch.events)
          left -= 1
          return left > 0
        },
      })
      .then(() => {
        this.asking = undefined
      })
  }

  async cut(): Promise<void> {
    this.follower.close()
    await this.asking
    this.asking = undefined
    this.over = false
    this.follower = this.open()
  }

  async toEnd(): Promise<void> {
    while (!this.over) {
      this.read()
      await this.asking
    }
    this.follower.close()
  }
}

type Action =
  | { do: 'push'; sizes: number[] }
  | { do: 'wait' }
  | { do: 'turn' }
  | { do: 'follow'; from: number }
  | { do: 'read'; who: number }
  | { do: 'receive'; who: number; count: number }
  | { do: 'cut'; who: number }

const action: fc.Arbitrary<Action> = fc.oneof(
  // Now and then so much at once that memory has to let go of it.
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('push' as const),
      sizes: fc.array(fc.oneof({ weight: 9, arbitrary: fc.nat(20) }, { weight: 1, arbitrary: fc.constant(60_000) }), {
        minLength: 1,
        maxLength: 6,
      }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('push' as const),
      sizes: fc.constant(Array.from({ length: 150 }, () => 3)),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ do: 'wait' as const }) },
  { weight: 2, arbitrary: fc.constant({ do: 'turn' as const }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('follow' as const), from: fc.nat(1_000) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('read' as const), who: fc.nat(7) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('receive' as const),
      who: fc.nat(7),
      count: fc.oneof(fc.constant(1), fc.constant(3), fc.constant(Number.POSITIVE_INFINITY)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cut' as const), who: fc.nat(7) }) },
)

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('followers of a run', () => {
  it('each get exactly the journal after their cursor, however appends, reads, cuts and joins interleave', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 60 }), async (plan) => {
        const bus = createProcessBus(manualClock())
        const writer = await newRun(bus)
        const readers = [new Reader(writer.runId, 0, bus)]
        for (const step of plan) {
          const reader = 'who' in step ? readers[step.who % readers.length] : undefined
          if (step.do === 'push') writer.push(...step.sizes.map((size) => delta('x'.repeat(size))))
          else if (step.do === 'wait') await writer.committed()
          else if (step.do === 'turn') await turn()
          else if (step.do === 'follow')
            readers.push(new Reader(writer.runId, step.from % (writer.state.lastSeq + 1), bus))
          else if (step.do === 'read') reader?.read()
          else if (step.do === 'receive') reader?.receive(step.count)
          else await reader?.cut()
        }
        writer.push(...ending)
        await Promise.all(readers.map((reader) => reader.toEnd()))

        const stored = await allEvents(store, writer.runId)
        assert.deepEqual(
          stored.map(({ seq }) => seq),
          stored.map((_, index) => index + 1),
        )
        for (const reader of readers) {
          const expected = stored.filter(({ seq }) => seq > reader.from)
          assert.deepEqual(
            reader.got.map(({ seq }) => seq),
            expected.map(({ seq }) => seq),
          )
          assert.deepEqual(reader.got, expected)
        }
      }),
      { numRuns: 120 },
    )
  })

  it('that are many get exactly the journal, too, however deltas wait for their passes', async () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constant('push' as const), count: fc.integer({ min: 1, max: 4 }) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.nat(120) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('join' as const), count: fc.nat(12) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('cut' as const), who: fc.nat(50) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('turn' as const) }) },
    )
    await fc.assert(
      fc.asyncProperty(fc.nat(30), fc.array(step, { minLength: 5, maxLength: 40 }), async (first, plan) => {
        const clock = manualClock()
        const bus = createProcessBus(clock)
        const writer = await newRun(bus)
        const readers: Reader[] = []
        const join = (count: number) => {
          for (let index = 0; index < count; index += 1) {
            const reader = new Reader(writer.runId, index % (writer.state.lastSeq + 1), bus)
            reader.receive(Number.POSITIVE_INFINITY)
            readers.push(reader)
          }
        }
        join(first)
        for (const one of plan) {
          if (one.do === 'push') await writer.write(...Array.from({ length: one.count }, () => delta('x')))
          else if (one.do === 'advance') await clock.advance(one.ms)
          else if (one.do === 'join') join(one.count)
          else if (one.do === 'cut') await readers[one.who % Math.max(1, readers.length)]?.cut()
          else await turn()
        }
        writer.push(...ending)
        await Promise.all(readers.map((reader) => reader.toEnd()))
        const stored = await allEvents(store, writer.runId)
        for (const reader of readers)
          assert.deepEqual(
            reader.got,
            stored.filter(({ seq }) => seq > reader.from),
          )
      }),
      { numRuns: 60 },
    )
  })

  it('that have seen everything, and then sleep until memory has let go of the rest, get the rest from the store', async () => {
    for (const how of ['many events', 'much text']) {
      const bus = createProcessBus(manualClock())
      const writer = await newRun(bus)
      await writer.committed()
      const reader = new Reader(writer.runId, 0, bus)
      // The last of these reads waits at the head.
      while (reader.got.length < writer.state.lastSeq) {
        reader.read()
        await turn()
      }
      reader.read()
      await writer.write(delta('x'))
      await turn()

      for (let count = 0; count < 5; count += 1) {
        await writer.write(
          ...Array.from({ length: how === 'many events' ? 100 : 2 }, () =>
            delta('y'.repeat(how === 'many events' ? 1 : 100_000)),
          ),
        )
      }
      writer.push(...ending)
      await reader.toEnd()

      assert.deepEqual(reader.got, await allEvents(store, writer.runId), how)
    }
  })

  it('never see an event before the store has it', async () => {
    const bus = createProcessBus(manualClock())
    let stored = 0
    // The store says when it is done; nothing may be shown before that.
    const watched: Pick<RunStore, 'append'> = {
      async append(write) {
        await store.append(write)
        await turn()
        stored = write.events.at(-1)?.seq ?? stored
      },
    }
    const writer = await newRun(bus, watched)
    const seen: boolean[] = []
    // At the head from the start, so that it is fed from memory.
    bus.join(writer.runId, { cursor: 0, wake: (headSeq) => void seen.push(headSeq <= stored) })
    for (let count = 0; count < 50; count += 1) {
      writer.push(delta('x'))
      if (count % 7 === 0) await writer.committed()
    }
    await writer.committed()

    assert.ok(seen.length > 5)
    assert.deepEqual(
      seen.filter((early) => !early),
      [],
    )
  })

  it('that never read cost a bounded amount of memory, and delay no other reader', async () => {
    const bus = createProcessBus(manualClock())
    const writer = await newRun(bus)
    await writer.committed()
    const lazy = { cursor: writer.state.lastSeq, wake: () => {} }
    const channel = bus.join(writer.runId, lazy)
    const first = writer.state.lastSeq + 1
    let most = 0
    for (let round = 0; round < 60; round += 1) {
      await writer.write(...Array.from({ length: 20 }, () => delta('x'.repeat(round % 10 === 9 ? 20_000 : 10))))
      // Walks over all batches that memory still holds.
      let events = 0
      let chars = 0
      for (let seq = first - 1; seq < writer.state.lastSeq;) {
        const batch = channel.after(seq)
        if (batch === undefined) {
          seq += 1
          continue
        }
        events += batch.events.length
        for (const event of batch.events) chars += event.type === 'text.delta' ? event.data.text.length : 0
        seq = batch.lastSeq
      }
      most = Math.max(most, events)
      // What is kept for the slow, and the commit that was just announced.
      assert.ok(events <= 256 + 20, `${events} events are kept`)
      assert.ok(chars <= 256 * 1024 + 20 * 20_000, `${chars} characters are kept`)
    }
    assert.ok(most > 100, 'those a little behind are still served from memory')

    channel.leave()
    const reader = new Reader(writer.runId, 0, bus)
    writer.push(...ending)
    await reader.toEnd()
    assert.deepEqual(reader.got, await allEvents(store, writer.runId))
  })

  it('that join in the turn after the beginning of a run get it from memory, and later ones do not', async () => {
    const bus = createProcessBus(manualClock())
    const events = await allEvents(store, (await newRun(bus)).runId)
    for (const { turns, fromMemory } of [
      { turns: 0, fromMemory: true },
      { turns: 1, fromMemory: true },
      { turns: 2, fromMemory: false },
    ]) {
      const runId = `begun-${turns}`
      bus.begin(runId, events)
      for (let count = 0; count < turns; count += 1) await turn()
      const channel = bus.join(runId, { cursor: 0, wake: () => {} })
      assert.equal(channel.after(0) !== undefined, fromMemory, `${turns} turns later`)
      channel.leave()
    }
  })

  it('that have left cost nothing: their run keeps no memory', async () => {
    const bus = createProcessBus(manualClock())
    const writer = await newRun(bus)
    const reader = new Reader(writer.runId, 0, bus)
    await writer.committed()
    reader.read()
    await reader.cut()
    writer.push(...ending)
    await reader.toEnd()
    bus.publish(writer.runId, await allEvents(store, writer.runId))

    const channel = bus.join(writer.runId, { cursor: 0, wake: () => {} })
    assert.equal(channel.after(0), undefined)
    channel.leave()
  })

  it('of a run that is removed under them come to an end', async () => {
    const bus = createProcessBus(manualClock())
    const writer = await newRun(bus)
    await writer.write(...ending)
    const late = new Follower(
      writer.runId,
      0,
      { readEvents: store.readEvents, readRun: async () => undefined },
      bus,
      systemClock,
    )
    const got: RunEvent[] = []
    for (let batch = await late.next(); batch !== null; batch = await late.next()) got.push(...batch.events)
    assert.equal(got.at(-1)?.type, 'run.ended')

    const gone = new Follower('no-such-run', 0, store, bus, systemClock)
    assert.equal(await gone.next(), null)
  })

  it('wait for an event that was announced and cannot be read yet, instead of ending', async () => {
    const bus = createProcessBus(manualClock())
    const writer = await newRun(bus)
    await writer.committed()
    const head = writer.state.lastSeq
    const clock = manualClock()
    // A store that lags behind what was announced, as a replica does.
    let reads = 0
    let readable = head
    const lagging: FollowedStore = {
      async readEvents(runId, after, limit) {
        reads += 1
        const page = await store.readEvents(runId, after, limit)
        const events = page.events.filter(({ seq }) => seq <= readable)
        return { events, skipped: page.skipped, nextAfter: events.at(-1)?.seq ?? after, atHead: page.atHead }
      },
      readRun: (runId) => store.readRun(runId),
    }
    const follower = new Follower(writer.runId, head, lagging, bus, clock)
    const next = follower.next()
    // More than memory keeps, so that only the store has it.
    await writer.write(...Array.from({ length: 4 }, () => delta('x'.repeat(100_000))))
    while (clock.pending === 0) await turn()
    const tried = reads

    readable = Number.POSITIVE_INFINITY
    await clock.advance(10)
    const batch = await next

    assert.equal(batch?.firstSeq, head + 1)
    assert.equal(reads, tried + 1)
    follower.close()
    writer.push(...ending)
    await writer.committed()
  })

  it('read again when the store is away for a moment, and fail if it stays away or is damaged', async () => {
    const bus = createProcessBus(manualClock())
    const writer = await newRun(bus)
    writer.push(...ending)
    await writer.committed()
    const clock = manualClock()
    let failures = 5
    let code: 'store_unavailable' | 'store_damaged' = 'store_unavailable'
    const away: FollowedStore = {
      async readEvents(...given) {
        failures -= 1
        if (failures >= 0)
          throw new AppError(code, 'The database is away.', { retryable: code === 'store_unavailable' })
        return await store.readEvents(...given)
      },
      readRun: (runId) => store.readRun(runId),
    }
    const read = async () => {
      const follower = new Follower(writer.runId, 0, away, bus, clock)
      const batch = follower.next().finally(() => follower.close())
      await Promise.race([batch, clock.advance(60_000)])
      return await batch
    }
    assert.equal((await read())?.events.at(-1)?.type, 'run.ended')

    failures = Number.POSITIVE_INFINITY
    await assert.rejects(read, { code: 'store_unavailable' })
    code = 'store_damaged'
    await assert.rejects(read, { code: 'store_damaged' })
    assert.equal(clock.pending, 0)
  })

  it('that are closed while they wait for an announced event end at once', async () => {
    const bus = createProcessBus(manualClock())
    const writer = await newRun(bus)
    await writer.committed()
    const clock = manualClock()
    const empty: FollowedStore = {
      readEvents: async (_runId, after) => ({ events: [], skipped: 0, nextAfter: after, atHead: true }),
      readRun: (runId) => store.readRun(runId),
    }
    const follower = new Follower(writer.runId, writer.state.lastSeq, empty, bus, clock)
    const next = follower.next()
    await writer.write(...Array.from({ length: 4 }, () => delta('x'.repeat(100_000))))
    while (clock.pending === 0) await turn()

    follower.close()

    assert.equal(await next, null)
    assert.equal(clock.pending, 0)
    writer.push(...ending)
    await writer.committed()
  })

  it('that stopped reading do not keep a long message in memory, of whatever type its event is', async () => {
    const long = 'x'.repeat(1024 * 1024)
    const events: NewEvent[] = [
      { type: 'message.done', data: { messageId: 'm', role: 'assistant', text: long, step: 1, state: 'abandoned' } },
      { type: 'reasoning.delta', data: { reasoningId: 'r', text: long } },
      { type: 'diagnostic', data: { code: 'c', message: 'm', details: { deep: [{ inside: long }] } } },
    ]
    for (const event of events) {
      const bus = createProcessBus(manualClock())
      const channel = bus.join('r', { cursor: 1, wake: () => {} })
      const small = (seq: number): RunEvent => ({ seq, at: 1, attempt: 1, ...delta('x') })

      bus.publish('r', [small(2)])
      assert.equal(channel.after(1)?.lastSeq, 2)
      bus.publish('r', [{ seq: 3, at: 1, attempt: 1, ...event }])
      assert.equal(channel.after(2), undefined, event.type)
      bus.publish('r', [small(4)])

      assert.equal(channel.after(2), undefined)
      assert.equal(channel.after(3)?.lastSeq, 4)
      channel.leave()
    }
  })
})

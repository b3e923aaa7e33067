// A model test for reading the runs of other nodes: for any hints that are lost, late, repeated or
// out of order, and for any moves of the run between nodes, every follower on every node gets
// exactly what a plain read of the journal gives, once and in order. Real writer, real readers,
// real SQLite file; only the network between the nodes is made up.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { kindOf } from '../../src/app/run-kinds.ts'
import { Follower } from '../../src/bus/follower.ts'
import { createProcessBus } from '../../src/bus/live-bus.ts'
import { RemoteReader, type RemoteReaderDependencies } from '../../src/bus/remote-reader.ts'
import { AppError } from '../../src/errors/app-error.ts'
import type { NewEvent, RunEvent } from '../../src/journal/event.ts'
import { foldRun } from '../../src/journal/run-state.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { RunWriter } from '../../src/runs/run-writer.ts'
import { openSqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import type { Store } from '../../src/stores/store.ts'
import { type ManualClock, manualClock } from '../support/manual-clock.ts'
import { allEvents } from '../support/run-rig.ts'

const folder = mkdtempSync(join(tmpdir(), 'polylog-remote-reader-'))
const pollMs = 3_000
let store: Store
let runs = 0

before(async () => {
  store = await openSqliteStore({ file: join(folder, 'polylog.db'), commitGatherMs: 0, clock: systemClock })
})
after(async () => {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

type Hint = { to: TestNode; runId: string; seq: number }

/** Nodes whose hints wait until a test delivers or drops them. */
class Network {
  readonly clock: ManualClock = manualClock()
  readonly nodes: TestNode[] = []
  hints: Hint[] = []

  constructor(nodes: number, over: Partial<RemoteReaderDependencies> = {}) {
    for (let index = 0; index < nodes; index += 1) this.nodes.push(new TestNode(this, over))
  }

  node(index: number): TestNode {
    return this.nodes[index % this.nodes.length] as TestNode
  }

  /** Delivers one of the waiting hints. */
  deliver(index: number, again = false): void {
    const at = index % Math.max(1, this.hints.length)
    const hint = this.hints[at]
    if (hint === undefined) return
    if (!again) this.hints.splice(at, 1)
    hint.to.reader.announced(hint.runId, hint.seq, this.clock.now())
  }
}

class TestNode {
  readonly reader: RemoteReader

  constructor(network: Network, over: Partial<RemoteReaderDependencies>) {
    this.reader = new RemoteReader({
      bus: createProcessBus(network.clock),
      cluster: {
        announce: (runId, seq) => {
          for (const to of network.nodes) if (to !== this) network.hints.push({ to, runId, seq })
        },
      },
      store,
      clock: network.clock,
      pollMs,
      ...over,
    })
  }
}

/** Collects what a follower gets. */
class Reading {
  readonly got: RunEvent[] = []
  readonly done: Promise<void>
  readonly follower: Follower
  isOver = false

  constructor(runId: string, from: number, node: TestNode, clock: ManualClock) {
    this.follower = new Follower(runId, from, store, node.reader, clock)
    this.done = this.read()
  }

  private async read(): Promise<void> {
    for (;;) {
      const batch = await this.follower.next()
      if (batch === null) break
      this.got.push(...batch.events)
    }
    this.follower.close()
    this.isOver = true
  }
}

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

class TestRun {
  readonly id = `run-${++runs}`
  private writer: RunWriter | undefined
  private epoch = 0

  async start(node: TestNode, clock: ManualClock): Promise<void> {
    const { run } = await store.accept({
      run: { id: this.id, owner: 'ada', family: 'agent', agentId: 'a', conversationId: null, createdAt: 1 },
      conversation: null,
      expectBehind: null,
      messages: [],
      events: [accepted],
      idempotency: null,
      queueMax: 10,
      claim: { node: 'n', leaseMs: 1_000_000_000 },
    })
    this.epoch = run.epoch
    await this.moveTo(node, clock)
    await this.write({ type: 'run.state', data: { from: 'queued', to: 'running', trigger: 'turn.started' } })
    await this.write({ type: 'step.started', data: { step: 1, messageId: 'm', model: 'm/m' } })
  }

  /** From now on this node drives the run. */
  async moveTo(node: TestNode, clock: ManualClock): Promise<void> {
    const state = foldRun(await allEvents(store, this.id))
    this.writer = new RunWriter(this.id, this.epoch, state, { store, bus: node.reader, clock, kindOf })
  }

  async write(...events: NewEvent[]): Promise<void> {
    await this.writer?.write(...events)
    // Everything is in the database then, so that reads do not wait for it: the manual clock gives them a few turns only.
    await store.check()
  }

  async end(): Promise<void> {
    await this.write(
      { type: 'run.state', data: { from: 'running', to: 'failed', trigger: 'turn.failed' } },
      { type: 'run.ended', data: { status: 'failed', error: { code: 'internal_error', message: '' } } },
    )
  }
}

const delta = (text: string): NewEvent => ({ type: 'text.delta', data: { messageId: 'm', text } })

const nat = fc.nat(1000)
const action = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('write' as const), sizes: fc.array(nat, { minLength: 1 }) }) },
  // More than the bus keeps in memory.
  { weight: 1, arbitrary: fc.constant({ do: 'write' as const, sizes: Array.from({ length: 300 }, () => 3) }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('deliver' as const), which: nat, again: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('drop' as const), which: nat }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('lie' as const), which: nat, seq: fc.nat(5000) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('move' as const), which: nat }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('follow' as const), which: nat, from: fc.nat(30) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('leave' as const), which: nat }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('missed' as const), which: nat }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(2 * pollMs) }) },
)

describe('followers of runs that other nodes drive', () => {
  it('get every event once and in order, whatever happens to the hints', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
        const network = new Network(3)
        const { clock } = network
        const run = new TestRun()
        const readings: Reading[] = []
        await run.start(network.node(0), clock)
        for (const each of actions) {
          if (each.do === 'write') await run.write(...each.sizes.map((size) => delta('x'.repeat(size))))
          else if (each.do === 'deliver') network.deliver(each.which, each.again)
          else if (each.do === 'drop') network.hints.splice(each.which % Math.max(1, network.hints.length), 1)
          else if (each.do === 'lie') network.node(each.which).reader.announced(run.id, each.seq, 0)
          else if (each.do === 'move') await run.moveTo(network.node(each.which), clock)
          else if (each.do === 'follow') {
            // Nobody has events that are not in the journal yet.
            const lastSeq = (await store.readRun(run.id))?.lastSeq ?? 0
            readings.push(new Reading(run.id, Math.min(each.from, lastSeq), network.node(each.which), clock))
          } else if (each.do === 'leave') readings[each.which % Math.max(1, readings.length)]?.follower.close()
          else if (each.do === 'missed') network.node(each.which).reader.missed()
          else await clock.advance(each.ms)
        }
        // While the run stands still, everybody has all of it after a few polls.
        network.hints = []
        for (let polls = 0; polls < 10; polls += 1) await clock.advance(pollMs)
        const lastSeq = (await store.readRun(run.id))?.lastSeq
        for (const { follower, isOver } of readings) if (!isOver) assert.equal(follower.cursor, lastSeq)
        await run.end()
        network.hints = []
        for (let polls = 0; polls < 20 && readings.some(({ isOver }) => !isOver); polls += 1)
          await clock.advance(pollMs)
        assert.ok(
          readings.every(({ isOver }) => isOver),
          'a follower still waits',
        )
        const journal = await allEvents(store, run.id)
        for (const { got, follower } of readings) {
          const from = got[0]?.seq ?? follower.cursor + 1
          const expected = journal.filter(({ seq }) => seq >= from && seq <= follower.cursor)
          assert.deepEqual(got, expected)
        }
        assert.equal(clock.pending, 0, 'no timer is left when nobody follows')
      }),
      { numRuns: 60 },
    )
  })

  it('share the reads of their node, however many they are', async () => {
    let reads = 0
    const counting = {
      readLastSeqs: store.readLastSeqs,
      readEvents: (...given: Parameters<Store['readEvents']>) => {
        reads += 1
        return store.readEvents(...given)
      },
    }
    const network = new Network(2, { store: counting })
    const run = new TestRun()
    await run.start(network.node(0), network.clock)
    const readings = Array.from({ length: 100 }, () => new Reading(run.id, 0, network.node(1), network.clock))
    await network.clock.advance(0)
    network.hints = []
    const announcements = 30
    for (let index = 0; index < announcements; index += 1) {
      await run.write(delta('x'), delta('y'))
      network.deliver(0)
      const wanted = 3 + 2 * (index + 1)
      // Many readers get deltas in passes.
      while (readings.some(({ got }) => got.length < wanted)) await network.clock.advance(5)
    }
    assert.equal(reads, announcements)
    for (const { follower } of readings) follower.close()
    await Promise.all(readings.map(({ done }) => done))
    assert.equal(network.clock.pending, 0)
  })

  it('get an event that another follower of their node had read before it was announced', async () => {
    const network = new Network(2)
    const run = new TestRun()
    await run.start(network.node(0), network.clock)
    network.hints = []
    const early = new Reading(run.id, 0, network.node(1), network.clock)
    await network.clock.advance(0)
    await run.write(delta('x'))
    const late = new Reading(run.id, 0, network.node(1), network.clock)
    await network.clock.advance(0)
    assert.deepEqual([early.got.length, late.got.length], [3, 4])

    network.deliver(0)
    await network.clock.advance(0)

    assert.equal(early.got.length, 4)
    for (const { follower, done } of [early, late]) {
      follower.close()
      await done
    }
  })

  it('wait for a store that is away, and for an event that is not readable yet', async () => {
    let failures = 3
    const lagging = {
      readLastSeqs: store.readLastSeqs,
      readEvents: async (...given: Parameters<Store['readEvents']>) => {
        failures -= 1
        if (failures === 2) throw new AppError('store_unavailable', 'The database is away.')
        if (failures >= 0) return { events: [], skipped: 0, nextAfter: given[1], atHead: true }
        return await store.readEvents(...given)
      },
    }
    const lags: number[] = []
    const meter = { delivered: (seconds: number) => void lags.push(seconds) }
    const network = new Network(2, { store: lagging, meter })
    const run = new TestRun()
    await run.start(network.node(0), network.clock)
    const reading = new Reading(run.id, 0, network.node(1), network.clock)
    await network.clock.advance(0)
    await run.end()
    network.deliver(network.hints.length - 1)
    await network.clock.advance(1_000)
    await reading.done
    assert.equal(reading.got.at(-1)?.type, 'run.ended')
    assert.ok(failures < 0)
    assert.equal(lags.length, 1)
  })

  it('are not misled for long by an announcement that was wrong', async () => {
    const network = new Network(2)
    const run = new TestRun()
    await run.start(network.node(0), network.clock)
    const reading = new Reading(run.id, 0, network.node(1), network.clock)
    await network.clock.advance(0)
    // As after a crash of the database that lost what was announced.
    network.node(1).reader.announced(run.id, 5_000, 0)
    await network.clock.advance(15_000)
    await run.end()
    network.hints = []
    await network.clock.advance(3 * pollMs)
    assert.ok(reading.isOver)
    assert.deepEqual(reading.got, await allEvents(store, run.id))
  })

  it('end when their run was removed, even if nothing told of it', async () => {
    const network = new Network(2)
    const run = new TestRun()
    await run.start(network.node(0), network.clock)
    const reading = new Reading(run.id, 0, network.node(1), network.clock)
    await network.clock.advance(0)
    await run.end()
    assert.equal(await store.removeRun(run.id), true)
    network.hints = []
    await network.clock.advance(2 * pollMs)
    await reading.done
  })
})

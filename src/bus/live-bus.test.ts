// When the readers of a run get new events. That none is missed or repeated is in test/properties/follower.test.ts.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type ManualClock, manualClock } from '../../test/support/manual-clock.ts'
import type { RunEvent } from '../journal/event.ts'
import { type Channel, type ChannelFollower, createProcessBus, type LiveBus } from './live-bus.ts'

const delta = (seq: number): RunEvent => ({
  seq,
  at: 1,
  attempt: 1,
  type: 'text.delta',
  data: { messageId: 'm', text: 'a' },
})
const barrier = (seq: number): RunEvent => ({
  seq,
  at: 1,
  attempt: 1,
  type: 'run.state',
  data: { from: 'running', to: 'queued', trigger: 'restart.requeued' },
})

/** Takes every batch at once, and notes when. */
class Reader implements ChannelFollower {
  cursor = 0
  readonly got: string[] = []
  private readonly channel: Channel

  constructor(bus: LiveBus, clock: ManualClock) {
    const startedAt = clock.monotonic()
    this.wake = () => {
      const batch = this.channel.after(this.cursor)
      if (batch === undefined) return
      this.cursor = batch.lastSeq
      this.got.push(`${clock.monotonic() - startedAt} ms: ${batch.events.map(({ seq }) => seq).join(' ')}`)
    }
    this.channel = bus.join('r', this)
  }

  wake: () => void

  leave(): void {
    this.channel.leave()
  }
}

function readersOf(count: number) {
  const clock = manualClock()
  const bus = createProcessBus(clock)
  const readers = Array.from({ length: count }, () => new Reader(bus, clock))
  const publish = (...events: RunEvent[]) => bus.publish('r', events)
  return { clock, readers, publish, got: () => readers[0]?.got }
}

describe('a run with few readers', () => {
  test('hands out each delta at once', () => {
    const { readers, publish } = readersOf(15)
    for (let seq = 1; seq <= 4; seq += 1) publish(delta(seq))
    for (const { got } of readers) assert.deepEqual(got, ['0 ms: 1', '0 ms: 2', '0 ms: 3', '0 ms: 4'])
  })
})

describe('a run with many readers', () => {
  test('hands out its deltas in passes: the first at once, and those that follow together', async () => {
    const { clock, readers, publish } = readersOf(100)
    for (let seq = 1; seq <= 10; seq += 1) {
      publish(delta(seq))
      await clock.advance(20)
    }
    for (const { got } of readers) assert.deepEqual(got, ['0 ms: 1', '75 ms: 2 3 4', '150 ms: 5 6 7 8'])
    await clock.advance(1000)
    publish(delta(11))
    assert.deepEqual(readers[99]?.got.slice(-2), ['225 ms: 9 10', '1200 ms: 11'])
  })

  test('hands out everything else at once, after the deltas before it', async () => {
    const { clock, publish, got } = readersOf(20)
    publish(delta(1))
    publish(delta(2))
    publish(barrier(3))
    publish(delta(4), delta(5))
    assert.deepEqual(got(), ['0 ms: 1', '0 ms: 2 3'])
    await clock.advance(15)
    assert.deepEqual(got()?.slice(2), ['15 ms: 4 5'])
    await clock.advance(1000)
    assert.equal(got()?.length, 3)
  })

  test('lets no delta wait longer than 100 ms, and hands out many at once before', async () => {
    const { clock, publish, got } = readersOf(1000)
    publish(delta(1))
    publish(delta(2))
    await clock.advance(99)
    assert.deepEqual(got(), ['0 ms: 1'])
    await clock.advance(1)
    assert.deepEqual(got(), ['0 ms: 1', '100 ms: 2'])
    for (let seq = 3; seq < 3 + 256; seq += 1) publish(delta(seq))
    assert.match(got()?.[2] ?? '', /^100 ms: 3 .* 258$/)
  })

  test('has nothing to do when its readers have left', async () => {
    const { clock, readers, publish, got } = readersOf(20)
    publish(delta(1))
    publish(delta(2))
    for (const reader of readers) reader.leave()
    assert.equal(clock.pending, 0)
    await clock.advance(1000)
    assert.deepEqual(got(), ['0 ms: 1'])
  })
})

// When the readers of a run get new events. That none is missed or repeated is in test/properties/follower.test.ts.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type ManualClock, manualClock } from '../../test/support/manual-clock.ts'
import type { RunEvent } from '../journal/event.ts'
import type { RunRow } from '../stores/run-store.ts'
import { type FollowedStore, Follower } from './follower.ts'
import { type Channel, type ChannelFollower, createProcessBus, type EventBatch, type LiveBus } from './live-bus.ts'

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

describe('a run with one reader that waits', () => {
  /** A journal of deltas, and the seqs that it was asked for. */
  function setUp(stored: number) {
    const asked: number[] = []
    const store: FollowedStore = {
      readEvents: async (_, after) => {
        asked.push(after)
        const events = Array.from({ length: Math.max(0, stored - after) }, (_event, index) => delta(after + 1 + index))
        return { events, nextAfter: Math.max(after, stored), atHead: true, skipped: 0 }
      },
      readRun: async () => ({ endedAt: null, lastSeq: stored }) as RunRow,
    }
    const bus = createProcessBus(manualClock())
    const publish = (...seqs: number[]) => bus.publish('r', seqs.map(delta))
    const follow = (after: number) => new Follower('r', after, store, bus, manualClock())
    return { asked, bus, publish, follow }
  }

  const seqsOf = (batch: EventBatch | null | undefined) => batch?.events.map(({ seq }) => seq)

  async function waiting(follower: Follower, takesMore = () => true) {
    const got: number[] = []
    assert.equal(await follower.nextNow(), undefined)
    const done = follower.receiveLive({
      receive(batch) {
        got.push(...batch.events.map(({ seq }) => seq))
        return takesMore()
      },
    })
    return { got, done }
  }

  test('hands its events over at once, and keeps none of them', async () => {
    const { asked, bus, publish, follow } = setUp(0)
    const { got } = await waiting(follow(0))
    asked.length = 0
    publish(1)
    publish(2, 3)
    assert.deepEqual(got, [1, 2, 3])
    assert.deepEqual(asked, [])
    assert.equal(bus.join('r', { cursor: 0, wake: () => {} }).after(0), undefined)
  })

  test('tells a reader that joins later how far the run is', async () => {
    const { bus, publish, follow } = setUp(0)
    await waiting(follow(0))
    publish(1, 2)
    const heard: number[] = []
    bus.join('r', { cursor: 0, wake: (headSeq) => void heard.push(headSeq) })
    assert.deepEqual(heard, [2])
  })

  test('does not skip an event that was stored and not announced', async () => {
    const { publish, follow } = setUp(3)
    const follower = follow(3)
    const { got, done } = await waiting(follower)
    publish(5)
    await done
    assert.deepEqual(got, [])
  })

  test('does not repeat an event that it has', async () => {
    const { publish, follow } = setUp(3)
    const follower = follow(0)
    assert.deepEqual(seqsOf(await follower.next()), [1, 2, 3])
    const { got } = await waiting(follower)
    publish(2, 3)
    publish(3, 4)
    assert.deepEqual(got, [4])
  })

  test('goes on when the reader has taken enough', async () => {
    const { publish, follow } = setUp(0)
    const follower = follow(0)
    const { got, done } = await waiting(follower, () => false)
    publish(1)
    publish(2)
    await done
    assert.deepEqual(got, [1])
    assert.deepEqual(seqsOf(await follower.next()), [2])
  })

  test('ends for the reader with its last event', async () => {
    const { bus, follow } = setUp(0)
    const follower = follow(0)
    const { got, done } = await waiting(follower)
    const ended: RunEvent = { seq: 1, at: 1, attempt: 1, type: 'run.ended', data: { status: 'succeeded' } }
    bus.publish('r', [ended])
    await done
    assert.deepEqual(got, [1])
    assert.equal(await follower.next(), null)
  })

  test('is not hurt by a reader that fails', async () => {
    const { publish, follow } = setUp(0)
    const { done } = await waiting(follow(0), () => {
      throw new Error('gone')
    })
    publish(1)
    publish(2)
    await assert.rejects(done, /gone/)
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

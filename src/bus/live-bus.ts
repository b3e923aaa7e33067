// Live fan-out within a process: hands newly committed events to the current followers of
// their run. Every event on the bus is already in the journal. The bus keeps in memory only
// the batches that its slowest follower still needs, up to a bound; a follower that falls
// further behind reads from the store.

import { isBarrier, type RunEvent } from '../journal/event.ts'
import type { EventPage } from '../journal/event-pages.ts'
import type { StoredEvent } from '../journal/stored-events.ts'
import type { Clock, Timer } from '../kit/clock.ts'

/** Events that were committed together. All followers of the run share the batch and its encoded bytes. */
export type EventBatch = {
  readonly firstSeq: number
  readonly lastSeq: number
  readonly events: readonly RunEvent[]
  /** The same events; text deltas from the store are not decoded. */
  readonly stored: readonly StoredEvent[]
  /** The encoded events by dialect. Filled by the first follower that needs them. */
  readonly encoded: EncodedEvents
}

/** Nearly always one dialect, for which a map would be the largest object of a batch. */
class EncodedEvents {
  private key: string | undefined
  private value: unknown
  private more: Map<string, unknown> | undefined

  get(key: string): unknown {
    return key === this.key ? this.value : this.more?.get(key)
  }

  set(key: string, value: unknown): void {
    if (this.key === undefined) {
      this.key = key
      this.value = value
    } else this.more = (this.more ?? new Map<string, unknown>()).set(key, value)
  }
}

export function eventBatch(events: readonly RunEvent[]): EventBatch {
  return {
    firstSeq: events[0]?.seq ?? 0,
    lastSeq: events.at(-1)?.seq ?? 0,
    events,
    stored: events,
    encoded: new EncodedEvents(),
  }
}

/** The events of a page that has some. They are decoded only if they are asked for. */
export function pageBatch(page: EventPage): EventBatch {
  const { stored } = page
  if (stored === undefined) return eventBatch(page.events)
  return {
    firstSeq: stored[0]?.seq ?? 0,
    lastSeq: page.nextAfter,
    get events() {
      return page.events
    },
    stored,
    encoded: new EncodedEvents(),
  }
}

export interface LiveBus {
  /**
   * The first events of a run were committed. A follower that joins in this turn of the event loop or the next one gets them from
   * memory, as the client does whose request started the run.
   */
  begin(runId: string, events: readonly RunEvent[]): void
  /** Call after the commit, in order of seq. */
  publish(runId: string, events: readonly RunEvent[]): void
  /** Events up to `headSeq` were committed, but are not at hand: followers read the store. */
  wake(runId: string, headSeq: number): void
  join(runId: string, follower: ChannelFollower): Channel
}

export interface ChannelFollower {
  /** The seq of the last event that the follower has read. */
  readonly cursor: number
  /** Events up to `headSeq` were committed. */
  wake(headSeq: number): void
  /** Takes a batch if it waits for just this one. Otherwise, and if this is absent, the follower finds the batch in the channel. */
  takeNow?(batch: EventBatch): boolean
}

export interface Channel {
  /** The batch that holds the event after `cursor`, or undefined if it is not in memory. */
  after(cursor: number): EventBatch | undefined
  leave(): void
}

/** How many events of a run stay in memory for followers that are a little behind. */
const keptEventsMax = 256
/** In UTF-16 units. A single batch that is larger is not kept: followers read it from the store. */
const keptCharsMax = 256 * 1024

/** Estimated size of an event besides its text: ids, names, the object itself. */
const eventOverhead = 64

/**
 * To hand a batch to a reader is to write to its socket, which costs about 20 µs for each of them, whether it has one delta or ten. A
 * run with many readers would take the whole processor from the others, so its readers get deltas in passes, and the next
 * pass comes after a time that grows with their number: the passes take some two percent of one core. A run with
 * 100 readers has a pass every 75 ms at most.
 */
const manyReaders = 16
const passMsPerReader = 0.75
const passMsMax = 100

type KeptBatch = { readonly batch: EventBatch; readonly chars: number }

class RunChannel {
  readonly followers = new Set<ChannelFollower>()
  /** The follower, if there is one only. */
  private only: ChannelFollower | undefined
  /** The seq of the newest event that was announced here; 0 if none was. */
  headSeq = 0
  private kept: KeptBatch[] = []
  /** Deltas that wait for the next pass. */
  private gathered: RunEvent[] | undefined
  private nextPass: Timer | undefined
  private lastPassAt = Number.NEGATIVE_INFINITY
  private readonly clock: BusClock

  constructor(clock: BusClock) {
    this.clock = clock
  }

  add(follower: ChannelFollower): void {
    this.followers.add(follower)
    this.only = this.followers.size === 1 ? follower : undefined
  }

  remove(follower: ChannelFollower): void {
    this.followers.delete(follower)
    this.only = this.followers.size === 1 ? [...this.followers][0] : undefined
  }

  publish(events: readonly RunEvent[]): void {
    const waitMs = this.untilNextPass()
    const isUrgent = waitMs <= 0 || events.some(({ type }) => isBarrier(type))
    if (this.gathered === undefined && isUrgent) return this.handOut(events)
    this.gathered ??= []
    this.gathered.push(...events)
    if (isUrgent || this.gathered.length >= keptEventsMax) this.handOutGathered()
    else this.nextPass ??= this.clock.after(waitMs, () => this.handOutGathered())
  }

  private untilNextPass(): number {
    const readers = this.followers.size
    if (readers < manyReaders) return 0
    return this.lastPassAt + Math.min(readers * passMsPerReader, passMsMax) - this.clock.monotonic()
  }

  private handOutGathered(): void {
    const { gathered } = this
    this.forgetGathered()
    if (gathered !== undefined) this.handOut(gathered)
  }

  /** Readers find the gathered events in the store. */
  forgetGathered(): void {
    this.nextPass?.cancel()
    this.nextPass = undefined
    this.gathered = undefined
  }

  private handOut(events: readonly RunEvent[]): void {
    if (this.followers.size >= manyReaders) this.lastPassAt = this.clock.monotonic()
    const batch = eventBatch(events)
    // Nearly always there is one follower, which waits for the next batch. Then the batch need not be kept.
    if (this.kept.length === 0 && this.only?.takeNow?.(batch) === true) {
      this.headSeq = Math.max(this.headSeq, batch.lastSeq)
      return
    }
    let chars = 0
    for (const event of events) chars += sizeOf(event)
    this.prune(chars)
    if (chars <= keptCharsMax) this.kept.push({ batch, chars })
    this.wake(batch.lastSeq)
  }

  wake(headSeq: number): void {
    if (headSeq > this.headSeq) this.headSeq = headSeq
    for (const follower of this.followers) follower.wake(headSeq)
  }

  after(cursor: number): EventBatch | undefined {
    // Searches from the end, because nearly always the last batch is the right one.
    for (let index = this.kept.length - 1; index >= 0; index--) {
      const { batch } = this.kept[index] as KeptBatch
      if (batch.firstSeq > cursor + 1) continue
      if (batch.lastSeq > cursor) return batch
      // The only follower has read everything. It may wait for long, and the batch holds its events and their encoded bytes.
      if (this.followers.size === 1 && index === this.kept.length - 1) this.kept.length = 0
      return undefined
    }
    return undefined
  }

  /** Drops batches that all followers have read, and the oldest ones until a batch of `chars` fits. */
  private prune(chars: number): void {
    let slowest = Number.POSITIVE_INFINITY
    for (const follower of this.followers) slowest = Math.min(slowest, follower.cursor)
    let events = 0
    let total = chars
    for (let index = this.kept.length - 1; index >= 0; index--) {
      const { batch, chars: batchChars } = this.kept[index] as KeptBatch
      events += batch.events.length
      total += batchChars
      if (batch.lastSeq <= slowest || events > keptEventsMax || total > keptCharsMax) {
        this.kept.splice(0, index + 1)
        return
      }
    }
  }
}

/** A class and not an object with functions, because every open stream has one. */
class JoinedChannel implements Channel {
  private readonly runId: string
  private readonly channel: RunChannel
  private readonly follower: ChannelFollower
  private readonly channels: Map<string, RunChannel>

  constructor(runId: string, channel: RunChannel, follower: ChannelFollower, channels: Map<string, RunChannel>) {
    this.runId = runId
    this.channel = channel
    this.follower = follower
    this.channels = channels
  }

  after(cursor: number): EventBatch | undefined {
    return this.channel.after(cursor)
  }

  leave(): void {
    const { runId, channel, channels } = this
    channel.remove(this.follower)
    if (channel.followers.size > 0) return
    channel.forgetGathered()
    if (channels.get(runId) === channel) channels.delete(runId)
  }
}

/** The approximate memory of an event in UTF-16 units: the length of all its strings. Nearly all events are deltas, so they have a fast path. */
function sizeOf(event: RunEvent): number {
  if (event.type === 'text.delta') return eventOverhead + event.data.text.length
  let chars = 0
  const rest: unknown[] = [event.data]
  while (rest.length > 0) {
    const value = rest.pop()
    if (typeof value === 'string') chars += value.length
    else if (typeof value === 'object' && value !== null) {
      chars += eventOverhead
      for (const key in value) {
        chars += key.length
        rest.push((value as Record<string, unknown>)[key])
      }
    }
  }
  return chars
}

type BusClock = Pick<Clock, 'monotonic' | 'after'>

export function createProcessBus(clock: BusClock): LiveBus {
  const channels = new Map<string, RunChannel>()
  return {
    begin(runId, events) {
      if (channels.has(runId)) return
      const channel = new RunChannel(clock)
      channel.publish(events)
      channels.set(runId, channel)
      const forget = () => {
        if (channel.followers.size === 0 && channels.get(runId) === channel) channels.delete(runId)
      }
      setImmediate(() => setImmediate(forget))
    },
    publish(runId, events) {
      // Without followers nothing is kept, because a new follower reads the store first.
      if (events.length > 0) channels.get(runId)?.publish(events)
    },
    wake: (runId, headSeq) => channels.get(runId)?.wake(headSeq),
    join(runId, follower) {
      let channel = channels.get(runId)
      if (channel === undefined) {
        channel = new RunChannel(clock)
        channels.set(runId, channel)
      }
      channel.add(follower)
      if (channel.headSeq > 0) follower.wake(channel.headSeq)
      return new JoinedChannel(runId, channel, follower, channels)
    },
  }
}

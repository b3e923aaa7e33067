// The live bus of a node in a cluster. Events of runs that this node drives are published as in a
// single process, and announced to the other nodes. For followed runs of other nodes it reads the
// journal when an announcement comes, once for all followers on this node, and publishes what it
// read. Announcements are hints: they may be lost, late, repeated or out of order. A slow poll
// finds what was lost.
//
// Followers cut what they have and read the store for what a batch leaves out, so a batch that
// repeats or skips events does no harm. A run may move between nodes at any time.

import type { RunEvent } from '../journal/event.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import type { RunStore } from '../stores/run-store.ts'
import type { BusMeter, ClusterBus, ClusterListener } from './cluster-bus.ts'
import type { Channel, ChannelFollower, LiveBus } from './live-bus.ts'

/** Events per read. */
const pageEvents = 512
/** How many reads run at the same time. Runs that wait for their turn gather announcements, and writes need connections too. */
const readsAtOnce = 4
/** A new follower reads old events itself; the shared reads begin this far before the announced one. */
const firstReadEvents = 64
/** How often runs are looked at that had no hint meanwhile. */
const pollMsDefault = 3_000
/** The wait after a failed read, or if an announced event is not readable yet. Doubles up to `rereadMaxMs`. */
const rereadMs = 20
const rereadMaxMs = 1_000
/** After so many reads in a row without a new event the announcement is not believed any more; the poll goes on. */
const emptyReadsMax = 10

export type RemoteReaderDependencies = {
  /** The bus of this process. */
  bus: LiveBus
  cluster: Pick<ClusterBus, 'announce'>
  store: Pick<RunStore, 'readEvents' | 'readLastSeqs'>
  clock: Clock
  meter?: Pick<BusMeter, 'delivered'> | undefined
  pollMs?: number
}

type FollowedRun = {
  readonly followers: Set<ChannelFollower>
  /** The seq up to which events were published on this node. Null until the first hint. */
  publishedSeq: number | null
  /** The highest seq that is known to be committed. */
  knownSeq: number
  /** When the announcement of `knownSeq` was sent, by the sender's clock. Null if the poll found it. */
  announcedAt: number | null
  /** The monotonic time of the last hint or publication. */
  heardAt: number
  state: 'idle' | 'due' | 'reading' | 'paused'
  /** Set while the state is `paused`. */
  rereadTimer: Timer | undefined
  emptyReads: number
}

export class RemoteReader implements LiveBus, ClusterListener {
  readonly #dependencies: RemoteReaderDependencies
  readonly #pollMs: number
  readonly #runs = new Map<string, FollowedRun>()
  /** The runs whose state is `due`, in the order of their announcements. */
  readonly #due = new Set<string>()
  #reads = 0
  #pollTimer: Timer | undefined
  #polling = false
  /** Hints were lost while a poll was under way. */
  #pollAll = false

  constructor(dependencies: RemoteReaderDependencies) {
    this.#dependencies = dependencies
    this.#pollMs = dependencies.pollMs ?? pollMsDefault
  }

  begin(runId: string, events: readonly RunEvent[]): void {
    this.#dependencies.bus.begin(runId, events)
  }

  publish(runId: string, events: readonly RunEvent[]): void {
    const lastSeq = events.at(-1)?.seq
    if (lastSeq === undefined) return
    this.#dependencies.cluster.announce(runId, lastSeq)
    const run = this.#runs.get(runId)
    if (run === undefined) return
    run.heardAt = this.#dependencies.clock.monotonic()
    if (run.knownSeq < lastSeq) run.knownSeq = lastSeq
    // The store has just accepted them, so this is right even if an announcement claimed more.
    run.publishedSeq = lastSeq
    this.#dependencies.bus.publish(runId, events)
  }

  wake(runId: string, headSeq: number): void {
    this.#dependencies.bus.wake(runId, headSeq)
  }

  join(runId: string, follower: ChannelFollower): Channel {
    const { bus, clock } = this.#dependencies
    let run = this.#runs.get(runId)
    if (run === undefined) {
      run = {
        followers: new Set(),
        publishedSeq: null,
        knownSeq: 0,
        announcedAt: null,
        heardAt: clock.monotonic(),
        state: 'idle',
        rereadTimer: undefined,
        emptyReads: 0,
      }
      this.#runs.set(runId, run)
    }
    const joined = run
    joined.followers.add(follower)
    this.#armPoll()
    const channel = bus.join(runId, follower)
    return {
      after: (cursor) => channel.after(cursor),
      leave: () => {
        channel.leave()
        joined.followers.delete(follower)
        if (joined.followers.size > 0 || this.#runs.get(runId) !== joined) return
        this.#runs.delete(runId)
        this.#due.delete(runId)
        joined.rereadTimer?.cancel()
        if (this.#runs.size === 0) {
          this.#pollTimer?.cancel()
          this.#pollTimer = undefined
        }
      },
    }
  }

  announced(runId: string, seq: number, at: number): void {
    const run = this.#runs.get(runId)
    if (run === undefined) return
    run.heardAt = this.#dependencies.clock.monotonic()
    if (seq <= run.knownSeq) return
    if (run.state === 'idle') run.announcedAt = at
    this.#learned(runId, run, seq)
  }

  signalled(): void {}

  missed(): void {
    if (this.#polling) this.#pollAll = true
    else void this.#poll([...this.#runs.keys()])
  }

  #learned(runId: string, run: FollowedRun, seq: number): void {
    run.knownSeq = seq
    run.emptyReads = 0
    if (run.publishedSeq === null) {
      // From the follower that has the least: another one may have read the announced event from the store already.
      let leastCursor = seq
      for (const { cursor } of run.followers) leastCursor = Math.min(leastCursor, cursor)
      run.publishedSeq = Math.max(leastCursor, seq - firstReadEvents)
    }
    // A read that is under way or about to be repeated sees the new `knownSeq`.
    if (run.state !== 'idle' || run.publishedSeq >= seq) return
    run.state = 'due'
    this.#due.add(runId)
    this.#startReads()
  }

  #startReads(): void {
    for (const runId of this.#due) {
      if (this.#reads >= readsAtOnce) return
      this.#due.delete(runId)
      const run = this.#runs.get(runId)
      if (run === undefined) continue
      run.state = 'reading'
      this.#reads += 1
      void this.#read(runId, run).finally(() => {
        this.#reads -= 1
        this.#startReads()
      })
    }
  }

  /** Reads one page; what remains is due again, behind the runs that wait. */
  async #read(runId: string, run: FollowedRun): Promise<void> {
    const { store, bus, clock, meter } = this.#dependencies
    const after = run.publishedSeq ?? 0
    let hasProgress = false
    try {
      const page = await store.readEvents(runId, after, pageEvents)
      if (this.#runs.get(runId) !== run) return
      this.#publishNew(runId, run, page.events)
      if (page.nextAfter > (run.publishedSeq ?? 0)) {
        // The rest of the page cannot be decoded; followers have to pass it too.
        run.publishedSeq = page.nextAfter
        bus.wake(runId, page.nextAfter)
      }
      hasProgress = page.nextAfter > after
    } catch {
      // The store is away for a moment. Whoever uses it otherwise reports that.
    }
    if (this.#runs.get(runId) !== run) return
    if ((run.publishedSeq ?? 0) >= run.knownSeq) {
      run.state = 'idle'
      run.emptyReads = 0
      if (run.announcedAt !== null) meter?.delivered(Math.max(0, clock.now() - run.announcedAt) / 1000)
      run.announcedAt = null
      return
    }
    if (hasProgress) {
      run.emptyReads = 0
      this.#readAgain(runId, run)
      return
    }
    run.emptyReads += 1
    if (run.emptyReads > emptyReadsMax) {
      // The database may have lost the announced events in a crash. The next hint starts from the followers' cursors.
      run.knownSeq = 0
      run.publishedSeq = null
      run.announcedAt = null
      run.state = 'idle'
      return
    }
    run.state = 'paused'
    const waitMs = Math.min(rereadMs * 2 ** (run.emptyReads - 1), rereadMaxMs)
    run.rereadTimer = clock.after(waitMs, () => {
      run.rereadTimer = undefined
      this.#readAgain(runId, run)
      this.#startReads()
    })
  }

  #readAgain(runId: string, run: FollowedRun): void {
    run.state = 'due'
    this.#due.add(runId)
  }

  #publishNew(runId: string, run: FollowedRun, events: readonly RunEvent[]): void {
    const published = run.publishedSeq ?? 0
    const first = events[0]
    const last = events.at(-1)
    if (first === undefined || last === undefined || last.seq <= published) return
    run.publishedSeq = last.seq
    const fresh = first.seq > published ? events : events.filter(({ seq }) => seq > published)
    this.#dependencies.bus.publish(runId, fresh)
  }

  #armPoll(): void {
    this.#pollTimer ??= this.#dependencies.clock.after(this.#pollMs, () => {
      this.#pollTimer = undefined
      const silentSince = this.#dependencies.clock.monotonic() - this.#pollMs
      const silent: string[] = []
      for (const [runId, { heardAt }] of this.#runs) if (heardAt <= silentSince) silent.push(runId)
      void this.#poll(silent).finally(() => {
        if (this.#runs.size > 0) this.#armPoll()
      })
    })
  }

  /** Looks for events that no hint told of. */
  async #poll(runIds: readonly string[]): Promise<void> {
    if (runIds.length === 0 || this.#polling) return
    this.#polling = true
    try {
      const lastSeqs = await this.#dependencies.store.readLastSeqs(runIds)
      for (const runId of runIds) {
        const run = this.#runs.get(runId)
        if (run === undefined) continue
        const lastSeq = lastSeqs.get(runId)
        // The run was removed: followers that look at the store learn of it.
        if (lastSeq === undefined) this.#dependencies.bus.wake(runId, Number.MAX_SAFE_INTEGER)
        else if (lastSeq > run.knownSeq && lastSeq > (run.publishedSeq ?? 0)) this.#learned(runId, run, lastSeq)
      }
    } catch {
      // The next poll tries again.
    } finally {
      this.#polling = false
    }
    if (!this.#pollAll) return
    this.#pollAll = false
    await this.#poll([...this.#runs.keys()])
  }
}

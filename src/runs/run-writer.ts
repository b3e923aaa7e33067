// The only writer of a run's journal. It checks and numbers events, stores them, and
// publishes them after the commit, in that order. It belongs to the node that claimed the
// run: every append carries the epoch of the claim as a fencing token. Once an append is
// refused, the writer is `lost` and accepts nothing more.
//
// One append is in flight at a time. Events that are pushed meanwhile are sent together in
// the next append, so deltas share commits without a timer.

import { AppError } from '../errors/app-error.ts'
import type { LiveBus } from '../bus/live-bus.ts'
import type { Clock } from '../kit/clock.ts'
import { eventBytesMax, isBarrier, type NewEvent, type RunEvent } from '../journal/event.ts'
import { checkEvent } from '../journal/event-codec.ts'
import { applyEvent, checkTransition, type RunState } from '../journal/run-state.ts'
import { PairCheck } from '../journal/pair-check.ts'
import { phaseAfter } from '../journal/transitions.ts'
import type { RunStore, RunWrite } from '../stores/run-store.ts'
import { foldRows, type RowChanges } from './row-folds.ts'
import type { CommitMeter } from './run-dependencies.ts'
import type { KindOf } from './run-kind.ts'

export type WriterDependencies = {
  store: Pick<RunStore, 'append'>
  bus: Pick<LiveBus, 'publish'>
  clock: Clock
  kindOf: KindOf
  countEvents?: (count: number) => void
  commitMeter?: CommitMeter
  /** The database may crash while this process lives on, and lose deltas that readers have seen. */
  databaseMayCrash?: boolean
}

export class RunWriter {
  readonly runId: string
  /** The fold of all pushed events, including those that are not committed yet. */
  readonly state: RunState
  /** Set when an append failed: another node has claimed the run, or the store cannot be written. */
  lost: AppError | undefined
  /** The seq of the newest committed event. */
  committedSeq: number
  /** Called once, when the writer is lost. */
  onLost: ((error: AppError) => void) | undefined
  /** How many pushed events are not committed yet. */
  get backlog(): number {
    return this.state.lastSeq - this.committedSeq
  }

  private readonly epoch: number
  private readonly dependencies: WriterDependencies
  /**
   * Undefined if there are none: an empty list that waits for the next event gets old, and what it then holds outlives many collections of
   * garbage.
   */
  private pending: RunEvent[] | undefined
  /** What the pending events change in other rows. Undefined if it is nothing, as for deltas. */
  private pendingRows: RowChanges | undefined
  private pendingBarrier = false
  private draining = false
  /** Resolves when no append is in flight; never rejects. */
  private appending: Promise<void> = Promise.resolve()
  /** Committed appends that a crash of the database could still lose, with the monotonic times of their commits. */
  private unsynced: { write: RunWrite; committedAt: number }[] = []
  /** The database lost the unsynced appends after this seq. */
  private lostAfterSeq: number | undefined
  private waiters: { seq: number; resolve: () => void; reject: (error: AppError) => void }[] = []

  constructor(runId: string, epoch: number, state: RunState, dependencies: WriterDependencies) {
    this.runId = runId
    this.epoch = epoch
    this.state = state
    this.dependencies = dependencies
    this.committedSeq = state.lastSeq
  }

  /**
   * Checks, numbers and queues events that get the same time: all of them, or none if one is refused. Readers see them
   * after their commit, which starts at once unless an append is in flight.
   */
  push(...events: NewEvent[]): void {
    this.queue(events)
    this.flush()
  }

  /**
   * Like `push`, but the commit starts with the next push, or in the next turn of the event loop if there is none: for events
   * that nothing waits for, and that others follow at once.
   */
  stage(...events: NewEvent[]): void {
    this.queue(events)
    setImmediate(() => this.flush())
  }

  private queue(pushed: readonly NewEvent[]): void {
    if (this.lost !== undefined) throw this.lost
    let { phase } = this.state
    let pairs: PairCheck | undefined
    const events: NewEvent[] = []
    for (const one of pushed) {
      const event = checkEvent(one)
      events.push(event)
      checkSize(event)
      checkTransition(phase, event)
      // Text belongs to no pair.
      if (event.type === 'text.delta') continue
      pairs ??= new PairCheck(this.state)
      checkPair(pairs, event)
      phase = phaseAfter(phase, event)
    }
    const at = Math.max(this.dependencies.clock.now(), this.state.lastAt)
    for (const event of events) this.number(event, at)
  }

  /** Resolves when every event pushed so far is committed (and synced to disk, if one of them is a barrier). */
  committed(): Promise<void> {
    if (this.lost !== undefined) return Promise.reject(this.lost)
    const seq = this.state.lastSeq
    if (this.committedSeq >= seq) return Promise.resolve()
    this.flush()
    return new Promise((resolve, reject) => {
      this.waiters.push({ seq, resolve, reject })
    })
  }

  async write(...events: NewEvent[]): Promise<void> {
    this.push(...events)
    await this.committed()
  }

  /** Releases the lease without an event: the parked run was woken, but still has to wait until `wakeAt`. */
  async park(wakeAt: number | null): Promise<void> {
    await this.releaseWith({ wakeAt })
  }

  /** Releases the lease and changes nothing else. */
  async release(): Promise<void> {
    await this.releaseWith({})
  }

  /**
   * Accepts no more events, and drops those that were pushed but not sent. Resolves when the append in flight has finished:
   * from then on the journal holds everything that this writer will ever write.
   */
  async retire(reason: AppError): Promise<void> {
    if (this.lost === undefined) this.lose(reason)
    await this.appending
  }

  /**
   * A durable commit that began at this monotonic time found `lastSeq` in the row of the run. Earlier appends beyond it were
   * lost in a crash of the database, and are stored again, with their numbers, because readers have seen them. The others
   * are on disk now.
   */
  synced(at: number, lastSeq: number): void {
    if (this.unsynced.length === 0 || this.lost !== undefined) return
    const isLost = this.unsynced.some(({ write, committedAt }) => committedAt < at && write.afterSeq >= lastSeq)
    if (isLost) {
      this.lostAfterSeq = lastSeq
      this.flush()
    } else this.unsynced = this.unsynced.filter(({ committedAt }) => committedAt >= at)
  }

  /** The committed appends that a crash of the database could lose, in order. */
  unsyncedWrites(): RunWrite[] {
    return this.unsynced.map(({ write }) => write)
  }

  /** Resolves when no append is in flight. */
  async settled(): Promise<void> {
    await this.appending
  }

  private async releaseWith(change: { wakeAt?: number | null }): Promise<void> {
    await this.committed()
    try {
      await this.dependencies.store.append({
        runId: this.runId,
        epoch: this.epoch,
        afterSeq: this.committedSeq,
        events: [],
        durable: true,
        run: { ...change, release: true },
      })
    } catch (error) {
      // Handled like any failed append: the driver retries, so a failure of the disk does not end a waiting run.
      throw this.lose(error)
    }
  }

  private number(event: NewEvent, at: number): void {
    // `attempt` is 1 at first and grows each time the run goes from queued to running again.
    const starts = event.type === 'run.state' && event.data.to === 'running' && this.state.startedAt !== undefined
    const attempt = this.state.attempt + (starts ? 1 : 0)
    const numbered = { seq: this.state.lastSeq + 1, at, attempt, type: event.type, data: event.data } as RunEvent
    applyEvent(this.state, numbered)
    // Every token takes this path, and text changes no row before its message is done.
    if (event.type !== 'text.delta')
      foldRows(this.runId, this.state, numbered, (this.pendingRows ??= {}), this.dependencies.kindOf)
    if (this.pending === undefined) this.pending = [numbered]
    else this.pending.push(numbered)
    if (isBarrier(numbered.type)) this.pendingBarrier = true
  }

  private flush(): void {
    if (!this.draining) this.appending = this.drain()
  }

  private async drain(): Promise<void> {
    this.draining = true
    while (this.lost === undefined) {
      if (this.lostAfterSeq !== undefined) {
        await this.rewriteLostAppends(this.lostAfterSeq)
        continue
      }
      const events = this.pending
      if (events === undefined) break
      const write: RunWrite = {
        runId: this.runId,
        epoch: this.epoch,
        afterSeq: this.committedSeq,
        events,
        durable: this.pendingBarrier,
      }
      if (this.pendingRows !== undefined) Object.assign(write, this.pendingRows)
      this.pending = undefined
      this.pendingRows = undefined
      this.pendingBarrier = false
      const { clock, commitMeter } = this.dependencies
      const startedAt = clock.monotonic()
      commitMeter?.commitStarted()
      try {
        await this.dependencies.store.append(write)
      } catch (error) {
        this.lose(error)
        break
      } finally {
        commitMeter?.commitDone(clock.monotonic() - startedAt)
      }
      this.committedSeq += events.length
      this.keepUnsynced(write)
      this.dependencies.countEvents?.(events.length)
      this.dependencies.bus.publish(this.runId, events)
      this.settle()
    }
    this.draining = false
  }

  private async rewriteLostAppends(lastSeq: number): Promise<void> {
    this.lostAfterSeq = undefined
    try {
      await rewriteLost(this.dependencies, this.unsyncedWrites(), { epoch: this.epoch, lastSeq })
      this.unsynced = []
    } catch (error) {
      this.lose(error)
    }
  }

  /** A durable commit puts all earlier commits on disk too. */
  private keepUnsynced(write: RunWrite): void {
    if (write.durable) this.unsynced = []
    else if (this.dependencies.databaseMayCrash === true)
      this.unsynced.push({ write, committedAt: this.dependencies.clock.monotonic() })
  }

  private settle(): void {
    if (this.waiters.length === 0) return
    const due = this.waiters.filter((waiter) => waiter.seq <= this.committedSeq)
    this.waiters = this.waiters.filter((waiter) => waiter.seq > this.committedSeq)
    for (const waiter of due) waiter.resolve()
  }

  private lose(error: unknown): AppError {
    const lost =
      error instanceof AppError
        ? error
        : new AppError('store_unavailable', 'The journal could not be written.', { cause: error })
    this.lost = lost
    for (const waiter of this.waiters) waiter.reject(lost)
    this.waiters = []
    this.onLost?.(lost)
    return lost
  }
}

/** Stores those writes again that the database no longer has after `lastSeq`. Returns their number. */
export async function rewriteLost(
  { store, bus }: Pick<WriterDependencies, 'store' | 'bus'>,
  writes: readonly RunWrite[],
  { epoch, lastSeq }: { epoch: number; lastSeq: number },
): Promise<number> {
  const lost = writes.filter(({ afterSeq }) => afterSeq >= lastSeq)
  for (const write of lost) {
    await store.append({ ...write, epoch, durable: true })
    bus.publish(write.runId, write.events)
  }
  return lost.length
}

function checkSize(event: NewEvent): void {
  if (event.type !== 'text.delta' && event.type !== 'reasoning.delta') return
  if (event.data.text.length > eventBytesMax)
    throw new AppError('event_too_large', 'One delta holds at most 1 MiB of text.')
}

function checkPair(pairs: PairCheck, event: NewEvent): void {
  const reason = pairs.refusal(event)
  if (reason !== null) throw new AppError('transition_refused', `The journal refused an event: ${reason}.`)
}

// The only writer of a run's journal: numbers, checks, stores, then announces; in
// that order. It belongs to the node that claimed the run, and every append
// carries the epoch of that claim; once an append is refused, this writer is done
// for good and says so through `lost`.
//
// One append is under way at a time. What is pushed meanwhile goes out together
// in the next one: deltas share commits without a timer.

import { AppError } from '../errors/app-error.ts'
import type { LiveBus } from '../bus/live-bus.ts'
import type { Clock } from '../kit/clock.ts'
import { eventBytesMax, isBarrier, type NewEvent, type RunEvent } from '../journal/event.ts'
import { checkEvent } from '../journal/event-codec.ts'
import { applyEvent, checkTransition, type RunState } from '../journal/run-state.ts'
import { PairCheck } from '../journal/pairs.ts'
import { phaseAfter } from '../journal/transitions.ts'
import type { RunStore, RunWrite } from '../stores/run-store.ts'
import { foldRows, type RowChanges } from './row-folds.ts'
import type { KindOf } from './run-kind.ts'

export type WriterDependencies = {
  store: Pick<RunStore, 'append'>
  bus: Pick<LiveBus, 'publish'>
  clock: Clock
  kindOf: KindOf
  countEvents?: (count: number) => void
}

export class RunWriter {
  readonly runId: string
  /** The fold of everything pushed, also of what is not committed yet. */
  readonly state: RunState
  /** Set when an append was refused: somebody else owns the run, or the store is gone. */
  lost: AppError | undefined
  /** The newest event that is stored. */
  committedSeq: number
  /** Called once, when the writer is lost. */
  onLost: ((error: AppError) => void) | undefined
  /** Events that were pushed and are not committed. */
  get backlog(): number {
    return this.state.lastSeq - this.committedSeq
  }

  private readonly epoch: number
  private readonly dependencies: WriterDependencies
  private pending: RunEvent[] = []
  private pendingRows: RowChanges = {}
  private pendingBarrier = false
  private draining = false
  /** The appends under way; never rejects. */
  private appending: Promise<void> = Promise.resolve()
  private waiters: { seq: number; resolve: () => void; reject: (error: AppError) => void }[] = []

  constructor(runId: string, epoch: number, state: RunState, dependencies: WriterDependencies) {
    this.runId = runId
    this.epoch = epoch
    this.state = state
    this.dependencies = dependencies
    this.committedSeq = state.lastSeq
  }

  /**
   * Numbers and queues events that belong to one instant: all of them, or none where one is refused. They are shown after
   * their commit, which starts at once unless one is under way.
   */
  push(...events: NewEvent[]): void {
    if (this.lost !== undefined) throw this.lost
    let { phase } = this.state
    const pairs = new PairCheck(this.state)
    for (const event of events) {
      checkEvent(event)
      checkSize(event)
      checkTransition({ phase }, event)
      checkPair(pairs, event)
      phase = phaseAfter(phase, event)
    }
    const at = Math.max(this.dependencies.clock.now(), this.state.lastAt)
    for (const event of events) this.number(event, at)
    this.flush()
  }

  /** Everything pushed so far is committed (and synced, where it holds a barrier) when this resolves. */
  committed(): Promise<void> {
    if (this.lost !== undefined) return Promise.reject(this.lost)
    const seq = this.state.lastSeq
    if (this.committedSeq >= seq) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.waiters.push({ seq, resolve, reject })
    })
  }

  async write(...events: NewEvent[]): Promise<void> {
    this.push(...events)
    await this.committed()
  }

  /** Releases the lease of a parked run without an event: it was woken, and still has to wait until `wakeAt`. */
  async park(wakeAt: number | null): Promise<void> {
    await this.releaseWith({ wakeAt })
  }

  /** Releases the lease and changes nothing else, so that the next claim finds the run as it is. */
  async release(): Promise<void> {
    await this.releaseWith({})
  }

  /**
   * Takes no more events. Resolves when the append that is under way has been answered, so that the next reader of the
   * journal sees everything that this writer will ever have written. What was pushed and not sent is dropped.
   */
  async retire(reason: AppError): Promise<void> {
    if (this.lost === undefined) this.lose(reason)
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
      // Like any refused append: a run that still has to wait must not fail because the disk did.
      throw this.lose(error)
    }
  }

  private number(event: NewEvent, at: number): void {
    // `attempt` grows each time the run goes queued → running; the first time it is 1 already.
    const starts = event.type === 'run.state' && event.data.to === 'running' && this.state.startedAt !== undefined
    const attempt = this.state.attempt + (starts ? 1 : 0)
    const numbered = { seq: this.state.lastSeq + 1, at, attempt, type: event.type, data: event.data } as RunEvent
    if (numbered.type === 'text.delta' || numbered.type === 'reasoning.delta') {
      if (numbered.data.text.length > eventBytesMax)
        throw new AppError('event_too_large', 'One delta holds at most 1 MiB of text.')
    }
    applyEvent(this.state, numbered)
    foldRows(this.runId, this.state, numbered, this.pendingRows, this.dependencies.kindOf)
    this.pending.push(numbered)
    if (isBarrier(numbered.type)) this.pendingBarrier = true
  }

  private flush(): void {
    if (!this.draining) this.appending = this.drain()
  }

  private async drain(): Promise<void> {
    this.draining = true
    while (this.pending.length > 0 && this.lost === undefined) {
      const events = this.pending
      const write: RunWrite = {
        runId: this.runId,
        epoch: this.epoch,
        afterSeq: this.committedSeq,
        events,
        durable: this.pendingBarrier,
        ...this.pendingRows,
      }
      this.pending = []
      this.pendingRows = {}
      this.pendingBarrier = false
      try {
        await this.dependencies.store.append(write)
      } catch (error) {
        this.lose(error)
        break
      }
      this.committedSeq += events.length
      this.dependencies.countEvents?.(events.length)
      this.dependencies.bus.publish(this.runId, events)
      this.settle()
    }
    this.draining = false
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

function checkSize(event: NewEvent): void {
  if (event.type !== 'text.delta' && event.type !== 'reasoning.delta') return
  if (event.data.text.length > eventBytesMax)
    throw new AppError('event_too_large', 'One delta holds at most 1 MiB of text.')
}

function checkPair(pairs: PairCheck, event: NewEvent): void {
  const reason = pairs.refusal(event)
  if (reason !== null) throw new AppError('transition_refused', `The journal refused an event: ${reason}.`)
}

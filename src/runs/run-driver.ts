// Works on one claimed run until it has ended, parked, been released by a drain, or
// been claimed by another owner. After a store failure it reads the run again and
// retries with back-off. A run that cannot continue is always ended: a run that stays
// claimed without a loop could not be cancelled and would block its conversation.

import { AppError, toAppError } from '../errors/app-error.ts'
import { readRunState } from '../journal/event-pages.ts'
import { addInteraction, engineOf, newRunState, type RunState } from '../journal/run-state.ts'
import { withActivity } from '../kit/activity.ts'
import type { CancelRequest, RunRow, RunWrite } from '../stores/run-store.ts'
import { endingEvents } from './run-ending.ts'
import { deathsMax, RunLoop } from './run-loop.ts'
import type { RunDependencies } from './run-dependencies.ts'
import { type TimedLeaseRequest, type ClockTimes, RunLease } from './run-lease.ts'
import { RunWriter, rewriteLost } from './run-writer.ts'

/** The first wait after a store failure; each further failure doubles it, up to `retryMaxMs`. */
const retryMs = 500
const retryMaxMs = 30_000

export interface DriverOwner {
  readonly node: string
  /** What the node asks for when it takes a run or renews its lease. Made just before the store is asked. */
  leaseRequest(): TimedLeaseRequest
  /** Called just before `finished` of the driver resolves. */
  driverFinished(driver: RunDriver): void
}

export class RunDriver {
  readonly runId: string
  readonly slots: number
  readonly epoch: number
  /** Resolves when this node is done with the run. Never rejects. */
  readonly finished: Promise<void>
  readonly lease: RunLease
  private readonly dependencies: RunDependencies
  private readonly owner: DriverOwner
  private claimed: RunRow
  private loop: RunLoop | undefined
  private draining = false
  /** True if the run has ended here: not parked, released or lost. */
  hasEnded = false
  /** Another owner has claimed the run. */
  private abandoned = false
  /** The first cancel request. It also ends the current back-off, so that the run can be ended now. */
  private cancelled: CancelRequest | undefined
  private endPause: (() => void) | undefined
  /** Appends of earlier loops that a crash of the database may have lost. */
  private unsynced: readonly RunWrite[] = []

  /**
   * `known`: the state of a run that was claimed when it was accepted; if undefined, it is read from the store. `leaseRequest`: the lease request
   * with which the run was claimed. `earlier`: a driver of the run that has not finished yet. `failure`: the run is not executed but ends
   * with this error. `slots`: how many slots of the node the run takes.
   */
  constructor(
    claimed: RunRow,
    known: RunState | undefined,
    dependencies: RunDependencies,
    leaseRequest: TimedLeaseRequest,
    owner: DriverOwner,
    { earlier, failure, slots }: { earlier?: RunDriver; failure?: AppError; slots: number },
  ) {
    this.runId = claimed.id
    this.epoch = claimed.epoch
    this.claimed = claimed
    this.dependencies = dependencies
    this.lease = new RunLease(dependencies.clock, leaseRequest.leaseMs, leaseRequest.requestedAt)
    this.owner = owner
    this.slots = slots
    // All that waits for the end of the run is inside: outside is another async context, which would be kept too.
    this.finished = withActivity({ run: claimed.id, place: 'load' }, () => this.begin(known, earlier, failure))
  }

  private begin(
    known: RunState | undefined,
    earlier: RunDriver | undefined,
    failure: AppError | undefined,
  ): Promise<void> {
    return this.work(known, earlier, failure).then(
      () => this.owner.driverFinished(this),
      (error: unknown) => {
        const { log } = this.dependencies
        log.error({ err: error, runId: this.runId }, 'a run could not be worked on; its lease runs out')
        this.owner.driverFinished(this)
      },
    )
  }

  /** A decision about this run may have been stored. */
  poke(): void {
    this.loop?.poke()
  }

  cancel(request: CancelRequest): void {
    if (this.loop !== undefined) this.loop.cancel(request)
    else if (this.cancelled === undefined) this.endPause?.()
    this.cancelled ??= request
  }

  /** The lease was renewed; `row` shows what other nodes stored since. */
  renewed(row: RunRow, requestedAt: ClockTimes): void {
    this.lease.renewed(requestedAt)
    this.loop?.writer.synced(requestedAt.monotonic, row.lastSeq)
    // The database is back: readers may wait for what it lost.
    if (this.unsynced.length > 0) this.endPause?.()
    if (row.cancel !== null) this.cancel(row.cancel)
    // Another node may have stored a decision, and its signal may be lost.
    this.poke()
  }

  /** The lease was not renewed in time, so another node may own the run: stops all work and writes nothing until the store has answered. */
  leaseEnded(): void {
    if (this.loop === undefined) return
    this.dependencies.leaseMeter?.leaseLost()
    this.loop.loseLease(
      new AppError(
        'store_unavailable',
        'The lease on this run could not be renewed in time, so the work on it stopped.',
      ),
    )
  }

  /** Model work stops, tools may finish, then the lease is released. */
  drain(): void {
    this.draining = true
    this.loop?.drain()
    this.endPause?.()
  }

  abortTools(): void {
    this.loop?.abortTools()
  }

  /** The lease is lost: stop, and write nothing more. */
  abandon(): void {
    this.abandoned = true
    this.loop?.loseLease(new AppError('run_fenced', 'Another node has claimed this run.'))
    this.endPause?.()
  }

  private async work(
    known: RunState | undefined,
    earlier: RunDriver | undefined,
    failure: AppError | undefined,
  ): Promise<void> {
    await earlier?.finished
    // Nobody else wrote in between.
    if (earlier?.epoch === this.epoch - 1) this.unsynced = earlier.unsynced
    if (failure !== undefined) return await this.endBroken(failure)
    // Reading this journal killed the process before, so the run is ended with what its row says.
    if (this.deathsWhileLoading() >= deathsMax) {
      const cause = new AppError(
        'run_unrecoverable',
        'The server died each time it read this run; it is not tried again.',
      )
      return await this.endBroken(cause, true)
    }
    let state = known
    let waitMs = retryMs
    // If the drain began while the run was being claimed or accepted, the loop is skipped and the lease is released.
    while (!this.draining && !this.abandoned) {
      let loop: RunLoop
      try {
        if (!(await this.holdsLease())) return
        state ??= await this.load()
        if (state === undefined) return
        // A state that was read is that of an interrupted run; a known one that of a run that was just accepted.
        const startedAtAcceptance = state === known && state.phase === 'running'
        loop = new RunLoop(this.claimed, state, this.dependencies, this, { startedAtAcceptance })
      } catch (error) {
        if (!isStoreFailure(error)) return await this.endBroken(error)
        if (isDamage(error)) throw error
        this.dependencies.log.error({ runId: this.runId, err: error }, 'a run could not be read; trying again')
        waitMs = await this.backOff(waitMs)
        continue
      }
      const before = state.lastSeq
      state = undefined
      this.loop = loop
      if (this.draining) loop.drain()
      // It may have come while the row was being read.
      if (this.cancelled !== undefined) loop.cancel(this.cancelled)
      let result
      try {
        result = await loop.drive()
      } catch (error) {
        await loop.writer.retire(toAppError(error))
        return await this.endBroken(error)
      } finally {
        this.loop = undefined
      }
      this.hasEnded = result === 'ended'
      if (result !== 'lost') return
      // Nothing may be in flight when the run is read again, or claimed again by this node.
      await loop.writer.settled()
      this.unsynced = [...this.unsynced, ...loop.writer.unsyncedWrites()]
      if (this.abandoned) return
      if (loop.writer.lost?.code === 'run_fenced') this.dependencies.leaseMeter?.appendFenced()
      if (isDamage(loop.writer.lost)) throw loop.writer.lost
      // The store failed, the lease was not renewed in time, or our `afterSeq` was stale. If we still hold the lease, the run
      // continues from the stored journal.
      this.dependencies.log.error(
        { runId: this.runId, err: loop.writer.lost },
        'the journal could not be written; the run goes on when it can be',
      )
      // The run made progress since the last failure, so the back-off starts over.
      if (loop.writer.committedSeq > before) waitMs = retryMs
      waitMs = await this.backOff(waitMs)
    }
    if (this.abandoned) return
    if (state?.phase === 'running') await this.requeue(state)
    await this.release()
  }

  private deathsWhileLoading(): number {
    const deaths = this.dependencies.deaths?.of(this.runId) ?? []
    return deaths.filter(({ place }) => place === 'load').length
  }

  /** Takes back the start of a run that was accepted as running but must not begin any more. */
  private async requeue(state: RunState): Promise<void> {
    try {
      const writer = new RunWriter(this.runId, this.epoch, state, this.dependencies)
      await writer.write({ type: 'run.state', data: { from: 'running', to: 'queued', trigger: 'restart.requeued' } })
    } catch (error) {
      this.dependencies.log.warn({ runId: this.runId, err: error }, 'a run could not be put back into the queue')
    }
  }

  /** Reads the state of the run; undefined if we no longer hold its lease. Throws if the store fails. */
  private async load(): Promise<RunState | undefined> {
    await this.rewriteLostDeltas()
    const state = await readRunState(this.dependencies.store, this.runId)
    // The row is read last, to see a cancel that was recorded meanwhile. Later cancels reach the loop directly.
    if (!(await this.stillOurs())) return undefined
    // The row is written in one transaction with the events, so its status is right even if an event is unreadable.
    state.phase = this.claimed.status
    return state
  }

  /** A crash of the database loses the newest commits that hold only deltas, which readers have seen. */
  private async rewriteLostDeltas(): Promise<void> {
    if (this.unsynced.length === 0) return
    const row = await this.dependencies.store.readRun(this.runId)
    if (row === undefined || row.epoch !== this.epoch) return
    const count = await rewriteLost(this.dependencies, this.unsynced, row)
    this.unsynced = []
    if (count > 0)
      this.dependencies.log.warn(
        { runId: this.runId, appends: count },
        'the database lost deltas; they are stored again',
      )
  }

  /** Reads the row again, and returns whether we still hold the lease. */
  private async stillOurs(): Promise<boolean> {
    const row = await this.dependencies.store.readRun(this.runId)
    if (row === undefined || row.epoch !== this.epoch) return false
    if (row.endedAt !== null) await this.reportEnding(row)
    if (row.endedAt !== null || row.leaseOwner !== this.owner.node) return false
    this.claimed = row
    return true
  }

  /** The ending was committed under our epoch, but the answer of the store was lost: the rest of the end is done now. */
  private async reportEnding({ id, family, engine, status }: RunRow): Promise<void> {
    this.dependencies.deaths?.settled(id)
    await this.dependencies.runEnded?.({ runId: id, family, engine: engine ?? 'unknown', status })
  }

  /** Whether this node holds the lease on the run. Asks the store only if the lease may have ended. */
  private async holdsLease(isSure = () => this.lease.hasTime()): Promise<boolean> {
    // An answer that came late says nothing about now, so it is asked for again.
    while (!isSure() && !this.abandoned) {
      const request = this.owner.leaseRequest()
      const [row] = await this.dependencies.store.renewLeases(request, [this.runId])
      // The row is read for the case that the run has ended.
      if (row?.epoch !== this.epoch) return await this.stillOurs()
      this.lease.renewed(request.requestedAt)
    }
    return !this.abandoned
  }

  /** Throws if this node may no longer own the run, so that nothing starts that another node would start too. */
  async confirmLease(): Promise<void> {
    if (await this.holdsLease(() => this.lease.isCertain())) return
    this.abandon()
    throw new AppError('run_fenced', 'Another node has claimed this run.')
  }

  /**
   * Ends a run whose loop failed because of a bug, and retries until that succeeds. The ending closes everything that the
   * journal left open; if that ending is refused too, it is built from the row alone.
   */
  private async endBroken(cause: unknown, fromRow = false): Promise<void> {
    const { log, ids } = this.dependencies
    log.error({ err: cause, runId: this.runId }, 'a run cannot go on; it is ended')
    let rowOnly = fromRow
    for (let waitMs = retryMs; !this.draining && !this.abandoned;) {
      try {
        if (!(await this.stillOurs())) return
        const state = rowOnly ? await this.stateOfRow() : await this.load()
        if (state === undefined) return
        const { cancel } = this.claimed
        const ending =
          cancel === null
            ? { status: 'failed' as const, error: endingError(cause).toValue() }
            : { status: 'canceled' as const, by: cancel.by, reason: cancel.reason }
        await new RunWriter(this.runId, this.epoch, state, this.dependencies).write(...endingEvents(state, ending, ids))
        this.dependencies.deaths?.settled(this.runId)
        await this.dependencies.runEnded?.({
          runId: this.runId,
          family: this.claimed.family,
          // A run that lost its first event has no engine.
          engine: state.accepted === undefined ? 'unknown' : engineOf(state),
          status: ending.status,
        })
        return
      } catch (error) {
        if (isDamage(error)) throw error
        rowOnly ||= !isStoreFailure(error)
        log.error({ runId: this.runId, err: error }, 'a broken run could not be ended; trying again')
        waitMs = await this.backOff(waitMs)
      }
    }
    if (!this.abandoned) await this.release()
  }

  /** Builds the state that an ending needs from rows, without the journal: the status and the open interactions. */
  private async stateOfRow(): Promise<RunState> {
    const state = newRunState()
    state.phase = this.claimed.status
    state.lastSeq = this.claimed.lastSeq
    state.attempt = this.claimed.attempt
    for (const row of await this.dependencies.store.interactionsOf(this.runId)) {
      if (row.status !== 'pending') continue
      addInteraction(state, {
        interactionId: row.id,
        number: row.number,
        kind: row.kind,
        prompt: row.prompt,
        step: 0,
        resolved: undefined,
      })
    }
    return state
  }

  /** Releases the lease without an event. */
  private async release(): Promise<void> {
    const { runId, epoch } = this
    try {
      if (!(await this.stillOurs())) return
      const afterSeq = this.claimed.lastSeq
      await this.dependencies.store.append({
        runId,
        epoch,
        afterSeq,
        events: [],
        durable: true,
        run: { release: true },
      })
    } catch (error) {
      this.dependencies.log.warn({ runId, err: error }, 'a lease could not be given back; it runs out')
    }
  }

  /** Waits, and returns the next wait. A drain, a lost lease or the first cancel ends the wait early. */
  private async backOff(waitMs: number): Promise<number> {
    if (!this.draining && !this.abandoned) {
      await new Promise<void>((resolve) => {
        const end = () => {
          timer.cancel()
          this.endPause = undefined
          resolve()
        }
        const timer = this.dependencies.clock.after(waitMs, end)
        this.endPause = end
      })
    }
    return Math.min(waitMs * 2, retryMaxMs)
  }
}

/** Damage is not retried, because the operator has to restore the database first. */
export function isDamage(error: unknown): error is AppError {
  return error instanceof AppError && error.code === 'store_damaged'
}

function isStoreFailure(error: unknown): boolean {
  return error instanceof AppError && (error.kind === 'unavailable' || error.kind === 'conflict')
}

/** The cause goes to the log. The caller gets `internal_error`, unless the cause says something about the run. */
function endingError(cause: unknown): AppError {
  if (cause instanceof AppError && (cause.code === 'run_unrecoverable' || cause.code === 'no_capable_node'))
    return cause
  return new AppError('internal_error', 'The run failed because of a fault of the server. The log has the details.')
}

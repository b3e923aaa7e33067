// Which runs this node works on: claims what is due, up to its slots, drives each
// in a loop, keeps their leases, and wakes for deadlines. It keeps no queue of its
// own: the queue is rows, so a restart or another node finds the same work.

import { foldRun, type RunState } from '../journal/run-state.ts'
import type { RunEvent } from '../journal/event.ts'
import type { Timer } from '../kit/clock.ts'
import type { RunRow } from '../stores/store.ts'
import { AppError } from '../errors/app-error.ts'
import { endingEvents } from './run-ending.ts'
import { RunLoop } from './run-loop.ts'
import { RunWriter } from './run-writer.ts'
import type { RunParts } from './run-parts.ts'

export const leaseMs = 30_000
const heartbeatMs = 10_000
/** After a store failure a run is taken up again in place; the first wait, doubled up to half a minute. */
const storeRetryMs = 500
const storeRetryMaxMs = 30_000

/** Deadlines are times of day and timers are not: after so long we look again, since the clock may have been set. */
const wakeCheckMs = 60_000

export class Scheduler {
  readonly node: string
  private readonly parts: RunParts
  private readonly loops = new Map<string, RunLoop>()
  private readonly work = new Set<Promise<void>>()
  /** Waits for a store that failed; a drain ends them. */
  private readonly pauses = new Set<() => void>()
  /** Runs that are being driven, cancels not counted: a slot each. */
  private busy = 0
  private claiming: Promise<void> | undefined
  private claimAgain = false
  private stopped = false
  private wakeTimer: Timer | undefined
  private heartbeat: Timer | undefined

  constructor(parts: RunParts, node: string) {
    this.parts = parts
    this.node = node
  }

  /** Recovery is nothing but the first claim: interrupted runs are due. */
  start(): void {
    this.beat()
    this.poke()
  }

  hasFreeSlot(): boolean {
    return !this.stopped && this.busy < this.parts.limits.concurrency
  }

  /** Holds a slot for a run that is about to be accepted. Always followed by `release`. */
  reserve(): boolean {
    if (!this.hasFreeSlot()) return false
    this.busy += 1
    return true
  }

  release(): void {
    this.busy -= 1
  }

  /** Leases are measured with the clock that never steps: a clock that is set must not take runs away from their owner. */
  leaseUntil(): number {
    return Math.ceil(this.parts.clock.monotonic()) + leaseMs
  }

  /** A run that was claimed while it was accepted; its first events are known. */
  adopt(row: RunRow, events: readonly RunEvent[]): void {
    this.launch(row, foldRun(events))
  }

  /** Something may be due: a run was queued, decided on, cancelled, or a slot is free. */
  poke(runId?: string): void {
    const loop = runId === undefined ? undefined : this.loops.get(runId)
    if (loop !== undefined) loop.poke()
    void this.claim()
  }

  cancel(row: RunRow): void {
    const loop = this.loops.get(row.id)
    if (loop !== undefined && row.cancel !== null) loop.cancel(row.cancel)
    else void this.claim()
  }

  /** No new work; model calls stop, tools may finish. Resolves when every loop has stopped. */
  async drain(): Promise<void> {
    this.stopped = true
    this.wakeTimer?.cancel()
    this.heartbeat?.cancel()
    for (const loop of this.loops.values()) loop.drain()
    for (const endPause of this.pauses) endPause()
    await this.claiming
    await Promise.all(this.work)
  }

  private async claim(): Promise<void> {
    if (this.stopped) return
    if (this.claiming !== undefined) {
      this.claimAgain = true
      return
    }
    this.claiming = this.claimOnce()
    await this.claiming
    this.claiming = undefined
    if (this.claimAgain) {
      this.claimAgain = false
      void this.claim()
    }
  }

  private async claimOnce(): Promise<void> {
    try {
      const rows = await this.parts.store.claim({
        node: this.node,
        now: this.parts.clock.now(),
        leaseNow: this.parts.clock.monotonic(),
        leaseUntil: this.leaseUntil(),
        limit: Math.max(0, this.parts.limits.concurrency - this.busy),
      })
      for (const row of rows) {
        // Counted before its journal is read, so that the next claim does not take too much.
        this.track(this.loadAndDrive(row), row)
      }
      await this.armWakeTimer()
    } catch (error) {
      this.parts.log.error({ err: error }, 'runs could not be claimed; trying again')
      if (!this.stopped) this.parts.clock.after(storeRetryMs, () => this.poke())
    }
  }

  private async armWakeTimer(): Promise<void> {
    const wakeAt = await this.parts.store.nextWakeAt()
    this.wakeTimer?.cancel()
    this.wakeTimer = undefined
    if (wakeAt === null || this.stopped) return
    const delayMs = wakeAt - this.parts.clock.now()
    // Already due and not claimed: all slots are taken, and the end of a run pokes us.
    if (delayMs <= 0 && !this.hasFreeSlot()) return
    this.wakeTimer = this.parts.clock.after(Math.min(Math.max(delayMs, 1), wakeCheckMs), () => this.poke())
  }

  private launch(row: RunRow, state: RunState): void {
    this.track(this.drive(row, state), row)
  }

  private track(work: Promise<void>, row: RunRow): void {
    const slots = row.cancel === null ? 1 : 0
    this.busy += slots
    const tracked = work
      .catch((error: unknown) => this.parts.log.error({ err: error, runId: row.id }, 'a run loop failed'))
      .finally(() => {
        this.busy -= slots
        this.work.delete(tracked)
        // The slot is free, and the conversation may be.
        this.poke()
      })
    this.work.add(tracked)
  }

  private async loadAndDrive(row: RunRow): Promise<void> {
    const loaded = await this.load(row)
    if (loaded !== undefined) await this.drive(loaded.row, loaded.state)
  }

  private async drive(row: RunRow, state: RunState): Promise<void> {
    let current = row
    let fold = state
    let waitMs = storeRetryMs
    // A claim or an acceptance may have been on its way when the drain began; such a run is left as it is.
    while (!this.stopped) {
      const loop = new RunLoop(current, fold, this.parts)
      const before = fold.lastSeq
      this.loops.set(row.id, loop)
      let result
      try {
        result = await loop.drive()
      } catch (error) {
        this.parts.log.error({ err: error, runId: row.id }, 'a run loop failed; the run is ended')
        await this.endBroken(current)
        return
      } finally {
        if (this.loops.get(row.id) === loop) this.loops.delete(row.id)
      }
      if (result !== 'lost' || loop.writer.lost?.kind === 'conflict') return
      // The store failed, and the run is still ours: it goes on from what was stored.
      this.parts.log.error(
        { runId: row.id, err: loop.writer.lost },
        'the journal could not be written; the run goes on when it can be',
      )
      // It got on since the last failure, so this is a new one.
      if (loop.writer.committedSeq > before) waitMs = storeRetryMs
      await this.pause(waitMs)
      waitMs = Math.min(waitMs * 2, storeRetryMaxMs)
      const again = await this.load(current)
      if (again === undefined) return
      current = again.row
      fold = again.state
    }
  }

  /** A fault of ours must not leave a run that never ends: whatever the loop tripped over, the journal itself is sound. */
  private async endBroken(claimed: RunRow): Promise<void> {
    const loaded = await this.load(claimed)
    if (loaded === undefined) return
    const writer = new RunWriter(claimed.id, claimed.epoch, loaded.state, this.parts)
    const error = new AppError(
      'internal_error',
      'The run failed because of a fault of the server. The log has the details.',
    )
    await writer.write(...endingEvents(loaded.state, { status: 'failed', error: error.toValue() }, this.parts.ids))
    await this.parts.runEnded?.(claimed.family, 'failed', claimed.id)
  }

  /** A claimed run as it is stored, as soon as the store answers. Undefined when it is no longer ours, or we are stopping. */
  private async load(claimed: RunRow): Promise<{ row: RunRow; state: RunState } | undefined> {
    for (let waitMs = storeRetryMs; !this.stopped; waitMs = Math.min(waitMs * 2, storeRetryMaxMs)) {
      try {
        const state = await this.readState(claimed.id)
        // Last, since a cancel may have been recorded meanwhile; from here on the loop is known and hears of it.
        const row = await this.parts.store.readRun(claimed.id)
        const ours =
          row !== undefined && row.endedAt === null && row.leaseOwner === this.node && row.epoch === claimed.epoch
        return ours ? { row, state } : undefined
      } catch (error) {
        this.parts.log.error({ runId: claimed.id, err: error }, 'a run could not be read; trying again')
        await this.pause(waitMs)
      }
    }
    return undefined
  }

  private pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        timer.cancel()
        this.pauses.delete(end)
        resolve()
      }
      const timer = this.parts.clock.after(delayMs, end)
      this.pauses.add(end)
      if (this.stopped) end()
    })
  }

  private async readState(runId: string): Promise<RunState> {
    const events: RunEvent[] = []
    let after = 0
    for (;;) {
      const page = await this.parts.store.readEvents(runId, after, 1000)
      events.push(...page.events)
      after = page.nextAfter
      if (page.atHead) break
    }
    const state = foldRun(events)
    // Dirty rows at the very end would otherwise be numbered again.
    state.lastSeq = after
    // Rows exist, so the run was accepted, even if that row can no longer be read. It must still be able to end.
    if (state.phase === 'new' && after > 0) state.phase = 'queued'
    return state
  }

  private beat(): void {
    this.heartbeat = this.parts.clock.after(heartbeatMs, () => {
      void this.renew().finally(() => {
        if (!this.stopped) this.beat()
      })
    })
  }

  /** Keeps the leases, and learns of cancels that another node recorded and of runs that were taken over. */
  private async renew(): Promise<void> {
    if (this.loops.size === 0) return
    try {
      const rows = await this.parts.store.renewLeases(this.node, this.leaseUntil())
      for (const row of rows) if (row.cancel !== null) this.loops.get(row.id)?.cancel(row.cancel)
    } catch (error) {
      this.parts.log.error({ err: error }, 'leases could not be renewed')
    }
  }
}

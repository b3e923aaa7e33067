// Claims due runs for this node, up to its number of slots, starts a driver for each,
// renews their leases, and wakes up for deadlines. It keeps no queue in memory: the
// queue is rows, so a restart or another node finds the same work.

import { foldRun } from '../journal/run-state.ts'
import type { RunEvent } from '../journal/event.ts'
import { withoutActivity } from '../kit/activity.ts'
import type { Timer } from '../kit/clock.ts'
import type { LeaseRequest, RunRow } from '../stores/run-store.ts'
import { isDamage, RunDriver } from './run-driver.ts'
import type { RunDependencies } from './run-dependencies.ts'

export const leaseMs = 30_000
export const heartbeatMs = 10_000
/** The wait after a failed claim. */
const claimRetryMs = 500
/** The longest wake timer. Deadlines use wall-clock time, and the wall clock may be set while a timer runs. */
const wakeCheckMs = 60_000

export class Scheduler {
  readonly node: string
  private readonly dependencies: RunDependencies
  /** The drivers of the runs that this node has claimed. Only the leases of these runs are renewed. */
  private readonly drivers = new Map<string, RunDriver>()
  private readonly work = new Set<Promise<void>>()
  /** Slots in use: one for each driven run, except runs that were claimed only to be cancelled. */
  private busy = 0
  private claiming: Promise<void> | undefined
  private claimAgain = false
  private stopped = false
  /** The database file is damaged, so this node claims and renews nothing more. */
  private damaged = false
  private wakeTimer: Timer | undefined
  private heartbeat: Timer | undefined
  private renewedAt: number

  constructor(dependencies: RunDependencies, node: string) {
    this.dependencies = dependencies
    this.node = node
    this.renewedAt = dependencies.clock.monotonic()
  }

  /** The first claim also recovers interrupted runs, because they are due like any others. */
  start(): void {
    this.beat()
    this.poke()
  }

  hasFreeSlot(): boolean {
    return !this.stopped && this.busy < this.dependencies.limits.concurrency
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

  /** What this node asks for when it takes a run. */
  get lease(): LeaseRequest {
    return { node: this.node, leaseMs }
  }

  /** Drives a run that was claimed in the transaction that accepted it; its events need not be read. */
  adopt(row: RunRow, events: readonly RunEvent[]): void {
    this.drive(row, events)
  }

  /** Claims again, because a run may be due: one was queued, decided on or cancelled, or a slot is free. */
  poke(runId?: string): void {
    if (runId !== undefined) this.drivers.get(runId)?.poke()
    void this.claim()
  }

  cancel(row: RunRow): void {
    const driver = this.drivers.get(row.id)
    if (driver !== undefined && row.cancel !== null) driver.cancel(row.cancel)
    else void this.claim()
  }

  /**
   * Claims nothing more, stops model calls, and lets tools finish within `toolsMs`. A tool call that takes longer is aborted
   * and treated as after a crash: a person is asked about it if it is unsafe. Resolves when every run is released.
   */
  async drain(toolsMs = Infinity): Promise<void> {
    this.stopped = true
    this.wakeTimer?.cancel()
    this.heartbeat?.cancel()
    for (const driver of this.drivers.values()) driver.drain()
    const cut = Number.isFinite(toolsMs)
      ? this.dependencies.clock.after(toolsMs, () => {
          for (const driver of this.drivers.values()) driver.abortTools()
        })
      : undefined
    await this.claiming
    await Promise.all(this.work)
    cut?.cancel()
  }

  private async claim(): Promise<void> {
    if (this.stopped || this.damaged) return
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
      // If the process was blocked for long, our own leases may have expired. Renew them first, or we would claim our own runs.
      if (this.dependencies.clock.monotonic() - this.renewedAt > leaseMs - heartbeatMs) await this.renew()
      const rows = await this.dependencies.store.claim({
        ...this.lease,
        limit: Math.max(0, this.dependencies.limits.concurrency - this.busy),
      })
      for (const row of rows) this.drive(row)
      await this.armWakeTimer()
    } catch (error) {
      this.dependencies.log.error({ err: error }, 'runs could not be claimed')
      if (isDamage(error)) this.damaged = true
      if (!this.stopped && !this.damaged) this.dependencies.clock.after(claimRetryMs, () => this.poke())
    }
  }

  private async armWakeTimer(): Promise<void> {
    const delayMs = await this.dependencies.store.msUntilWake(this.node)
    this.wakeTimer?.cancel()
    this.wakeTimer = undefined
    if (delayMs === null || this.stopped) return
    // A run is due but all slots are taken. No timer is needed, because the end of any run pokes the scheduler.
    if (delayMs <= 0 && !this.hasFreeSlot()) return
    this.wakeTimer = this.dependencies.clock.after(Math.min(Math.max(delayMs, 1), wakeCheckMs), () => this.poke())
  }

  /** Takes the slot before the journal is read, so that the next claim does not exceed the limit. */
  private drive(row: RunRow, events?: readonly RunEvent[]): void {
    const { dependencies, node } = this
    const slots = row.cancel === null ? 1 : 0
    this.busy += slots
    // Our lease expired and we claimed the run again. The new driver waits until the old one has finished.
    const earlier = this.drivers.get(row.id)
    earlier?.abandon()
    const driver = new RunDriver(row, events && foldRun(events), dependencies, node, earlier?.finished)
    if (this.stopped) driver.drain()
    this.drivers.set(row.id, driver)
    const work = driver.finished.finally(() => {
      this.busy -= slots
      this.work.delete(work)
      if (this.drivers.get(row.id) === driver) this.drivers.delete(row.id)
      // A slot is free, and the next run of the conversation may be due.
      withoutActivity(() => this.poke())
    })
    this.work.add(work)
  }

  private beat(): void {
    this.heartbeat = this.dependencies.clock.after(heartbeatMs, () => {
      void this.renew().finally(() => {
        if (this.stopped || this.damaged) return
        this.beat()
        // Leases of dead nodes, and of runs that we claimed but could not work on, may have expired: claim those runs.
        this.poke()
      })
    })
  }

  /** Handles a lease that was not renewed: either another node claimed the run, or the run has just ended or parked. */
  private async abandonIfClaimed(driver: RunDriver): Promise<void> {
    const row = await this.dependencies.store.readRun(driver.runId)
    const taken = row !== undefined && row.endedAt === null && row.epoch > driver.epoch
    if (taken) driver.abandon()
  }

  /** Renews the leases of all driven runs. The rows also show cancels that other nodes recorded and runs that were lost. */
  private async renew(): Promise<void> {
    this.renewedAt = this.dependencies.clock.monotonic()
    const held = new Map(this.drivers)
    if (held.size === 0) return
    try {
      const rows = await this.dependencies.store.renewLeases(this.lease, [...held.keys()])
      const found = new Map(rows.map((row) => [row.id, row]))
      for (const [runId, driver] of held) {
        const row = found.get(runId)
        if (row === undefined || row.epoch > driver.epoch) await this.abandonIfClaimed(driver)
        else if (row.cancel !== null) driver.cancel(row.cancel)
      }
    } catch (error) {
      this.dependencies.log.error({ err: error }, 'leases could not be renewed')
    }
  }
}

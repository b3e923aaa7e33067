// Which runs this node works on: claims what is due, up to its slots, drives each
// in a loop, keeps their leases, and wakes for deadlines. It keeps no queue of its
// own: the queue is rows, so a restart or another node finds the same work.

import { foldRun } from '../journal/run-state.ts'
import type { RunEvent } from '../journal/event.ts'
import { onNobodysBehalf } from '../kit/activity.ts'
import type { Timer } from '../kit/clock.ts'
import type { RunRow } from '../stores/run-store.ts'
import { isDamage, RunDriver } from './run-driver.ts'
import type { RunParts } from './run-parts.ts'

export const leaseMs = 30_000
export const heartbeatMs = 10_000
/** After a claim that failed. */
const claimRetryMs = 500
/** Deadlines are times of day and timers are not: after so long we look again, since the clock may have been set. */
const wakeCheckMs = 60_000

export class Scheduler {
  readonly node: string
  private readonly parts: RunParts
  /** The runs that this node works on, from their claim until it is done with them. Only their leases are renewed. */
  private readonly drivers = new Map<string, RunDriver>()
  private readonly work = new Set<Promise<void>>()
  /** Runs that are being driven, cancels not counted: a slot each. */
  private busy = 0
  private claiming: Promise<void> | undefined
  private claimAgain = false
  private stopped = false
  /** The database file is damaged; nothing more is asked of it. */
  private damaged = false
  private wakeTimer: Timer | undefined
  private heartbeat: Timer | undefined
  private renewedAt: number

  constructor(parts: RunParts, node: string) {
    this.parts = parts
    this.node = node
    this.renewedAt = parts.clock.monotonic()
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
    this.drive(row, events)
  }

  /** Something may be due: a run was queued, decided on, cancelled, or a slot is free. */
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
   * No new work; model calls stop, tools may finish within `toolsMs`. A call that takes longer is cut off as a crash
   * would cut it, so that a person is asked about an unsafe one. Resolves when every run is released.
   */
  async drain(toolsMs = Infinity): Promise<void> {
    this.stopped = true
    this.wakeTimer?.cancel()
    this.heartbeat?.cancel()
    for (const driver of this.drivers.values()) driver.drain()
    const cut = Number.isFinite(toolsMs)
      ? this.parts.clock.after(toolsMs, () => {
          for (const driver of this.drivers.values()) driver.cutTools()
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
      // After a long block of the process our own leases may have run out: they are renewed before they can be claimed.
      if (this.parts.clock.monotonic() - this.renewedAt > leaseMs - heartbeatMs) await this.renew()
      const rows = await this.parts.store.claim({
        node: this.node,
        now: this.parts.clock.now(),
        leaseNow: this.parts.clock.monotonic(),
        leaseUntil: this.leaseUntil(),
        limit: Math.max(0, this.parts.limits.concurrency - this.busy),
      })
      for (const row of rows) this.drive(row)
      await this.armWakeTimer()
    } catch (error) {
      this.parts.log.error({ err: error }, 'runs could not be claimed')
      if (isDamage(error)) this.damaged = true
      if (!this.stopped && !this.damaged) this.parts.clock.after(claimRetryMs, () => this.poke())
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

  /** Counted before its journal is read, so that the next claim does not take too much. */
  private drive(row: RunRow, events?: readonly RunEvent[]): void {
    const { parts, node } = this
    const slots = row.cancel === null ? 1 : 0
    this.busy += slots
    // Our lease ran out and we claimed the run again: the loop of the old claim has to be gone first.
    const earlier = this.drivers.get(row.id)
    earlier?.abandon()
    const driver = new RunDriver(row, events && foldRun(events), parts, node, earlier?.finished)
    if (this.stopped) driver.drain()
    this.drivers.set(row.id, driver)
    const work = driver.finished.finally(() => {
      this.busy -= slots
      this.work.delete(work)
      if (this.drivers.get(row.id) === driver) this.drivers.delete(row.id)
      // The slot is free, and the conversation may be.
      onNobodysBehalf(() => this.poke())
    })
    this.work.add(work)
  }

  private beat(): void {
    this.heartbeat = this.parts.clock.after(heartbeatMs, () => {
      void this.renew().finally(() => {
        if (this.stopped || this.damaged) return
        this.beat()
        // Runs whose owner is gone, and runs that we claimed and could not work on, are due when their lease runs out.
        this.poke()
      })
    })
  }

  /** A run whose lease was not renewed: another node has it, or it ended or parked in this moment. */
  private async leaveToOther(driver: RunDriver): Promise<void> {
    const row = await this.parts.store.readRun(driver.runId)
    const taken = row !== undefined && row.endedAt === null && row.epoch > driver.epoch
    if (taken) driver.abandon()
  }

  /** Renews the leases of the runs that are worked on, and learns of cancels that another node recorded and of runs that it lost. */
  private async renew(): Promise<void> {
    this.renewedAt = this.parts.clock.monotonic()
    const held = new Map(this.drivers)
    if (held.size === 0) return
    try {
      const rows = await this.parts.store.renewLeases(this.node, this.leaseUntil(), [...held.keys()])
      const found = new Map(rows.map((row) => [row.id, row]))
      for (const [runId, driver] of held) {
        const row = found.get(runId)
        if (row === undefined || row.epoch > driver.epoch) await this.leaveToOther(driver)
        else if (row.cancel !== null) driver.cancel(row.cancel)
      }
    } catch (error) {
      this.parts.log.error({ err: error }, 'leases could not be renewed')
    }
  }
}

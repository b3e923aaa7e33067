// Claims due runs for this node, up to its number of slots, starts a driver for each, and wakes up for
// deadlines and for the ends of other nodes' leases. It keeps no queue in memory: the queue is rows, so a
// restart or another node finds the same work.
//
// Commands of users (cancel requests, decisions) are rows too. If the run is driven here, its driver is
// told directly; otherwise the node that drives it gets a signal over the cluster bus. A lost signal
// costs at most one heartbeat.

import { foldRun } from '../journal/run-state.ts'
import type { ClusterListener } from '../bus/cluster-bus.ts'
import type { RunEvent } from '../journal/event.ts'
import type { AppError } from '../errors/app-error.ts'
import { withoutActivity } from '../kit/activity.ts'
import type { Timer } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import type { ClaimedRun, RunRow } from '../stores/run-store.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { type DriverOwner, isDamage, RunDriver } from './run-driver.ts'
import type { RunDependencies } from './run-dependencies.ts'
import type { TimedLeaseRequest } from './run-lease.ts'
import { UnplacedRuns } from './unplaced-runs.ts'

/** The wait after a failed claim. */
const claimRetryMs = 500
/** The longest wake timer. Deadlines use wall-clock time, and the wall clock may be set while a timer runs. */
const wakeCheckMs = 60_000
/** The wait before the next claim if a run is due that this claim did not get: another node is claiming it, or is needed for it. */
const dueElsewhereMs = 250
/** Nodes wake up at different moments for the same lease, so that they do not all ask the database at once. */
const jitterMaxMs = 150

export type NodeDescription = { name: string; version: string }

export class Scheduler implements ClusterListener, DriverOwner {
  readonly node: string
  private readonly dependencies: RunDependencies
  private readonly leases: LeaseKeeper
  private readonly unplaced: UnplacedRuns
  /** The drivers of the runs that this node has claimed. Only the leases of these runs are renewed. */
  private readonly drivers = new Map<string, RunDriver>()
  private readonly work = new Set<Promise<void>>()
  /** Slots in use: one for each driven run, except runs that were claimed only to be cancelled. */
  private busy = 0
  /** Slots that are held for runs that are being accepted. They count as busy. */
  private reserved = 0
  private reservationsDone: (() => void) | undefined
  private claiming: Promise<void> | undefined
  private claimAgain = false
  /** The last claim left runs that were due, because no slot was free for them. */
  private starved = false
  /** No run was queued when they were last counted, and nothing has happened since that could have queued one. */
  private isQueueEmpty = false
  private stopped = false
  /** The database file is damaged, so this node claims and renews nothing more. */
  private damaged = false
  private wakeTimer: Timer | undefined
  private readonly jitterMs: number

  constructor(dependencies: RunDependencies, node: string, about: NodeDescription = { name: node, version: '' }) {
    this.dependencies = dependencies
    this.node = node
    this.leases = new LeaseKeeper(dependencies, {
      node,
      drivers: this.drivers,
      about: () => ({
        ...about,
        offers: [...(dependencies.placement?.offers() ?? [])],
        draining: this.stopped,
        capacity: dependencies.limits.nodeConcurrency,
        running: this.drivers.size,
      }),
      // Leases of dead nodes, and of runs that we claimed but could not work on, may have expired: claim those runs.
      onBeat: () => {
        this.poke()
        void this.endUnplaced()
      },
    })
    this.unplaced = new UnplacedRuns(dependencies, () => this.leaseRequest())
    this.jitterMs = dependencies.cluster === undefined ? 0 : jitterOf(node)
  }

  /** The first claim also recovers interrupted runs, because they are due like any others. */
  start(): void {
    this.dependencies.cluster?.listen(this)
    this.leases.start()
    this.poke()
  }

  /** The database file is damaged: this node runs nothing until it is started again. */
  get isDamaged(): boolean {
    return this.damaged
  }

  hasFreeSlot(): boolean {
    return !this.stopped && this.busy < this.dependencies.limits.nodeConcurrency
  }

  /** Holds a slot for a run that is about to be accepted. Always followed by `release`, after `adopt` if the run was claimed. */
  reserve(): boolean {
    if (!this.hasFreeSlot()) return false
    this.busy += 1
    this.reserved += 1
    return true
  }

  release(): void {
    this.busy -= 1
    this.reserved -= 1
    if (this.reserved === 0) this.reservationsDone?.()
  }

  /** What this node asks for when it takes a run. Made just before the store is asked. */
  leaseRequest(): TimedLeaseRequest {
    return this.leases.newRequest()
  }

  /** Drives a run that was claimed in the transaction that accepted it; its events need not be read. */
  adopt(row: RunRow, events: readonly RunEvent[], leaseRequest: TimedLeaseRequest): void {
    this.dependencies.leaseMeter?.runsClaimed(1, 0)
    this.dependencies.bus.begin(row.id, events)
    this.drive(row, leaseRequest, events)
  }

  /**
   * Claims again, because a run may be due: one was queued, decided on or cancelled, or a slot is free. With `runId`, that run is
   * the reason: its driver is told, or the other nodes if this node does not get the run.
   */
  poke(runId?: string): void {
    this.isQueueEmpty = false
    const driver = runId === undefined ? undefined : this.drivers.get(runId)
    driver?.poke()
    void this.claim().then(() => {
      if (runId !== undefined && driver === undefined && !this.drivers.has(runId))
        this.dependencies.cluster?.signal(runId)
    })
  }

  /** `row` has its cancel request. */
  cancel(row: RunRow): void {
    const driver = this.drivers.get(row.id)
    if (driver !== undefined && row.cancel !== null) {
      driver.cancel(row.cancel)
      return
    }
    // Another node drives it, unless its lease has run out.
    if (row.leaseOwner !== null) this.dependencies.cluster?.signal(row.id)
    this.poke(row.leaseOwner === null ? row.id : undefined)
  }

  // The signals of other nodes.

  announced(): void {}

  signalled(runId: string | null): void {
    const driver = runId === null ? undefined : this.drivers.get(runId)
    if (driver !== undefined) void this.readCommands(driver)
    else if (runId !== null || this.hasFreeSlot()) void this.claim()
  }

  missed(): void {
    void this.leases.renew().then(() => this.claim())
  }

  /**
   * Claims nothing more, stops model calls, and lets tools finish within `toolsMs`. A tool call that takes longer is aborted
   * and treated as after a crash: a person is asked about it if it is unsafe. Resolves when every run is released; other nodes
   * are told to claim them.
   */
  async drain(toolsMs = Infinity): Promise<void> {
    this.stopped = true
    this.wakeTimer?.cancel()
    // The heartbeat goes on: a tool may need longer than a lease, and no other node may take its run meanwhile.
    void this.leases.writeNodeRow()
    for (const driver of this.drivers.values()) driver.drain()
    const cut = Number.isFinite(toolsMs)
      ? this.dependencies.clock.after(toolsMs, () => {
          for (const driver of this.drivers.values()) driver.abortTools()
        })
      : undefined
    await this.claiming
    // A run that is being accepted may still become ours.
    if (this.reserved > 0) await new Promise<void>((resolve) => (this.reservationsDone = resolve))
    while (this.work.size > 0) await Promise.all(this.work)
    cut?.cancel()
    await this.leases.stop()
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
    const { store, limits, cluster, leaseMeter, log, clock, placement } = this.dependencies
    try {
      // Renewed first, or we would claim our own runs.
      if (this.leases.isLate) await this.leases.renew()
      const lease = this.leaseRequest()
      const limit = Math.max(0, limits.nodeConcurrency - this.busy)
      const offers = placement?.offers() ?? []
      const rows = await store.claim({ ...lease, limit, offers })
      if (rows.length > 0) leaseMeter?.runsClaimed(rows.length, rows.filter((row) => this.isTakenOver(row)).length)
      for (const row of rows) this.drive(row, lease)
      this.starved = rows.length >= limit
      // There may be more than this node can take.
      if (rows.length > 0 && rows.length >= limit) cluster?.signal(null)
      await this.armWakeTimer(rows.length > 0)
    } catch (error) {
      log.error({ err: error }, 'runs could not be claimed')
      if (isDamage(error)) {
        this.damaged = true
        this.leases.pause()
      }
      if (!this.stopped && !this.damaged) clock.after(claimRetryMs, () => this.poke())
    }
  }

  private isTakenOver({ takenFrom }: ClaimedRun): boolean {
    return takenFrom !== undefined && takenFrom !== this.node
  }

  private async armWakeTimer(claimedAny: boolean): Promise<void> {
    const dueMs = await this.dependencies.store.msUntilWake(this.node)
    this.wakeTimer?.cancel()
    this.wakeTimer = undefined
    if (dueMs !== null && dueMs <= 0) this.starved = true
    if (dueMs === null || this.stopped) return
    // A run is due but all slots are taken. No timer is needed, because the end of any run pokes the scheduler.
    if (dueMs <= 0 && !this.hasFreeSlot()) return
    const delayMs = dueMs > 0 ? dueMs + this.jitterMs : claimedAny ? 1 : dueElsewhereMs
    this.wakeTimer = this.dependencies.clock.after(Math.min(delayMs, wakeCheckMs), () => this.poke())
  }

  /** Takes the slot before the journal is read, so that the next claim does not exceed the limit. */
  private drive(row: RunRow, leaseRequest: TimedLeaseRequest, events?: readonly RunEvent[], failure?: AppError): void {
    const slots = row.cancel === null && failure === undefined ? 1 : 0
    this.busy += slots
    // Our lease expired and we claimed the run again. The new driver waits until the old one has finished.
    const earlier = this.drivers.get(row.id)
    earlier?.abandon()
    const driver = new RunDriver(row, events && foldRun(events), this.dependencies, leaseRequest, this, {
      ...defined({ earlier, failure }),
      slots,
    })
    if (this.stopped) driver.drain()
    this.drivers.set(row.id, driver)
    this.leases.watch(driver)
    this.work.add(driver.finished)
  }

  driverFinished(driver: RunDriver): void {
    this.busy -= driver.slots
    this.work.delete(driver.finished)
    if (this.drivers.get(driver.runId) === driver) this.drivers.delete(driver.runId)
    // A slot is free, and the next run of the conversation may be due.
    withoutActivity(() => void this.slotFreed(driver))
  }

  /** Ends runs that no node can execute. */
  private async endUnplaced(): Promise<void> {
    if (this.stopped || this.damaged || this.dependencies.placement === undefined) return
    for (const { row, lease, error } of await this.unplaced.claimOverdue()) this.drive(row, lease, undefined, error)
  }

  /**
   * Claims again. The end of a run can only make a run due that is queued or that found no slot, so without such runs nothing is
   * claimed; a run that was parked may need a timer. If runs are still queued then, another node may be able to take one.
   */
  private async slotFreed({ hasEnded }: RunDriver): Promise<void> {
    const { cluster } = this.dependencies
    if (this.stopped) cluster?.signal(null)
    if (hasEnded && !this.starved && (this.isQueueEmpty || (await this.queuedRuns()) === 0)) return
    await this.claim()
    if (cluster === undefined || this.stopped || !this.hasFreeSlot()) return
    if ((await this.queuedRuns()) > 0) cluster.signal(null)
  }

  private async queuedRuns(): Promise<number> {
    try {
      // A poke meanwhile makes it false again. Other nodes queue runs too, and what they tell may be lost.
      this.isQueueEmpty = this.dependencies.cluster === undefined
      const queued = (await this.dependencies.store.countRuns()).queued ?? 0
      if (queued > 0) this.isQueueEmpty = false
      return queued
    } catch (error) {
      this.isQueueEmpty = false
      this.dependencies.log.warn({ err: error }, 'the queued runs could not be counted')
      // The claim finds out, and is tried again if it fails too.
      return 1
    }
  }

  /** Reads what another node stored for a run that is driven here. */
  private async readCommands(driver: RunDriver): Promise<void> {
    try {
      const row = await this.dependencies.store.readRun(driver.runId)
      if (row === undefined || row.epoch < driver.epoch) return
      if (row.epoch > driver.epoch) driver.abandon()
      else if (row.cancel !== null) driver.cancel(row.cancel)
      driver.poke()
    } catch (error) {
      this.dependencies.log.warn(
        { runId: driver.runId, err: error },
        'a signal for a run could not be followed; the next heartbeat reads it again',
      )
    }
  }
}

function jitterOf(node: string): number {
  let sum = 0
  for (const character of node) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 65_521
  return sum % jitterMaxMs
}

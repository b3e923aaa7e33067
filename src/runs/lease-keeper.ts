// Keeps the leases of the runs that this node drives: renews them at every heartbeat, learns from the
// rows of cancel requests and lost runs, and stops the work on a run whose lease could not be renewed in
// time. The heartbeat also writes the row of this node.

import type { Timer } from '../kit/clock.ts'
import type { NodeBeat } from '../stores/node-store.ts'
import type { RunDriver } from './run-driver.ts'
import type { RunDependencies } from './run-dependencies.ts'
import { type TimedLeaseRequest, heartbeatMsOf, readClocks } from './run-lease.ts'

/** Renewals that have not been answered. A new one may get through while an old one hangs; more would only pile up. */
const renewalsAtOnce = 3

export type LeaseKeeperOptions = {
  node: string
  drivers: ReadonlyMap<string, RunDriver>
  /** The row of this node. */
  about(): Pick<NodeBeat, 'name' | 'version' | 'offers' | 'draining' | 'capacity' | 'running'>
  /** Called after every heartbeat. */
  onBeat(): void
}

export class LeaseKeeper {
  readonly leaseMs: number
  private readonly dependencies: RunDependencies
  private readonly options: LeaseKeeperOptions
  private readonly startedAt: number
  private heartbeat: Timer | undefined
  private endTimer: Timer | undefined
  /** The monotonic time at which `endTimer` fires. */
  private endsAt = Infinity
  private renewing = 0
  private writingNodeRow = false
  private renewedAt: number

  constructor(dependencies: RunDependencies, options: LeaseKeeperOptions) {
    this.dependencies = dependencies
    this.options = options
    this.leaseMs = dependencies.limits.leaseMs
    this.startedAt = dependencies.clock.now()
    this.renewedAt = dependencies.clock.monotonic()
  }

  start(): void {
    void this.writeNodeRow()
    this.beat()
  }

  /** Ends the heartbeat and removes the row of this node. */
  async stop(): Promise<void> {
    this.pause()
    try {
      await this.dependencies.store.removeNode(this.options.node)
    } catch (error) {
      this.dependencies.log.warn({ err: error }, 'the row of this node could not be removed')
    }
  }

  /** Ends the heartbeat: leases run out. */
  pause(): void {
    this.heartbeat?.cancel()
    this.endTimer?.cancel()
    this.endsAt = Infinity
  }

  /** What this node asks for when it takes a run. Made just before the store is asked, because it holds the time. */
  newRequest(): TimedLeaseRequest {
    const { clock, limits } = this.dependencies
    return {
      node: this.options.node,
      leaseMs: this.leaseMs,
      slots: limits.concurrency,
      requestedAt: readClocks(clock),
    }
  }

  /** Our own leases may have expired, if the process was blocked for long. */
  get isLate(): boolean {
    return this.dependencies.clock.monotonic() - this.renewedAt > this.leaseMs - heartbeatMsOf(this.leaseMs)
  }

  /** Watches the lease of a run that is now driven. */
  watch(driver: RunDriver): void {
    if (driver.lease.endsAt < this.endsAt) this.armEndTimer(driver.lease.endsAt)
  }

  /** Renews the leases of all driven runs. */
  async renew(): Promise<void> {
    const { dependencies, options } = this
    this.renewedAt = dependencies.clock.monotonic()
    const held = new Map(options.drivers)
    if (held.size === 0 || this.renewing >= renewalsAtOnce) return
    this.renewing += 1
    try {
      const request = this.newRequest()
      const rows = await dependencies.store.renewLeases(request, [...held.keys()])
      const found = new Map(rows.map((row) => [row.id, row]))
      for (const [runId, driver] of held) {
        const row = found.get(runId)
        if (row === undefined || row.epoch !== driver.epoch) await this.abandonIfClaimed(driver)
        else driver.renewed(row, request.requestedAt)
      }
    } catch (error) {
      dependencies.log.error({ err: error }, 'leases could not be renewed')
    } finally {
      this.renewing -= 1
    }
  }

  /** Writes the row of this node. */
  async writeNodeRow(): Promise<void> {
    const { store, log } = this.dependencies
    const { node, about } = this.options
    if (this.writingNodeRow) return
    this.writingNodeRow = true
    try {
      await store.beatNode({ id: node, startedAt: this.startedAt, leaseMs: this.leaseMs, ...about() })
    } catch (error) {
      log.warn({ err: error }, 'the row of this node could not be written')
    } finally {
      this.writingNodeRow = false
    }
  }

  private beat(): void {
    this.heartbeat = this.dependencies.clock.after(heartbeatMsOf(this.leaseMs), () => {
      // Armed first, so that a store that hangs does not end the heartbeat.
      this.beat()
      void Promise.all([this.renew(), this.writeNodeRow()]).finally(() => this.options.onBeat())
    })
  }

  /** Handles a lease that was not renewed: either another node claimed the run, or the run has just ended or parked. */
  private async abandonIfClaimed(driver: RunDriver): Promise<void> {
    const row = await this.dependencies.store.readRun(driver.runId)
    const taken = row !== undefined && row.endedAt === null && row.epoch > driver.epoch
    if (taken) driver.abandon()
  }

  private armEndTimer(endsAt: number): void {
    const { clock } = this.dependencies
    this.endTimer?.cancel()
    this.endsAt = endsAt
    this.endTimer = clock.after(Math.max(1, Math.ceil(endsAt - clock.monotonic())), () => this.endLeases())
  }

  /** Stops the work on runs whose leases were not renewed in time. */
  private endLeases(): void {
    this.endsAt = Infinity
    const { drivers } = this.options
    if (drivers.size === 0) return
    // A driver whose lease has ended may get it back, so it is looked at again.
    let next = this.dependencies.clock.monotonic() + heartbeatMsOf(this.leaseMs)
    for (const { lease } of drivers.values()) if (lease.hasTime()) next = Math.min(next, lease.endsAt)
    for (const driver of drivers.values()) if (!driver.lease.hasTime()) driver.leaseEnded()
    this.armEndTimer(next)
  }
}

// How long this node may work on a run, by its own clock. The store judges leases by the clock of the
// database. A node counts from the moment before it asked for the lease, and stops a margin earlier,
// so it has stopped before any other node can claim the run, as long as the two clocks run equally fast.

import type { Clock } from '../kit/clock.ts'
import type { LeaseRequest } from '../stores/run-store.ts'

/** The share of a lease that is left for stopping: aborted requests, and clocks that differ in speed. */
const marginShare = 1 / 6

/** Two renewals may fail before a lease ends. */
const beatsPerLease = 3

export function heartbeatMsOf(leaseMs: number): number {
  return Math.max(1, Math.floor(leaseMs / beatsPerLease))
}

/** A lease that was asked for at these times of this node's clocks. */
export type TimedLeaseRequest = LeaseRequest & { requestedAt: ClockTimes }

export type ClockTimes = { monotonic: number; now: number }

export function readClocks(clock: Pick<Clock, 'monotonic' | 'now'>): ClockTimes {
  return { monotonic: clock.monotonic(), now: clock.now() }
}

export class RunLease {
  private readonly clock: Pick<Clock, 'monotonic' | 'now'>
  private readonly usableMs: number
  private requestedAt: ClockTimes

  constructor(clock: Pick<Clock, 'monotonic' | 'now'>, leaseMs: number, requestedAt: ClockTimes) {
    this.clock = clock
    this.usableMs = leaseMs * (1 - marginShare)
    this.requestedAt = requestedAt
  }

  /** The lease was renewed by a request that began at `requestedAt`. Answers may come in any order. */
  renewed(requestedAt: ClockTimes): void {
    if (requestedAt.monotonic >= this.requestedAt.monotonic) this.requestedAt = requestedAt
  }

  /** The monotonic time at which work has to stop. */
  get endsAt(): number {
    return this.requestedAt.monotonic + this.usableMs
  }

  /** Whether work may go on. */
  hasTime(): boolean {
    return this.clock.monotonic() < this.endsAt
  }

  /**
   * Whether something that cannot be undone may start. The time of day counts too, because the monotonic clock stands still
   * while a machine sleeps. If it was only set forward, the caller renews the lease once without need.
   */
  isCertain(): boolean {
    return this.hasTime() && this.clock.now() - this.requestedAt.now < this.usableMs
  }
}

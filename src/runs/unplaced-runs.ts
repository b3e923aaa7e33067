// Ends runs that no node can execute: the node that has their directory is gone, or none has the MCP
// server, engine, agent or skill that they need. Such a run gets some time, because the node may be
// restarting. Every node looks at each of its heartbeats, and one of them claims the run to end it.

import { AppError } from '../errors/app-error.ts'
import type { RunRow } from '../stores/run-store.ts'
import { describeNeeds } from './placement.ts'
import type { RunDependencies } from './run-dependencies.ts'
import type { TimedLeaseRequest } from './run-lease.ts'

/** How many runs are looked at, oldest first. The others follow when these have ended. */
const runsMax = 100

export type UnplacedRun = { row: RunRow; lease: TimedLeaseRequest; error: AppError }

export class UnplacedRuns {
  private readonly dependencies: Pick<RunDependencies, 'store' | 'clock' | 'log' | 'limits'>
  private readonly newLeaseRequest: () => TimedLeaseRequest
  /** When this node first saw that no node can execute a run. */
  private since = new Map<string, number>()
  private looking = false

  constructor(
    dependencies: Pick<RunDependencies, 'store' | 'clock' | 'log' | 'limits'>,
    newLeaseRequest: () => TimedLeaseRequest,
  ) {
    this.dependencies = dependencies
    this.newLeaseRequest = newLeaseRequest
  }

  /** The runs that this call has claimed; the caller ends them. */
  async claimOverdue(): Promise<UnplacedRun[]> {
    const { store, clock, log, limits } = this.dependencies
    if (this.looking) return []
    this.looking = true
    const claimed: UnplacedRun[] = []
    try {
      const found = await store.unplaceableRuns(runsMax)
      const now = clock.monotonic()
      this.since = new Map(found.map(({ id }) => [id, this.since.get(id) ?? now]))
      for (const { id, needs } of found) {
        if (now - (this.since.get(id) ?? now) < limits.unplaceableMs) continue
        const lease = this.newLeaseRequest()
        const row = await store.claimUnplaceable(id, lease)
        if (row !== undefined) claimed.push({ row, lease, error: noCapableNode(needs, limits.unplaceableMs) })
      }
    } catch (error) {
      log.warn({ err: error }, 'runs that no node can execute could not be looked for')
    } finally {
      this.looking = false
    }
    return claimed
  }
}

function noCapableNode(needs: readonly string[], waitedMs: number): AppError {
  return new AppError(
    'no_capable_node',
    `No running node had what this run needs for ${Math.round(waitedMs / 1000)} s: ${describeNeeds(needs)}. Start a node that has it, then send the request again.`,
    { details: { needs } },
  )
}

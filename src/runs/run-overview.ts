// The unfinished runs of all users, for operators, and why some of them may be stuck.

import type { RunStatus } from '../journal/event.ts'
import type { Clock } from '../kit/clock.ts'
import type { ListedNode, NodeStore } from '../stores/node-store.ts'
import type { RunRow, RunStore } from '../stores/run-store.ts'

export const stuckReasons = ['no_node', 'cancel_pending', 'queued_long', 'deadline_passed'] as const

export type StuckReason = (typeof stuckReasons)[number]

export type OpenRun = { run: RunRow; stuck: StuckReason | null }

/** A cancel and a passed deadline are acted on within seconds. */
const actedOnMs = 30_000
const queuedLongMs = 60_000

type WorkStore = Pick<RunStore, 'listOpenRuns' | 'countRuns' | 'readLastSeqs'> & Pick<NodeStore, 'listNodes'>

export class RunOverview {
  /** The id of this node. */
  readonly node: string
  private readonly store: WorkStore
  private readonly clock: Pick<Clock, 'now'>

  constructor(store: WorkStore, clock: Pick<Clock, 'now'>, node: string) {
    this.store = store
    this.clock = clock
    this.node = node
  }

  /** How many runs have each status. */
  async counts(): Promise<Partial<Record<RunStatus, number>>> {
    return await this.store.countRuns()
  }

  async nodes(): Promise<ListedNode[]> {
    return await this.store.listNodes()
  }

  /** How far the journals of these runs have come. */
  async lastSeqs(runIds: readonly string[]): Promise<Map<string, number>> {
    return await this.store.readLastSeqs([...new Set(runIds)])
  }

  /** Oldest first, of all users. */
  async openRuns(limit: number): Promise<OpenRun[]> {
    return withStuckReasons(await this.store.listOpenRuns(limit), this.clock.now())
  }
}

/** `rows` are the oldest unfinished runs, oldest first. */
export function withStuckReasons(rows: readonly RunRow[], now: number): OpenRun[] {
  const busy = new Set<string>()
  return rows.map((run) => {
    const waitsItsTurn = run.conversationId !== null && busy.has(run.conversationId)
    if (run.conversationId !== null) busy.add(run.conversationId)
    return { run, stuck: reasonOf(run, now, waitsItsTurn) }
  })
}

function reasonOf(run: RunRow, now: number, waitsItsTurn: boolean): StuckReason | null {
  if (run.cancel !== null && now - run.cancel.at > actedOnMs) return 'cancel_pending'
  switch (run.status) {
    case 'running':
      return run.leaseOwner === null ? 'no_node' : null
    case 'waiting_user':
      return run.wakeAt !== null && run.wakeAt > 0 && now - run.wakeAt > actedOnMs ? 'deadline_passed' : null
    case 'queued':
      // A run with a deadline is held for an upload.
      return !waitsItsTurn && run.wakeAt === null && now - run.createdAt > queuedLongMs ? 'queued_long' : null
    default:
      return null
  }
}

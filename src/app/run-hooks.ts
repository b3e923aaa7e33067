// Calls the hooks of the configuration. A hook is code of the operator: it is called after
// the end of the run is stored, nothing waits for it, its time is limited, and its errors
// are logged. It is called at most once for a run; a crash right after the end can lose it.

import type { ErrorValue } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'
import { shownConversationIdOrNull } from '../kit/conversation-id.ts'
import { runUserCode } from '../kit/user-code.ts'
import type { RunStore } from '../stores/run-store.ts'
import type { FinishedRun, RunHooks } from './define-config.ts'

export type RunHookParts = {
  store: Pick<RunStore, 'readRun' | 'readEvents'>
  clock: Clock
  log: { error(details: object, message: string): void }
}

const hookMs = 30_000
/** How long a stop waits for hooks that are under way. */
const stopMs = 5_000

export class RunHookCaller {
  private readonly hooks: RunHooks
  private readonly parts: RunHookParts
  private readonly underWay = new Set<Promise<void>>()

  constructor(hooks: RunHooks, parts: RunHookParts) {
    this.hooks = hooks
    this.parts = parts
  }

  /** Never throws, and returns before the hook is done. */
  runEnded(runId: string): void {
    const { onRunEnded } = this.hooks
    if (onRunEnded === undefined) return
    const call: Promise<void> = this.call(runId, onRunEnded)
      .catch((error: unknown) => this.parts.log.error({ err: error, runId }, 'the hook onRunEnded failed'))
      .finally(() => this.underWay.delete(call))
    this.underWay.add(call)
  }

  /** Resolves when no hook is under way, or after a few seconds. */
  async settled(): Promise<void> {
    if (this.underWay.size === 0) return
    await this.within(stopMs, Promise.allSettled(this.underWay)).catch(() => {})
  }

  private async call(runId: string, hook: NonNullable<RunHooks['onRunEnded']>): Promise<void> {
    const run = await this.read(runId)
    if (run === null) return
    await this.within(
      hookMs,
      runUserCode('the hook onRunEnded', () => hook(run)),
    )
  }

  private async read(runId: string): Promise<FinishedRun | null> {
    const { store } = this.parts
    const row = await store.readRun(runId)
    // Its conversation may have been deleted right after the end.
    if (row === undefined || row.endedAt === null) return null
    const { events } = await store.readEvents(runId, row.lastSeq - 1, 1)
    const ended = events.find((event) => event.type === 'run.ended')
    return {
      id: row.id,
      status: statusOf(row.status),
      userId: row.owner,
      conversationId: shownConversationIdOrNull(row.conversationId),
      agentId: row.agentId,
      family: row.family,
      createdAt: new Date(row.createdAt),
      endedAt: new Date(row.endedAt),
      error: row.error === null ? null : shownError(row.error),
      output: ended?.type === 'run.ended' ? (ended.data.output ?? null) : null,
    }
  }

  private async within<T>(limitMs: number, work: Promise<T>): Promise<T> {
    return await new Promise<T>((resolve, reject) => {
      const timer = this.parts.clock.after(limitMs, () => reject(new Error(`it took longer than ${limitMs / 1000} s`)))
      work.then(resolve, reject).finally(() => timer.cancel())
    })
  }
}

function statusOf(status: string): FinishedRun['status'] {
  if (status === 'canceled') return 'cancelled'
  return status === 'succeeded' ? 'succeeded' : 'failed'
}

function shownError({ code, message }: ErrorValue): { code: string; message: string } {
  return { code, message }
}

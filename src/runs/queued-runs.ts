// Changes the message of a run that waits for its turn in a conversation, or withdraws it. Both
// work only until a node claims the run; afterwards it can only be cancelled.

import { AppError } from '../errors/app-error.ts'
import type { EventData, RunEvent } from '../journal/event.ts'
import type { MessageRow } from '../stores/message-store.ts'
import type { RunRow } from '../stores/run-store.ts'
import type { RunDependencies } from './run-dependencies.ts'
import type { RunService } from './run-service.ts'

/** The first event, and changes of the input since then. A message that was changed more often is refused. */
const eventsReadMax = 100

export class QueuedRuns {
  private readonly dependencies: Pick<RunDependencies, 'store' | 'bus' | 'clock'>
  private readonly runs: Pick<RunService, 'cancel'>

  constructor(dependencies: Pick<RunDependencies, 'store' | 'bus' | 'clock'>, runs: Pick<RunService, 'cancel'>) {
    this.dependencies = dependencies
    this.runs = runs
  }

  /** Replaces the text of the message. The run keeps its place in the queue. */
  async revise(run: RunRow, input: string): Promise<RunRow> {
    const { store, bus, clock } = this.dependencies
    const message = await this.ownMessage(run)
    if (message.parts !== undefined) {
      throw new AppError(
        'invalid_request',
        'The message has files, so its text cannot be changed. Delete it from the queue and send a new one.',
      )
    }
    const at = Math.max(clock.now(), run.createdAt)
    const data: EventData<'run.prepared'> = { input, files: [] }
    const event: RunEvent = { seq: run.lastSeq + 1, at, attempt: run.attempt, type: 'run.prepared', data }
    const changed = await store.changeQueued({
      runId: run.id,
      afterSeq: run.lastSeq,
      events: [event],
      message: { id: message.id, content: input },
      at,
    })
    if (changed === undefined) throw notQueued(run)
    bus.publish(run.id, [event])
    return changed
  }

  /** Cancels the run, and takes its message out of the conversation. Returns the text of the message. */
  async withdraw(run: RunRow): Promise<{ run: RunRow; input: string }> {
    const { store, clock } = this.dependencies
    const message = await this.ownMessage(run)
    const at = clock.now()
    const reason = 'removed from the queue'
    const changed = await store.changeQueued({
      runId: run.id,
      afterSeq: run.lastSeq,
      events: [],
      message: { id: message.id, state: 'abandoned' },
      cancel: { by: run.owner, reason, at },
      at,
    })
    if (changed === undefined) throw notQueued(run)
    // The request is stored; this wakes a node, and waits for the end.
    const { run: ended } = await this.runs.cancel(run.owner, run.id, reason)
    return { run: ended, input: message.content }
  }

  /** The message that came with this run and with no other. */
  private async ownMessage(run: RunRow): Promise<MessageRow> {
    const { store } = this.dependencies
    if (run.status !== 'queued') throw notQueued(run)
    const { events } = await store.readEvents(run.id, 0, eventsReadMax)
    const accepted = events.find((event) => event.type === 'run.accepted')
    const id = accepted?.data.userMessageId ?? null
    const message = id === null ? undefined : await store.readMessage(id)
    if (
      message === undefined ||
      message.runId !== run.id ||
      events.length >= eventsReadMax ||
      (await store.findComparisonByRun(run.id)) !== undefined
    ) {
      throw new AppError(
        'invalid_request',
        'The run has no message of its own in a queue that could be changed. Cancel the run instead.',
      )
    }
    return message
  }
}

function notQueued(run: RunRow): AppError {
  return new AppError(
    'run_not_queued',
    'The run is not waiting in the queue any more, so its message cannot be changed. Cancel the run instead.',
    { details: { runId: run.id } },
  )
}

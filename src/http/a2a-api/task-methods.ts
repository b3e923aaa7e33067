// The methods of A2A: send a message (and wait, or stream), get, list and cancel tasks, and subscribe to
// one. A task is a run of the caller, of any API family.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { type A2aVersion, a2aDialect, type RpcId } from '../../dialects/a2a/a2a.ts'
import { legacyTask } from '../../dialects/a2a/legacy.ts'
import { type A2aTask, isFinalState } from '../../dialects/a2a/task.ts'
import { beginning } from '../../dialects/cursor.ts'
import { AppError } from '../../errors/app-error.ts'
import type { RunStatus } from '../../journal/event.ts'
import type { Caller } from '../../kit/caller.ts'
import { defined } from '../../kit/defined.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { cancelsOnDisconnect } from '../disconnect.ts'
import { readContent } from '../content-parts.ts'
import type { Services } from '../routes.ts'
import { resumedRun } from '../start-or-resume.ts'
import { streamRun } from '../stream-run.ts'
import { requestSignal } from '../request-signal.ts'
import { answerTask } from './answer-task.ts'
import {
  checkConfiguration,
  contentOfMessage,
  emptyMessage,
  listParams,
  parseParams,
  returnsAtOnce,
  type SendParams,
  sendParams,
  taskParams,
} from './message-params.ts'
import { encodeOpening, type ReadTask, readTask, withHistory } from './task-reader.ts'

export type A2aContext = {
  services: Services
  request: FastifyRequest
  reply: FastifyReply
  caller: Caller
  /** The agent of the address; absent means the default one. */
  agentId: string | undefined
  version: A2aVersion
  requestId: RpcId
  /** The address of the server as the client used it. */
  origin: string
}

type Sent = {
  run: RunRow
  /** False if the message was sent before, or went to a task that exists. */
  started: boolean
  /** The task before the message, if it existed. */
  before: ReadTask | undefined
}

/** Answers with the task: when it has ended or needs a person, or at once if the client wants that. */
export async function sendMessage(context: A2aContext, given: unknown): Promise<unknown> {
  const { services, reply } = context
  const params = parseParams(sendParams, given)
  const { run, started, before } = await takeMessage(context, params)
  if (!returnsAtOnce(params.configuration)) {
    const signal = requestSignal(reply, services.streams)
    await services.runs.settled(run, { signal, orWaiting: true, afterSeq: before?.seq ?? 0 })
    if (reply.raw.destroyed && cancelsOnDisconnect(services, {}, started)) {
      await services.runs.clientLeft(run.id, run.owner)
    }
  }
  const { task } = await readTask(context, run)
  const shown = withHistory(task, params.configuration?.historyLength)
  return context.version === '1.0' ? { task: shown } : legacyTask(shown)
}

/** A new task streams from its first frame. For a task that exists, the stream opens with the task as it is. */
export async function streamMessage(context: A2aContext, given: unknown): Promise<FastifyReply> {
  const { services, request, reply, version, requestId, origin } = context
  const { run, started, before } = await takeMessage(context, parseParams(sendParams, given))
  if (!started) return await streamFrom(context, run, before ?? (await readTask(context, run)))
  const dialect = a2aDialect({ version, requestId, origin })
  const cancels = cancelsOnDisconnect(services, {}, started)
  return await streamRun(services, request, reply, { run, dialect, cursor: beginning, cancels })
}

export async function subscribe(context: A2aContext, given: unknown): Promise<FastifyReply> {
  const { services, caller } = context
  const run = await services.runs.get(caller, parseParams(taskParams, given).id)
  const read = await readTask(context, run)
  if (isFinalState(read.task.status.state)) {
    throw new AppError('task_over', 'The task has ended, so nothing follows; get the task instead.')
  }
  return await streamFrom(context, run, read)
}

export async function getTask(context: A2aContext, given: unknown): Promise<unknown> {
  const { services, caller } = context
  const { id, historyLength } = parseParams(taskParams, given)
  const { task } = await readTask(context, await services.runs.get(caller, id))
  return taskResult(context, withHistory(task, historyLength))
}

export async function cancelTask(context: A2aContext, given: unknown): Promise<unknown> {
  const { services, caller } = context
  const { owner, id } = await services.runs.get(caller, parseParams(taskParams, given).id)
  const { run, accepted } = await services.runs.cancel(owner, id, null)
  if (!accepted) {
    throw new AppError('task_not_cancelable', 'The task has ended, so it cannot be cancelled; get it to see how.')
  }
  return taskResult(context, (await readTask(context, run)).task)
}

const pageSizeDefault = 50
/** A page with more text than this ends early. One task alone may be larger. */
const pageCharsMax = 4 * 1024 * 1024

const statesOfRuns: Readonly<Record<string, RunStatus[]>> = {
  TASK_STATE_SUBMITTED: ['queued'],
  TASK_STATE_WORKING: ['running'],
  TASK_STATE_INPUT_REQUIRED: ['waiting_user'],
  TASK_STATE_COMPLETED: ['succeeded'],
  TASK_STATE_FAILED: ['failed'],
  TASK_STATE_CANCELED: ['canceled'],
  TASK_STATE_REJECTED: [],
  TASK_STATE_AUTH_REQUIRED: [],
}

/** The client of 1.x sends the second if its caller gave no status. */
const unsetStates = ['TASK_STATE_UNSPECIFIED', 'UNRECOGNIZED']

/** Undefined: tasks in any state. Empty for states that no run has. */
function runStatusesOf(state: string | undefined): RunStatus[] | undefined {
  if (state === undefined || unsetStates.includes(state)) return undefined
  const known = Object.hasOwn(statesOfRuns, state) ? statesOfRuns[state] : undefined
  if (known !== undefined) return known
  throw new AppError('invalid_request', `"status" must be one of ${Object.keys(statesOfRuns).join(', ')}.`)
}

/** Newest first. Only 1.0 has lists. */
export async function listTasks(context: A2aContext, given: unknown): Promise<unknown> {
  const { services, caller } = context
  const params = parseParams(listParams, given)
  if (params.statusTimestampAfter != null) {
    throw new AppError(
      'invalid_request',
      'statusTimestampAfter is not served here; leave it out and read the newest tasks.',
    )
  }
  const limit = params.pageSize ?? pageSizeDefault
  const empty = { tasks: [], nextPageToken: '', pageSize: limit, totalSize: 0 }
  const status = runStatusesOf(params.status)
  if (status?.length === 0) return empty
  const conversationId = await services.conversations.idFilter(caller.userId, params.contextId)
  if (conversationId === null) return empty
  if (params.pageToken !== undefined) await services.runs.get(caller, params.pageToken)
  const { rows, more } = await services.runs.list({
    owner: caller.userId,
    limit,
    ...defined({ conversationId, status, before: params.pageToken }),
  })
  const tasks: A2aTask[] = []
  let chars = 0
  for (const row of rows) {
    const { task } = await readTask(context, row)
    const { artifacts, ...rest } = withHistory(task, params.historyLength ?? 0)
    const shown = params.includeArtifacts === true ? { ...rest, ...defined({ artifacts }) } : rest
    chars += JSON.stringify(shown).length
    if (tasks.length > 0 && chars > pageCharsMax) break
    tasks.push(shown)
  }
  const isLast = !more && tasks.length === rows.length
  const isWhole = isLast && params.pageToken === undefined
  return {
    tasks,
    nextPageToken: isLast ? '' : (tasks.at(-1)?.id ?? ''),
    pageSize: limit,
    // Counting all tasks would cost a walk over them; the field is there only if this page has them all.
    ...(isWhole ? { totalSize: tasks.length } : {}),
  }
}

async function takeMessage(context: A2aContext, params: SendParams): Promise<Sent> {
  const { services, caller, request } = context
  const { message } = params
  checkConfiguration(params.configuration)
  if (message.taskId === undefined) {
    const start = await startRequest(context, params)
    const resumed = await resumedRun(services, request.headers, start)
    if (resumed !== undefined) return { run: resumed, started: false, before: undefined }
    const { run, outcome } = await services.runs.start(start)
    return { run, started: outcome === 'accepted', before: undefined }
  }
  const run = await services.runs.get(caller, message.taskId)
  const before = await readTask(context, run)
  await answerTask(services, caller, before, message)
  return { run, started: false, before }
}

/** A message that is sent twice starts one task: its id is the idempotency key. */
async function startRequest({ services, caller, agentId }: A2aContext, { message }: SendParams): Promise<StartRequest> {
  const { files } = services
  const { text, parts } = await readContent(contentOfMessage(message), { files, owner: caller.userId })
  if (text.trim() === '') throw emptyMessage()
  return {
    owner: caller.userId,
    family: 'a2a',
    input: text,
    earlier: [],
    whenBusy: 'queue',
    echo: { messageId: message.messageId },
    idempotency: { key: message.messageId, route: `POST /a2a/${agentId ?? ''}`, body: message },
    ...defined({ agentId, parts, conversationId: message.contextId }),
  }
}

async function streamFrom(context: A2aContext, run: RunRow, { task, seq }: ReadTask): Promise<FastifyReply> {
  const { services, request, reply, version, requestId, origin } = context
  const options = { version, requestId, origin }
  const opening = encodeOpening(task, options)
  const cursor = { seq, index: null }
  return await streamRun(services, request, reply, { run, dialect: a2aDialect(options), cursor, opening })
}

function taskResult({ version }: A2aContext, task: A2aTask): unknown {
  return version === '1.0' ? task : legacyTask(task)
}

// The wire of A2A (Agent2Agent): a run is a task, its conversation is the context, and each message
// of the model is an artifact. One fold for both protocol versions: the frames hold the objects of
// 1.0, and legacy.ts writes them as 0.3. README.md beside this file has the mapping table.
//
// What must stay true: the first frame is the task, every frame repeats the id of the JSON-RPC request
// (the client refuses any other), and the stream ends when the task needs a person or is over.

import { jsonString } from '../../kit/json-string.ts'
import type { EventData, EventOf, JsonValue, RunEvent } from '../../journal/event.ts'
import type { FileReference } from '../../journal/part.ts'
import { isoTime } from '../../kit/clock.ts'
import { shownConversationId } from '../../kit/conversation-id.ts'
import { defined } from '../../kit/defined.ts'
import { withEntry } from '../../kit/shared-map.ts'
import { type Dialect, emit, type Frame, pingTiming, type Projection, silent } from '../dialect.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import { legacyResult } from './legacy.ts'
import type { A2aArtifact, A2aFrame, A2aMessage, A2aPart, TaskState } from './task.ts'

export type A2aVersion = '1.0' | '0.3'

export type RpcId = string | number | null

export type A2aState = {
  readonly origin: string
  readonly runId: string
  readonly contextId: string
  /** Null until the task was announced. */
  readonly state: TaskState | null
  /** The messages whose text has begun and is not complete. */
  readonly open: ReadonlySet<string>
  /** The names of the tools that were called, by the id of the call. */
  readonly calls: ReadonlyMap<string, string>
  /** What a person has to decide. */
  readonly asked: ReadonlyMap<string, EventData<'input.required'>>
}

type A2aProjection = Projection<A2aState>

export type A2aOptions = {
  readonly version?: A2aVersion
  /** The id of the JSON-RPC request that the stream answers. */
  readonly requestId?: RpcId
  /** The address of the server, which is put before the paths of files. Absent: files have only their paths. */
  readonly origin?: string
}

export function a2aDialect({ version = '1.0', requestId = null, origin = '' }: A2aOptions = {}): Dialect<A2aState> {
  const envelope = `{"jsonrpc":"2.0","id":${JSON.stringify(requestId)},"result":`
  return {
    name: version === '1.0' ? 'a2a' : 'a2a-v0.3',
    bytesKey: `${JSON.stringify(requestId)} ${origin}`,
    headers: sseHeaders,

    open: ({ runId }) => ({
      origin,
      runId,
      contextId: runId,
      state: null,
      open: new Set(),
      calls: new Map(),
      asked: new Map(),
    }),

    step(state, event) {
      switch (event.type) {
        case 'run.accepted':
          return acceptedFrames(state, event)
        case 'run.state':
          return stateFrames(state, event)
        case 'text.delta':
          return textFrames(state, event)
        case 'source.found':
          return sourceFrames(state, event)
        case 'message.done':
          return doneFrames(state, event)
        case 'tool.called':
          return calledFrames(state, event)
        case 'tool.done':
          return resultFrames(state, event)
        case 'input.required':
          return silent({ ...state, asked: new Map(state.asked).set(event.data.interactionId, event.data) })
        case 'input.resolved':
          return silent({ ...state, asked: without(state.asked, event.data.interactionId) })
        case 'run.ended':
          return endFrames(state, event)

        // No frame on this wire. Listed without a default, so that a new event type is a compile error here.
        case 'run.prepared':
        case 'step.started':
        case 'reasoning.delta':
        case 'step.done':
        case 'tool.started':
        case 'tool.progress':
        case 'output.rejected':
        case 'engine.handle':
        case 'context.patch':
        case 'answer.discarded':
        case 'context.cut':
        case 'context.summarised':
        case 'diagnostic':
          return silent(state)
      }
    },

    encode: (frame, address) => sseFrame(address, null, `${envelope}${resultOf(frame, version)}}`),

    encodeDelta({ runId, contextId, state, open }, { seq, messageId, textJson }) {
      if (state === null || !open.has(messageId)) return null
      const place = `"taskId":${jsonString(runId)},"contextId":${jsonString(contextId)}`
      const id = jsonString(messageId)
      const result =
        version === '1.0'
          ? `{"artifactUpdate":{${place},"artifact":{"artifactId":${id},"parts":[{"text":${textJson}}]},"append":true}}`
          : `{"kind":"artifact-update",${place},"append":true,"artifact":{"artifactId":${id},"parts":[{"kind":"text","text":${textJson}}]}}`
      return `id: ${seq}\ndata: ${envelope}${result}}\n\n`
    },

    keepAlive: () => ': c\n\n',
    keepAliveTiming: pingTiming,
    atDecision: 'parks',
  }
}

/** A frame that belongs to the connection and not to the run, so it has no id: the snapshot that opens a subscription. */
export function encodeSnapshot(frame: A2aFrame, { version = '1.0', requestId = null }: A2aOptions): string {
  return sseFrame(
    null,
    null,
    `{"jsonrpc":"2.0","id":${JSON.stringify(requestId)},"result":${resultOf(frame, version)}}`,
  )
}

function resultOf(frame: Frame, version: A2aVersion): string {
  return JSON.stringify(version === '1.0' ? { [frame.name]: frame.data } : legacyResult(frame as A2aFrame))
}

function without<Value>(map: ReadonlyMap<string, Value>, key: string): ReadonlyMap<string, Value> {
  const rest = new Map(map)
  rest.delete(key)
  return rest
}

function acceptedFrames(state: A2aState, event: EventOf<'run.accepted'>): A2aProjection {
  const { conversationId, userMessageId, input, parts, echo } = event.data
  const contextId = conversationId === null ? state.runId : shownConversationId(conversationId)
  const known: A2aState = { ...state, contextId, state: 'TASK_STATE_SUBMITTED' }
  const sent = parts?.map((part) => (part.type === 'text' ? { text: part.text } : filePart(state, part)))
  // The sender chooses the id of a message. A question that came over another API has the one of the journal.
  const given = echo?.['messageId']
  const messageId = typeof given === 'string' ? given : (userMessageId ?? state.runId)
  const question = messageOf(known, messageId, sent ?? [{ text: input }], 'ROLE_USER')
  return emit(known, taskFrame(known, event.at, input === '' ? [] : [question]))
}

function filePart({ origin }: A2aState, { fileId, mediaType, name }: FileReference): A2aPart {
  const url = `${origin}/v1/files/${encodeURIComponent(fileId)}/content`
  return { url, ...defined({ filename: name }), mediaType }
}

function taskFrame({ runId, contextId }: A2aState, at: number, history: A2aMessage[]): A2aFrame {
  const status = { state: 'TASK_STATE_SUBMITTED', timestamp: isoTime(at) } as const
  return { name: 'task', data: { id: runId, contextId, status, ...(history.length === 0 ? {} : { history }) } }
}

/**
 * A row of the journal that no longer fits its schema is skipped when reading. If that is the first one, the task is
 * announced with the next frame.
 */
function emitWithTask(state: A2aState, event: RunEvent, ...frames: A2aFrame[]): A2aProjection {
  if (state.state !== null) return emit(state, ...frames)
  return emit({ ...state, state: 'TASK_STATE_SUBMITTED' }, taskFrame(state, event.at, []), ...frames)
}

function messageOf(
  { runId, contextId }: A2aState,
  messageId: string,
  parts: readonly A2aPart[],
  role: A2aMessage['role'] = 'ROLE_AGENT',
): A2aMessage {
  return { messageId, contextId, taskId: runId, role, parts }
}

function statusFrame(
  { runId, contextId }: A2aState,
  at: number,
  state: TaskState,
  message?: A2aMessage,
  metadata?: Record<string, JsonValue>,
): A2aFrame {
  const status = { state, ...defined({ message }), timestamp: isoTime(at) }
  return { name: 'statusUpdate', data: { taskId: runId, contextId, status, ...defined({ metadata }) } }
}

function artifactFrame(
  { runId, contextId }: A2aState,
  artifact: A2aArtifact,
  flags: { append?: true; lastChunk?: true } = {},
): A2aFrame {
  return { name: 'artifactUpdate', data: { taskId: runId, contextId, artifact, ...flags } }
}

function stateFrames(state: A2aState, event: EventOf<'run.state'>): A2aProjection {
  const { to } = event.data
  if (to === 'waiting_user') {
    const next: A2aState = { ...state, state: 'TASK_STATE_INPUT_REQUIRED' }
    return changeTask(state, next, event, statusFrame(state, event.at, 'TASK_STATE_INPUT_REQUIRED', questionOf(state)))
  }
  if (to !== 'running' || state.state === 'TASK_STATE_WORKING') return silent(state)
  const next: A2aState = { ...state, state: 'TASK_STATE_WORKING' }
  return changeTask(state, next, event, statusFrame(state, event.at, 'TASK_STATE_WORKING'))
}

/** Emits with the state `before`, which decides whether the task was announced, and goes on with `next`. */
function changeTask(before: A2aState, next: A2aState, event: RunEvent, frame: A2aFrame): A2aProjection {
  return { state: next, frames: emitWithTask(before, event, frame).frames }
}

/** Everything that is open, so that one answer can decide all of it. Undefined if the questions cannot be read any more. */
function questionOf(state: A2aState): A2aMessage | undefined {
  const [first] = state.asked.values()
  if (first === undefined) return undefined
  const parts = [...state.asked.values()].flatMap((asked): A2aPart[] => [
    { text: asked.prompt },
    { data: questionData(state, asked) },
  ])
  return messageOf(state, first.interactionId, parts)
}

function questionData({ calls }: A2aState, asked: EventData<'input.required'>): JsonValue {
  const { interactionId, kind, callId, input, outcome, style, options, fields } = asked
  const toolName = callId === undefined ? undefined : calls.get(callId)
  return {
    interactionId,
    kind,
    ...defined({ toolCallId: callId, toolName, arguments: input, outcome, style, options, fields }),
  }
}

function textFrames(state: A2aState, event: EventOf<'text.delta'>): A2aProjection {
  return pieceFrames(state, event, { text: event.data.text })
}

/** A source is a part of the artifact of its message. */
function sourceFrames(state: A2aState, event: EventOf<'source.found'>): A2aProjection {
  const { messageId: _message, ...source } = event.data
  return pieceFrames(state, event, { data: { source: defined(source) } })
}

function pieceFrames(state: A2aState, event: EventOf<'text.delta' | 'source.found'>, part: A2aPart): A2aProjection {
  const { messageId } = event.data
  const artifact: A2aArtifact = { artifactId: messageId, parts: [part] }
  if (state.open.has(messageId)) return emitWithTask(state, event, artifactFrame(state, artifact, { append: true }))
  const { state: next, frames } = emitWithTask(state, event, artifactFrame(state, artifact))
  return { state: { ...next, open: new Set(state.open).add(messageId) }, frames }
}

/** The text of a message that was not streamed comes as a whole. */
function doneFrames(state: A2aState, event: EventOf<'message.done'>): A2aProjection {
  const { messageId, text, state: messageState } = event.data
  const metadata = messageState === 'active' ? undefined : { state: messageState }
  const wasOpen = state.open.has(messageId)
  if (!wasOpen && (text === '' || messageState !== 'active')) return silent(state)
  const artifact = { artifactId: messageId, parts: [{ text: wasOpen ? '' : text }], ...defined({ metadata }) }
  const flags = { ...(wasOpen ? { append: true as const } : {}), lastChunk: true as const }
  const open = new Set(state.open)
  open.delete(messageId)
  const { state: next, frames } = emitWithTask(state, event, artifactFrame(state, artifact, flags))
  return { state: { ...next, open }, frames }
}

function calledFrames(state: A2aState, event: EventOf<'tool.called'>): A2aProjection {
  const { callId, name, note, input } = event.data
  const parts: A2aPart[] = [{ text: note }, { data: { toolCallId: callId, toolName: name, arguments: input } }]
  const known = { ...state, calls: withEntry(state.calls, callId, name) }
  return emitWithTask(known, event, statusFrame(known, event.at, 'TASK_STATE_WORKING', messageOf(known, callId, parts)))
}

/** A call that is closed while a person is awaited is closed because the run ends, which the next frame says. */
function resultFrames(state: A2aState, event: EventOf<'tool.done'>): A2aProjection {
  if (state.state === 'TASK_STATE_INPUT_REQUIRED') return silent(state)
  const { callId, messageId, outcome, summary, error, files = [] } = event.data
  const toolName = state.calls.get(callId)
  const data = { toolCallId: callId, ...defined({ toolName }), outcome, ...defined({ code: error?.code }) }
  const message = messageOf(state, messageId, [{ text: summary }, { data }])
  const status = statusFrame(state, event.at, 'TASK_STATE_WORKING', message)
  if (files.length === 0) return emitWithTask(state, event, status)
  const artifact = {
    artifactId: messageId,
    ...defined({ name: toolName }),
    parts: files.map((file) => filePart(state, file)),
  }
  return emitWithTask(state, event, status, artifactFrame(state, artifact, { lastChunk: true }))
}

function endFrames(state: A2aState, event: EventOf<'run.ended'>): A2aProjection {
  const { status, error, reason, messageId } = event.data
  if (status === 'succeeded') {
    const metadata = messageId === undefined ? undefined : { answerArtifactId: messageId }
    return emitWithTask(state, event, statusFrame(state, event.at, 'TASK_STATE_COMPLETED', undefined, metadata))
  }
  const messageOfEnd = (parts: A2aPart[]) => messageOf(state, `${state.runId}-end`, parts)
  if (status === 'canceled') {
    const message = reason === undefined ? undefined : messageOfEnd([{ text: reason }])
    return emitWithTask(state, event, statusFrame(state, event.at, 'TASK_STATE_CANCELED', message))
  }
  const { code = 'internal_error', message = 'The run failed.', retryable } = error ?? {}
  const data = { code, message, ...defined({ retryable }) }
  const failure = messageOfEnd([{ text: message }, { data }])
  return emitWithTask(state, event, statusFrame(state, event.at, 'TASK_STATE_FAILED', failure))
}

// The wire of the session API: start, text, tool_use, tool_error, tool_result, error,
// done; each message is exactly `data: <JSON>`, without ids and event names. README.md
// has the mapping.
//
// Every tool_use has one tool_result, whatever became of the call. tool_error and
// `is_error` mean that the tool threw; a tool that answered no has `status: failed` only.

import type { EventData, EventOf, JsonValue } from '../../journal/event.ts'
import { sortedJson } from '../../kit/sorted-json.ts'
import { type Dialect, emit, type Frame, type Projection, silent } from '../dialect.ts'
import { blankLine, startsNewMessage } from '../message-text.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import { preview } from './preview.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'

type Call = {
  readonly name: string
  /** What the call is about to do, for people. */
  readonly note: string
  /** Undefined where the model's arguments could not be read. */
  readonly input: JsonValue | undefined
  /** The arguments that the call ran with, if a person changed those that its tool_use showed. */
  readonly changedInput?: JsonValue
  /** A `tool_use` went out. */
  readonly shown: boolean
  /** A person was asked whether a call that may have happened is to be run again. */
  readonly askedUnknown: boolean
}

export type SessionState = {
  readonly agentId: string
  /** The message of the last text; see `message-text.ts`. */
  readonly textMessageId: string | null
  readonly calls: ReadonlyMap<string, Call>
}

/** Questions that belong to no call are told as a call of this name. */
const questionTool = 'ask_user'

export const sessionDialect: Dialect<SessionState> = {
  name: 'session',
  headers: sseHeaders,

  // A run outside any conversation is a session of its own, which nobody can continue.
  open: ({ runId }) => ({ agentId: `agt-${runId}`, textMessageId: null, calls: new Map() }),

  step(state, event) {
    switch (event.type) {
      case 'run.accepted': {
        const agentId = shownConversationIdOrNull(event.data.conversationId) ?? state.agentId
        const isNewSession = event.data.newConversation === true || event.data.conversationId === null
        return emit({ ...state, agentId }, frameOf('start', { agentId, isNewSession }, event.at))
      }
      case 'text.delta': {
        const { messageId, text } = event.data
        const content = startsNewMessage(state.textMessageId, event.data) ? `${blankLine}${text}` : text
        const same = messageId === state.textMessageId || text === ''
        return emit(same ? state : { ...state, textMessageId: messageId }, frameOf('text', { content }, event.at))
      }
      case 'tool.called': {
        const { callId, name, note, input, invalidInput } = event.data
        const known = invalidInput === undefined ? input : undefined
        return silent(withCall(state, callId, { name, note, input: known, shown: false, askedUnknown: false }))
      }
      case 'tool.started': {
        const call = state.calls.get(event.data.callId)
        if (call === undefined) return silent(state)
        if (call.shown) return silent(withChangedInput(state, event.data, call))
        return shown(state, event.data.callId, { ...call, input: event.data.input }, event.at)
      }
      case 'input.required':
        return asked(state, event)
      case 'input.resolved':
        return resolved(state, event)
      case 'tool.done':
        return finished(state, event)
      case 'run.ended':
        return emit(state, ...endFrames(state, event))

      // Not on this wire; listed, so that a new event stops the compiler here and someone decides.
      case 'run.state':
      case 'step.started':
      case 'step.done':
      case 'reasoning.delta':
      case 'message.done':
      case 'tool.progress':
      case 'context.patch':
      case 'run.prepared':
      case 'output.rejected':
      case 'diagnostic':
        return silent(state)
    }
  },

  encode: (frame) => sseFrame(null, null, JSON.stringify(frame.data)),

  encodeDelta(state, event) {
    if (state.textMessageId !== event.data.messageId) return null
    return `data: {"type":"text","content":${JSON.stringify(event.data.text)},"timestamp":${event.at}}\n\n`
  },

  keepAlive: (nowMs, count) =>
    sseFrame(null, null, JSON.stringify(frameOf('heartbeat', { message: 'processing', count }, nowMs).data)),
  keepAliveTiming: { interval: 'sessionHeartbeatMs', whenIdle: false },

  atDecision: 'holds',
}

function frameOf(type: string, fields: Record<string, unknown>, at: number): Frame {
  return { name: type, data: { type, ...fields, timestamp: at } }
}

function withCall(state: SessionState, callId: string, call: Call): SessionState {
  return { ...state, calls: new Map(state.calls).set(callId, call) }
}

/** Once for each call, with the first thing that happens to it. */
function useFrame(callId: string, call: Call, input: JsonValue | undefined, at: number): Frame {
  const { name: tool, note: message } = call
  return frameOf('tool_use', { tool, id: callId, message, ...(input === undefined ? {} : { input }) }, at)
}

function shown(state: SessionState, callId: string, call: Call, at: number): Projection<SessionState> {
  return emit(withCall(state, callId, { ...call, shown: true }), useFrame(callId, call, preview(call.input), at))
}

/** The message of a call that waits for a person says where to decide; its arguments are shown whole. */
function asked(state: SessionState, event: EventOf<'input.required'>): Projection<SessionState> {
  const { callId = event.data.interactionId, interactionId, prompt, input, outcome } = event.data
  const question = event.data.callId === undefined
  const before = state.calls.get(callId)
  const call: Call = {
    name: before?.name ?? questionTool,
    note: question
      ? `Waiting for an answer (${interactionId}): ${prompt}`
      : `Waiting for a decision at /v1/tool-confirmations/${interactionId} (POST …/confirm or …/reject): ${prompt}`,
    input: input ?? before?.input ?? { prompt, options: event.data.options ?? [], fields: event.data.fields ?? [] },
    shown: true,
    askedUnknown: outcome === 'unknown',
  }
  const next = withCall(state, callId, call)
  return before?.shown === true ? silent(next) : emit(next, useFrame(callId, call, call.input, event.at))
}

/** Only questions without a call end here; a call ends with its result. */
function resolved(state: SessionState, event: EventOf<'input.resolved'>): Projection<SessionState> {
  const { interactionId, resolution, response, reason } = event.data
  if (!state.calls.has(interactionId)) return silent(state)
  const good = resolution === 'replied' || resolution === 'confirmed' || resolution === 'auto_decided'
  const said = typeof response === 'string' ? response : response === undefined ? undefined : JSON.stringify(response)
  const result = { status: good ? 'success' : 'failed', message: said ?? reason ?? resolution }
  return emit(state, frameOf('tool_result', { tool_use_id: interactionId, result, is_error: false }, event.at))
}

function withChangedInput(state: SessionState, { callId, input }: EventData<'tool.started'>, call: Call): SessionState {
  const { changedInput: _before, ...same } = call
  const changed = call.input === undefined || sortedJson(input) !== sortedJson(call.input)
  return withCall(state, callId, changed ? { ...same, changedInput: input } : same)
}

function finished(state: SessionState, event: EventOf<'tool.done'>): Projection<SessionState> {
  const { callId } = event.data
  const call = state.calls.get(callId)
  if (call === undefined) return silent(state)
  const frames: Frame[] = call.shown ? [] : [useFrame(callId, call, preview(call.input), event.at)]
  const threw = hasThrown(event.data, call)
  if (threw) {
    const error = event.data.error?.message ?? event.data.summary
    frames.push(frameOf('tool_error', { tool: call.name, error, tool_use_id: callId }, event.at))
  }
  frames.push(
    frameOf('tool_result', { tool_use_id: callId, result: resultOf(event.data, call), is_error: threw }, event.at),
  )
  return emit(withCall(state, callId, { ...call, shown: true }), ...frames)
}

/**
 * An exception that leaves open whether the call happened is one too. A call has the outcome `unknown` without any
 * exception where a person left it at that, or the run ended around it; then it took no time of its own.
 */
function hasThrown({ outcome, durationMs }: EventData<'tool.done'>, call: Call): boolean {
  return outcome === 'threw' || (outcome === 'unknown' && !call.askedUnknown && durationMs > 0)
}

function resultOf(done: EventData<'tool.done'>, { name, changedInput }: Call): Record<string, unknown> {
  return {
    status: done.outcome === 'succeeded' ? 'success' : 'failed',
    message: done.summary,
    ...(changedInput === undefined ? {} : { input: preview(changedInput) }),
    ...(name.startsWith('fs_') ? { modified: done.modified ?? false, paths: done.paths ?? [] } : {}),
  }
}

/** `done` is last, also after `error`. */
function endFrames(state: SessionState, event: EventOf<'run.ended'>): Frame[] {
  const { status, error } = event.data
  const metadata = {
    agentId: state.agentId,
    timestamp: event.at,
    ...(status === 'canceled' ? { cancelled: true } : {}),
  }
  const done: Frame = { name: 'done', data: { type: 'done', metadata } }
  if (status !== 'failed') return [done]
  const fields = {
    error: error?.code === 'run_timed_out' ? 'REQUEST_TIMEOUT' : 'INTERNAL_ERROR',
    message: error?.message ?? 'Internal server error',
  }
  return [frameOf('error', fields, event.at), done]
}

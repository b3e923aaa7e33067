// The wire of the session API: start, text, tool_use, tool_error, tool_result, error,
// done; each message is exactly `data: <JSON>`, without ids and event names. README.md
// has the mapping.
//
// Every tool_use has exactly one tool_result, whatever the outcome of the call. tool_error
// and `is_error` mean that the tool threw; a tool that reported a failure only has
// `status: failed`.

import type { EventData, EventOf, JsonValue } from '../../journal/event.ts'
import { type Call, calledCall, type Calls, ranWithOtherInput, startedCall, withCall, noCalls } from '../calls.ts'
import { type Dialect, emit, type Frame, type Projection, silent } from '../dialect.ts'
import { askedCall, valueText } from '../interactions.ts'
import { addText, type TextState } from '../message-text.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import { preview } from './preview.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'

/** A call is announced with its `tool_use`. */
type SessionCall = Call & {
  /** True if a person was asked whether to run a call with an unknown outcome again. */
  readonly askedUnknown: boolean
}

export type SessionState = TextState & {
  readonly agentId: string
  readonly calls: Calls<SessionCall>
}

export const sessionDialect: Dialect<SessionState> = {
  name: 'session',
  headers: sseHeaders,

  // A run without a conversation is its own session, which cannot be continued.
  open: ({ runId }) => ({ agentId: `agt-${runId}`, textMessageId: null, calls: noCalls }),

  step(state, event) {
    switch (event.type) {
      case 'run.accepted': {
        const agentId = shownConversationIdOrNull(event.data.conversationId) ?? state.agentId
        const isNewSession = event.data.newConversation === true || event.data.conversationId === null
        return emit({ ...state, agentId }, frameOf('start', { agentId, isNewSession }, event.at))
      }
      case 'text.delta': {
        const { state: next, separator } = addText(state, event.data)
        return emit(next, frameOf('text', { content: separator + event.data.text }, event.at))
      }
      case 'tool.called': {
        const { callId, input, invalidInput } = event.data
        const known = invalidInput === undefined ? input : undefined
        return silent(withCall(state, callId, { ...calledCall(event.data), input: known, askedUnknown: false }))
      }
      case 'tool.started': {
        const { callId } = event.data
        const before = state.calls.get(callId)
        if (before === undefined) return silent(state)
        const call = { ...startedCall(before, event), announced: true }
        const next = withCall(state, callId, call)
        return before.announced ? silent(next) : emit(next, useFrame(callId, call, preview(call.input), event.at))
      }
      case 'input.required':
        return askedFrames(state, event)
      case 'input.resolved':
        return resolvedFrames(state, event)
      case 'tool.done':
        return resultFrames(state, event)
      case 'run.ended':
        return emit(state, ...endFrames(state, event))

      // No message on this wire. Listed without a default, so that a new event type is a compile error here.
      case 'run.state':
      case 'step.started':
      case 'step.done':
      case 'reasoning.delta':
      case 'source.found':
      case 'message.done':
      case 'tool.progress':
      case 'context.patch':
      case 'run.prepared':
      case 'output.rejected':
      case 'answer.discarded':
      case 'context.cut':
      case 'context.summarised':
      case 'engine.handle':
      case 'diagnostic':
        return silent(state)
    }
  },

  encode: (frame) => sseFrame(null, null, JSON.stringify(frame.data)),

  encodeDelta(state, { at, messageId, textJson }) {
    if (state.textMessageId !== messageId) return null
    return `data: {"type":"text","content":${textJson},"timestamp":${at}}\n\n`
  },

  keepAlive: (nowMs, count) =>
    sseFrame(null, null, JSON.stringify(frameOf('heartbeat', { message: 'processing', count }, nowMs).data)),
  keepAliveTiming: { interval: 'sessionHeartbeatMs', whenIdle: false },

  atDecision: 'holds',
}

function frameOf(type: string, fields: Record<string, unknown>, at: number): Frame {
  return { name: type, data: { type, ...fields, timestamp: at } }
}

/** Sent once per call, before the first other frame about it. */
function useFrame(callId: string, call: Call, input: JsonValue | undefined, at: number): Frame {
  const { name: tool, note: message } = call
  return frameOf('tool_use', { tool, id: callId, message, ...(input === undefined ? {} : { input }) }, at)
}

/** For a call that waits for a person: the message contains the address at which to decide, and the input is not cut. */
function askedFrames(state: SessionState, event: EventOf<'input.required'>): Projection<SessionState> {
  const { callId, call, wasAnnounced } = askedCall(state.calls, event)
  const next = withCall(state, callId, { ...call, askedUnknown: event.data.outcome === 'unknown' })
  return wasAnnounced ? silent(next) : emit(next, useFrame(callId, call, call.input, event.at))
}

/** Ends questions without a call. A real call ends with its result (`tool.done`). */
function resolvedFrames(state: SessionState, event: EventOf<'input.resolved'>): Projection<SessionState> {
  const { interactionId, resolution, response, reason } = event.data
  if (!state.calls.has(interactionId)) return silent(state)
  const good = resolution === 'replied' || resolution === 'confirmed' || resolution === 'auto_decided'
  const result = { status: good ? 'success' : 'failed', message: valueText(response) ?? reason ?? resolution }
  return emit(state, frameOf('tool_result', { tool_use_id: interactionId, result, is_error: false }, event.at))
}

function resultFrames(state: SessionState, event: EventOf<'tool.done'>): Projection<SessionState> {
  const { callId } = event.data
  const call = state.calls.get(callId)
  if (call === undefined) return silent(state)
  const frames: Frame[] = call.announced ? [] : [useFrame(callId, call, preview(call.input), event.at)]
  const threw = hasThrown(event.data, call)
  if (threw) {
    const error = event.data.error?.message ?? event.data.summary
    frames.push(frameOf('tool_error', { tool: call.name, error, tool_use_id: callId }, event.at))
  }
  frames.push(
    frameOf('tool_result', { tool_use_id: callId, result: resultOf(event.data, call), is_error: threw }, event.at),
  )
  return emit(withCall(state, callId, { ...call, announced: true }), ...frames)
}

/**
 * True if the tool threw, also if it is unknown whether the call took effect. An `unknown` outcome without an exception
 * comes from a person who left it unresolved, or from the end of the run; in both cases the duration is 0.
 */
function hasThrown({ outcome, durationMs }: EventData<'tool.done'>, call: SessionCall): boolean {
  return outcome === 'threw' || (outcome === 'unknown' && !call.askedUnknown && durationMs > 0)
}

function resultOf(done: EventData<'tool.done'>, call: SessionCall): Record<string, unknown> {
  return {
    status: done.outcome === 'succeeded' ? 'success' : 'failed',
    message: done.summary,
    ...(ranWithOtherInput(call) ? { input: preview(call.ranWith) } : {}),
    ...(call.name.startsWith('fs_') ? { modified: done.modified ?? false, paths: done.paths ?? [] } : {}),
  }
}

/** `done` is always the last frame, even after `error`. */
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

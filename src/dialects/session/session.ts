// The wire of the session API: start, text, tool_use, tool_error, tool_result, error,
// done; each message is exactly `data: <JSON>`, without ids and event names. README.md
// has the mapping.
//
// Every tool_use has one tool_result, whatever became of the call. tool_error and
// `is_error` mean that the tool threw; a tool that answered no has `status: failed` only.

import type { EventData, EventOf, JsonValue } from '../../journal/event.ts'
import { type Call, calledCall, type Calls, ranWithOtherInput, startedCall, withCall } from '../calls.ts'
import { type Dialect, emit, type Frame, type Projection, silent } from '../dialect.ts'
import { askedCall, valueText } from '../interactions.ts'
import { addText, type TextState } from '../message-text.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import { preview } from './preview.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'

/** A call is announced with its `tool_use`. */
type SessionCall = Call & {
  /** A person was asked whether a call that may have happened is to be run again. */
  readonly askedUnknown: boolean
}

export type SessionState = TextState & {
  readonly agentId: string
  readonly calls: Calls<SessionCall>
}

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

/** Once for each call, with the first thing that happens to it. */
function useFrame(callId: string, call: Call, input: JsonValue | undefined, at: number): Frame {
  const { name: tool, note: message } = call
  return frameOf('tool_use', { tool, id: callId, message, ...(input === undefined ? {} : { input }) }, at)
}

/** The message of a call that waits for a person says where to decide; its arguments are shown whole. */
function asked(state: SessionState, event: EventOf<'input.required'>): Projection<SessionState> {
  const { callId, call, wasAnnounced } = askedCall(state.calls, event)
  const next = withCall(state, callId, { ...call, askedUnknown: event.data.outcome === 'unknown' })
  return wasAnnounced ? silent(next) : emit(next, useFrame(callId, call, call.input, event.at))
}

/** Only questions without a call end here; a call ends with its result. */
function resolved(state: SessionState, event: EventOf<'input.resolved'>): Projection<SessionState> {
  const { interactionId, resolution, response, reason } = event.data
  if (!state.calls.has(interactionId)) return silent(state)
  const good = resolution === 'replied' || resolution === 'confirmed' || resolution === 'auto_decided'
  const result = { status: good ? 'success' : 'failed', message: valueText(response) ?? reason ?? resolution }
  return emit(state, frameOf('tool_result', { tool_use_id: interactionId, result, is_error: false }, event.at))
}

function finished(state: SessionState, event: EventOf<'tool.done'>): Projection<SessionState> {
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
 * An exception that leaves open whether the call happened is one too. A call has the outcome `unknown` without any
 * exception where a person left it at that, or the run ended around it; then it took no time of its own.
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

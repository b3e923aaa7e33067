// The wire of the chat API: chunk, tool_start, tool_output, tool_end, error, done. Each
// frame is one JSON object with a `type` and only the fields that README.md lists. The
// framing is SSE by default, or one JSON object per line (NDJSON).
//
// Options decide which frames are sent, but never change the address of a frame. A dialect
// with other options has another name, because readers of dialects with the same name
// share encoded bytes.

import { cancelledStatus, statusOfErrorCode } from '../../errors/status.ts'
import type { EventData, EventOf, ToolOutcome } from '../../journal/event.ts'
import { isoTime } from '../../kit/clock.ts'
import { sortedJson } from '../../kit/sorted-json.ts'
import { type Call, calledCall, type Calls, latestInput, startedCall, withCall, noCalls } from '../calls.ts'
import { type Dialect, emit, type Frame, pingTiming, type Projection, silent } from '../dialect.ts'
import { askedCall, valueText } from '../interactions.ts'
import { addText, type TextState } from '../message-text.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'

export type ChunksOptions = {
  /** False: no `chunk` frames. */
  agentSteps?: boolean
  /** False: no tool frames, except for calls that wait for a person; without those the stream would just go silent. */
  toolSteps?: boolean
  /** Outputs longer than this are cut; null: never. */
  outputChars?: number | null
  framing?: Framing
}

export type Framing = 'sse' | 'ndjson'

/** A call is announced with its `tool_start`. */
export type ChunksState = TextState & {
  readonly runId: string
  readonly conversationId: string | null
  readonly calls: Calls
}

export const outputCharsDefault = 800

export const statusOfOutcome: Readonly<Record<ToolOutcome, string>> = {
  succeeded: 'success',
  failed: 'error',
  threw: 'error',
  denied: 'denied',
  cancelled: 'cancelled',
  unknown: 'unknown',
}

export function chunksDialect(options: ChunksOptions = {}): Dialect<ChunksState> {
  const { agentSteps = true, toolSteps = true, outputChars = outputCharsDefault, framing = 'sse' } = options
  const toolOptions: ToolFrameOptions = { toolSteps, outputChars }
  const nameParts = [
    framing === 'sse' ? 'chunks' : 'chunks-ndjson',
    agentSteps ? '' : 'no-agent-steps',
    toolSteps ? '' : 'no-tool-steps',
    outputChars === outputCharsDefault ? '' : `output-${outputChars ?? 'whole'}`,
  ]
  return {
    name: nameParts.filter((part) => part !== '').join('.'),
    headers: framing === 'sse' ? sseHeaders : { ...sseHeaders, 'content-type': 'application/x-ndjson; charset=utf-8' },

    open: ({ runId }) => ({ runId, conversationId: null, textMessageId: null, calls: noCalls }),

    step(state, event) {
      switch (event.type) {
        case 'run.accepted':
          return silent({ ...state, conversationId: shownConversationIdOrNull(event.data.conversationId) })
        case 'text.delta': {
          if (!agentSteps) return silent(state)
          const { state: next, separator } = addText(state, event.data)
          const content = separator + event.data.text
          return emit(next, frameOf('chunk', { content, conversation_id: state.conversationId }))
        }
        case 'tool.called':
          return silent(withCall(state, event.data.callId, calledCall(event.data)))
        case 'tool.started':
          return startedFrames(state, event, toolOptions)
        case 'input.required':
          return askedFrames(state, event, toolOptions)
        case 'input.resolved':
          return resolvedFrames(state, event, toolOptions)
        case 'tool.done':
          return resultFrames(state, event, toolOptions)
        case 'run.ended':
          return emit(state, endingFrame(state, event.data))

        // No frame on this wire. Listed without a default, so that a new event type is a compile error here.
        case 'run.prepared':
        case 'run.state':
        case 'step.started':
        case 'step.done':
        case 'reasoning.delta':
        case 'source.found':
        case 'message.done':
        case 'tool.progress':
        case 'context.patch':
        case 'output.rejected':
        case 'answer.discarded':
        case 'context.cut':
        case 'context.summarised':
        case 'engine.handle':
        case 'diagnostic':
          return silent(state)
      }
    },

    encode(frame, address) {
      return encodeJson(framing, address, JSON.stringify(frame.data))
    },

    encodeDelta(state, { seq, messageId, textJson }) {
      if (!agentSteps || state.textMessageId !== messageId) return null
      const json = `{"type":"chunk","content":${textJson},"conversation_id":${JSON.stringify(state.conversationId)}}`
      return framing === 'sse' ? `id: ${seq}\ndata: ${json}\n\n` : `${json}\n`
    },

    keepAlive: () => (framing === 'sse' ? ': keep-alive\n\n' : '\n'),
    keepAliveTiming: pingTiming,

    atDecision: 'holds',
  }
}

/** `id` is null for the frame of a stream without a run. */
export function encodeJson(framing: Framing, id: string | null, json: string): string {
  return framing === 'sse' ? sseFrame(id, null, json) : `${json}\n`
}

type ToolFrameOptions = { toolSteps: boolean; outputChars: number | null }

function frameOf(type: string, fields: Record<string, unknown>): Frame {
  return { name: type, data: { type, ...fields } }
}

/** Sent once per call, before the first other frame about it. */
function startFrame(callId: string, call: Call, at: number): Frame {
  return frameOf('tool_start', {
    tool_call_id: callId,
    tool_name: call.name,
    tool_args: call.input,
    timestamp: isoTime(at),
  })
}

/** A call has one tool_start. If a person changed the arguments after it, a tool_output shows the new arguments. */
function startedFrames(
  state: ChunksState,
  event: EventOf<'tool.started'>,
  options: ToolFrameOptions,
): Projection<ChunksState> {
  const { callId, input } = event.data
  const before = state.calls.get(callId)
  if (before === undefined) return silent(state)
  const call = { ...startedCall(before, event), announced: before.announced || options.toolSteps }
  const next = withCall(state, callId, call)
  if (before.announced) {
    if (sortedJson(input) === sortedJson(latestInput(before))) return silent(next)
    const sentence = `Runs with changed arguments: ${JSON.stringify(input)}`
    return emit(next, outputFrame(callId, sentence, sentence.length, options.outputChars))
  }
  return options.toolSteps ? emit(next, startFrame(callId, call, event.at)) : silent(next)
}

/** A call that waits for a person gets a tool_output that contains the address at which the person decides. */
function askedFrames(
  state: ChunksState,
  event: EventOf<'input.required'>,
  options: ToolFrameOptions,
): Projection<ChunksState> {
  const { callId, call, wasAnnounced } = askedCall(state.calls, event)
  return emit(
    withCall(state, callId, call),
    ...(wasAnnounced ? [] : [startFrame(callId, call, event.at)]),
    outputFrame(callId, call.note, call.note.length, options.outputChars),
  )
}

/** Ends questions without a call. A real call ends with its result (`tool.done`). */
function resolvedFrames(
  state: ChunksState,
  event: EventOf<'input.resolved'>,
  options: ToolFrameOptions,
): Projection<ChunksState> {
  const { interactionId, resolution, response } = event.data
  const call = state.calls.get(interactionId)
  if (call === undefined) return silent(state)
  const text = valueText(response) ?? resolution
  const status =
    resolution === 'closed' ? 'cancelled' : resolution === 'rejected' || resolution === 'expired' ? 'denied' : 'success'
  return emit(
    state,
    outputFrame(interactionId, text, text.length, options.outputChars),
    callEndFrame(interactionId, status, event.at - (call.startedAt ?? event.at)),
  )
}

function resultFrames(
  state: ChunksState,
  event: EventOf<'tool.done'>,
  options: ToolFrameOptions,
): Projection<ChunksState> {
  const { callId, outcome, truncated, fullLength } = event.data
  const call = state.calls.get(callId)
  if (call === undefined || (!options.toolSteps && !call.announced)) return silent(state)
  const text = valueText(event.data.output) ?? event.data.error?.message ?? event.data.summary
  return emit(
    withCall(state, callId, { ...call, announced: true }),
    ...(call.announced ? [] : [startFrame(callId, call, event.at)]),
    outputFrame(callId, text, truncated ? fullLength : text.length, options.outputChars),
    callEndFrame(callId, statusOfOutcome[outcome], durationOf(event, call)),
  )
}

function outputFrame(callId: string, text: string, fullLength: number, charsMax: number | null): Frame {
  const output = charsMax === null || text.length <= charsMax ? text : cut(text, charsMax)
  return frameOf('tool_output', {
    tool_call_id: callId,
    output,
    truncated: output !== text || fullLength > text.length,
    full_length: fullLength,
  })
}

function callEndFrame(callId: string, status: string, durationMs: number): Frame {
  return frameOf('tool_end', { tool_call_id: callId, status, duration_ms: durationMs })
}

/** Cuts to at most `charsMax` characters, dots included; never splits a surrogate pair. */
function cut(text: string, charsMax: number): string {
  const kept = text.slice(0, charsMax - 3)
  return `${(/[\ud800-\udbff]$/.test(kept) ? kept.slice(0, -1) : kept).trimEnd()}...`
}

/** A call that was stopped has no recorded duration, so it is measured from its start to this event. */
function durationOf(event: EventOf<'tool.done'>, call: Call): number {
  const stopped = event.data.outcome === 'cancelled' || event.data.outcome === 'unknown'
  return stopped && event.data.durationMs === 0 && call.startedAt !== undefined
    ? Math.max(0, event.at - call.startedAt)
    : event.data.durationMs
}

function endingFrame(state: ChunksState, ended: EventData<'run.ended'>): Frame {
  switch (ended.status) {
    case 'succeeded':
      return frameOf('done', {
        conversation_id: state.conversationId,
        message_id: ended.messageId ?? null,
        trace_id: state.runId,
      })
    case 'failed': {
      const code = ended.error?.code ?? 'internal_error'
      return frameOf('error', {
        status: statusOfErrorCode(code),
        message: ended.error?.message ?? 'The run failed.',
        code,
      })
    }
    case 'canceled':
      return frameOf('error', { status: cancelledStatus, message: cancelSentence(ended.reason), code: 'cancelled' })
  }
}

function cancelSentence(reason: string | undefined): string {
  return reason === undefined || reason === '' ? 'The answer was cancelled.' : `The answer was cancelled: ${reason}`
}

// The wire of `format=vercel-ai`: version 1 of the AI SDK's data stream, one
// `CODE:JSON` line a frame, for the clients of AI SDK 3.3 and 4. README.md beside
// this file has the mapping table and the reasons.
//
// What must stay true: only `3:` makes the real client throw, every `f:` of a run
// names the same message, and after no event does the stream look like finished
// tool calls that wait for an answer, since the client would then post again.

import type { EventOf, JsonValue } from '../../journal/event.ts'
import { type Call, type Calls, latestInput, startedCall, unannouncedCall, withCall } from '../calls.ts'
import { type Dialect, emit, type Frame, pingTiming, type Projection, silent } from '../dialect.ts'
import { addText, type TextState } from '../message-text.ts'
import {
  argsOf,
  codes,
  finishReasonOf,
  type PartName,
  resultOf,
  sameJson,
  sumOf,
  type Tokens,
  tokensOf,
} from './line-values.ts'

/** A call is announced with its `9:`. */
type DataStreamCall = Call & { readonly done: boolean }

type OpenStep = {
  /** A step that had calls is followed by another `f:` at once; see `closeStep`. */
  readonly hadCalls: boolean
  readonly openCalls: number
  readonly reasoningId: string | null
  /** What the model's part of the step ended with; its `e:` waits for the results of its calls. */
  readonly finish: { readonly reason: string; readonly tokens: Tokens | null } | null
}

type VercelDataState = TextState & {
  readonly runId: string
  /** Of every `f:`: the first message of the run. Null before the first step. */
  readonly messageId: string | null
  readonly step: OpenStep | null
  readonly calls: Calls<DataStreamCall>
  readonly finishReason: string
  readonly tokens: Tokens | null
}

const freshStep: OpenStep = { hadCalls: false, openCalls: 0, reasoningId: null, finish: null }

export const vercelDataDialect: Dialect<VercelDataState> = {
  name: 'vercel-ai',
  headers: {
    'content-type': 'text/plain; charset=utf-8',
    'x-vercel-ai-data-stream': 'v1',
    'cache-control': 'no-cache, no-transform',
    connection: 'keep-alive',
    'x-accel-buffering': 'no',
  },

  open: ({ runId }) => ({
    runId,
    messageId: null,
    step: null,
    calls: new Map(),
    textMessageId: null,
    finishReason: 'unknown',
    tokens: null,
  }),

  step(state, event) {
    switch (event.type) {
      case 'context.patch':
        return contextFrames(state, event)
      case 'step.started':
        return openStep(state, event.data.messageId)
      case 'text.delta':
        return textFrames(state, event)
      case 'reasoning.delta':
        return reasoningFrames(state, event)
      case 'tool.called':
        return callFrames(state, event.data.callId, event.data.name, event.data.input)
      case 'step.done':
        return stepDoneFrames(state, event)
      case 'input.required':
        return awaitingFrames(state, event)
      case 'tool.started':
        return startedFrames(state, event)
      case 'tool.done':
        return resultFrames(state, event)
      case 'run.ended':
        return endFrames(state, event)

      // No line on this wire. Listed, not defaulted, so that a new event stops the
      // compiler here and someone decides.
      case 'run.accepted':
      case 'run.prepared':
      case 'run.state':
      case 'message.done':
      case 'tool.progress':
      case 'input.resolved':
      case 'output.rejected':
      case 'diagnostic':
        return silent(state)
    }
  },

  /** Lines carry no ids, so the address is not shown; cursors are journal addresses all the same. */
  encode(frame) {
    return `${codes[frame.name as PartName]}:${JSON.stringify(frame.data)}\n`
  },

  encodeDelta(state, event) {
    if (state.step === null || state.textMessageId !== event.data.messageId) return null
    return `0:${JSON.stringify(event.data.text)}\n`
  },

  /** A bare newline is the only thing that the client skips; a comment or an unknown code makes it throw. */
  keepAlive: () => '\n',
  keepAliveTiming: pingTiming,

  atDecision: 'holds',
}

function frame(name: PartName, data: unknown): Frame {
  return { name, data }
}

/** Adds the frames of `next` to those of `before`, from the state that `before` left. */
function then(
  before: Projection<VercelDataState>,
  next: (state: VercelDataState) => Projection<VercelDataState>,
): Projection<VercelDataState> {
  const after = next(before.state)
  return { state: after.state, frames: [...before.frames, ...after.frames] }
}

/** `f:`, unless the step is open: because it is asked again after a restart, or because `closeStep` opened it ahead. */
function openStep(state: VercelDataState, messageId: string): Projection<VercelDataState> {
  if (state.step !== null) return silent(state)
  const named = state.messageId ?? messageId
  return emit({ ...state, messageId: named, step: freshStep }, frame('start_step', { messageId: named }))
}

/**
 * `e:`, and for a step with tool calls the next `f:` in the same breath. The client posts the conversation again when
 * all calls after the last `f:` have results and the stream is over, however it ended; our tools run on the server, so
 * that would start a second run. With the next step open there is no such moment, also if the connection is cut.
 */
function closeStep(state: VercelDataState, reason: string, tokens: Tokens | null): Projection<VercelDataState> {
  if (state.step === null) return silent(state)
  const finish = frame('finish_step', {
    finishReason: reason,
    ...(tokens === null ? {} : { usage: tokens }),
    isContinued: false,
  })
  if (!state.step.hadCalls) return emit({ ...state, step: null }, finish)
  return emit({ ...state, step: freshStep }, finish, frame('start_step', { messageId: state.messageId }))
}

function contextFrames(state: VercelDataState, event: EventOf<'context.patch'>): Projection<VercelDataState> {
  const { conversationId } = event.data.patch
  if (event.data.layer !== 'session' || typeof conversationId !== 'string' || conversationId === '')
    return silent(state)
  return emit(state, frame('data', [{ type: 'conversation.created', conversationId }]))
}

/** The client's `message.content` is the text of all steps in a row, so a blank line keeps them apart. */
function textFrames(state: VercelDataState, event: EventOf<'text.delta'>): Projection<VercelDataState> {
  return then(openStep(state, event.data.messageId), (opened) => {
    const { state: next, separator } = addText(opened, event.data)
    return emit(next, ...(separator === '' ? [] : [frame('text', separator)]), frame('text', event.data.text))
  })
}

/** The client has one reasoning text a step; thoughts that a restart thought anew come after a blank line. */
function reasoningFrames(state: VercelDataState, event: EventOf<'reasoning.delta'>): Projection<VercelDataState> {
  const { reasoningId, text } = event.data
  return then(openStep(state, state.runId), (opened) => {
    const step = opened.step ?? freshStep
    const other = step.reasoningId !== null && step.reasoningId !== reasoningId
    const next = { ...opened, step: { ...step, reasoningId } }
    return other
      ? emit(next, frame('reasoning', '\n\n'), frame('reasoning', text))
      : emit(next, frame('reasoning', text))
  })
}

/** `9:` once a call: the client takes a second one for another call. */
function callFrames(
  state: VercelDataState,
  callId: string,
  name: string,
  input: JsonValue | undefined,
): Projection<VercelDataState> {
  if (state.calls.has(callId)) return silent(state)
  return then(openStep(state, state.runId), (opened) => {
    const step = opened.step ?? freshStep
    const call = { ...unannouncedCall(name, input), announced: true, done: false }
    return emit(
      { ...withCall(opened, callId, call), step: { ...step, hadCalls: true, openCalls: step.openCalls + 1 } },
      frame('tool_call', { toolCallId: callId, toolName: name, args: argsOf(input) }),
    )
  })
}

/**
 * Lines about a call come after its `9:`, or the client throws. The journal always has one, but a row that no longer
 * fits its schema is skipped in reading; then the call is announced when it is first heard of, since a person should
 * see what ran and can only decide about what is shown.
 */
function announced(state: VercelDataState, callId: string, input?: JsonValue): Projection<VercelDataState> {
  return callFrames(state, callId, 'unknown', input)
}

function awaitingFrames(state: VercelDataState, event: EventOf<'input.required'>): Projection<VercelDataState> {
  const { callId, interactionId, prompt, input, outcome } = event.data
  if (callId === undefined) {
    const { kind, style, options, fields } = event.data
    const question = {
      type: 'input.required',
      interactionId,
      kind: style ?? kind,
      message: prompt,
      options: options ?? [],
    }
    return asked(state, fields === undefined ? question : { ...question, fields })
  }
  return then(announced(state, callId, input), (known) => {
    const call = known.calls.get(callId)
    return asked(known, {
      type: 'tool.awaiting_input',
      toolCallId: callId,
      toolName: call?.name,
      confirmationId: interactionId,
      input: input ?? (call === undefined ? undefined : argsOf(call.input)),
      message: prompt,
      ...(outcome === undefined ? {} : { outcome }),
    })
  })
}

/** As data for whoever listens now, and as an annotation that stays with the message. */
function asked(state: VercelDataState, item: object): Projection<VercelDataState> {
  return emit(state, frame('data', [item]), frame('message_annotations', [item]))
}

function startedFrames(state: VercelDataState, event: EventOf<'tool.started'>): Projection<VercelDataState> {
  const { callId, input } = event.data
  return then(announced(state, callId, input), (known) => {
    const call = known.calls.get(callId)
    return silent(call === undefined ? known : withCall(known, callId, startedCall(call, event)))
  })
}

function resultFrames(state: VercelDataState, event: EventOf<'tool.done'>): Projection<VercelDataState> {
  const { callId } = event.data
  const result = then(announced(state, callId), (known) => {
    const call = known.calls.get(callId)
    if (call === undefined || call.done) return silent(known)
    const { step } = known
    return emit(
      {
        ...withCall(known, callId, { ...call, done: true }),
        step: step === null ? null : { ...step, openCalls: Math.max(0, step.openCalls - 1) },
      },
      frame('tool_result', {
        toolCallId: callId,
        // The client lays these over the arguments of the `9:`, so an edited call shows what really ran.
        ...(sameJson(argsOf(call.input), argsOf(latestInput(call))) ? {} : { args: argsOf(latestInput(call)) }),
        result: resultOf(event.data),
      }),
    )
  })
  return then(result, closeFinishedStep)
}

function closeFinishedStep(state: VercelDataState): Projection<VercelDataState> {
  const { step } = state
  if (step === null || step.finish === null || step.openCalls > 0) return silent(state)
  return closeStep(state, step.finish.reason, step.finish.tokens)
}

function stepDoneFrames(state: VercelDataState, event: EventOf<'step.done'>): Projection<VercelDataState> {
  const { finishReason, usage, messageId } = event.data
  const reason = finishReasonOf(finishReason)
  const tokens = tokensOf(usage)
  return then(openStep(state, messageId), (opened) =>
    closeFinishedStep({
      ...opened,
      step: { ...(opened.step ?? freshStep), finish: { reason, tokens } },
      finishReason: reason,
      tokens: sumOf(opened.tokens, tokens),
    }),
  )
}

function endFrames(state: VercelDataState, event: EventOf<'run.ended'>): Projection<VercelDataState> {
  const { status, error } = event.data
  const reason = status === 'succeeded' ? state.finishReason : status === 'failed' ? 'error' : 'other'
  const finish = frame('finish_message', {
    finishReason: reason,
    ...(state.tokens === null ? {} : { usage: state.tokens }),
  })
  // Twice, since closing a step with calls opens the empty one that keeps the client from posting again.
  const closed = then(closeOpenStep(state, reason), (left) => closeOpenStep(left, reason))
  return then(closed, (left) =>
    status === 'failed' ? emit(left, frame('error', error?.message ?? 'The run failed.'), finish) : emit(left, finish),
  )
}

function closeOpenStep(state: VercelDataState, reason: string): Projection<VercelDataState> {
  return closeStep(state, state.step?.finish?.reason ?? reason, state.step?.finish?.tokens ?? null)
}

// The wire of `format=vercel-ai`: version 1 of the AI SDK's data stream, one
// `CODE:JSON` line a frame, for the clients of AI SDK 3.3 and 4. README.md beside
// this file has the mapping table and the reasons.
//
// What must stay true: only `3:` makes the real client throw; every `f:` of a run names the
// same message; and the stream never stops at a point where all tool calls have results and
// no new step is open, because the client would then post the conversation again.

import type { EventOf, JsonValue } from '../../journal/event.ts'
import { type Call, type Calls, latestInput, startedCall, unannouncedCall, withCall, noCalls } from '../calls.ts'
import {
  type Dialect,
  emit,
  endsStream,
  type Frame,
  inSequence,
  pingTiming,
  type Projection,
  silent,
} from '../dialect.ts'
import { addText, type TextState } from '../message-text.ts'
import {
  argsOf,
  codes,
  finishReasonOf,
  type PartName,
  toolResultOf,
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
  /** How the model finished the step. The `e:` is sent only after the results of the step's calls. */
  readonly finish: { readonly reason: string; readonly tokens: Tokens | null } | null
}

type VercelDataState = TextState & {
  readonly runId: string
  /** The message id in every `f:`, which is the run's first message. Null before the first step. */
  readonly messageId: string | null
  readonly step: OpenStep | null
  readonly calls: Calls<DataStreamCall>
  /** The calls that had no result when the stream ended for the client's tools. */
  readonly parkedCalls: number
  readonly finishReason: string
  readonly tokens: Tokens | null
}

const freshStep: OpenStep = { hadCalls: false, openCalls: 0, reasoningId: null, finish: null }

/** The client posts the result of its own tool only after the stream has ended. A confirmation comes by another request. */
const ending = { atDecision: 'parks_for_client' } as const

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
    calls: noCalls,
    parkedCalls: 0,
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
      case 'source.found':
        return sourceFrames(state, event)
      case 'tool.called':
        return callFrames(state, event.data.callId, event.data.name, event.data.input)
      case 'step.done':
        return stepDoneFrames(state, event)
      case 'answer.discarded':
        return silent({ ...state, tokens: sumOf(state.tokens, tokensOf(event.data.usage)) })
      case 'input.required':
        return awaitingFrames(state, event)
      case 'tool.started':
        return startedFrames(state, event)
      case 'tool.done':
        return resultFrames(state, event)
      case 'run.state':
        return endsStream(ending, event) ? parkedFrames(state) : silent(state)
      case 'run.ended':
        return endFrames(state, event)

      // No line on this wire. Listed without a default, so that a new event type is a
      // compile error here.
      case 'run.accepted':
      case 'run.prepared':
      case 'message.done':
      case 'tool.progress':
      case 'input.resolved':
      case 'output.rejected':
      case 'context.cut':
      case 'context.summarised':
      case 'engine.handle':
      case 'diagnostic':
        return silent(state)
    }
  },

  /** Lines have no ids, so the address is not written; readers still resume with journal addresses. */
  encode(frame) {
    return `${codes[frame.name as PartName]}:${JSON.stringify(frame.data)}\n`
  },

  encodeDelta(state, { messageId, textJson }) {
    if (state.step === null || state.textMessageId !== messageId) return null
    return `0:${textJson}\n`
  },

  /** A bare newline is the only thing that the client skips; a comment or an unknown code makes it throw. */
  keepAlive: () => '\n',
  keepAliveTiming: pingTiming,

  ...ending,
}

function frame(name: PartName, data: unknown): Frame {
  return { name, data }
}

/** `f:`, unless the step is already open: after a restart that repeats the step, or because `closeStep` opened it. */
function openStep(state: VercelDataState, messageId: string): Projection<VercelDataState> {
  if (state.step !== null) return silent(state)
  const named = state.messageId ?? messageId
  return emit({ ...state, messageId: named, step: freshStep }, frame('start_step', { messageId: named }))
}

/**
 * `e:`, and directly after it the next `f:` if the step had tool calls. The client posts the conversation again if the
 * stream ends, for any reason, when all calls after the last `f:` have results. Our tools run on the server, so that
 * would start a second run. An open next step prevents this even if the connection is cut.
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

/** The client concatenates the text of all steps in `message.content`, so a blank line separates them. */
function textFrames(state: VercelDataState, event: EventOf<'text.delta'>): Projection<VercelDataState> {
  return inSequence(
    state,
    (next) => openStep(next, event.data.messageId),
    (opened) => {
      const { state: next, separator } = addText(opened, event.data)
      return emit(next, ...(separator === '' ? [] : [frame('text', separator)]), frame('text', event.data.text))
    },
  )
}

/** The client has one reasoning text per step; reasoning that is repeated after a restart follows a blank line. */
function reasoningFrames(state: VercelDataState, event: EventOf<'reasoning.delta'>): Projection<VercelDataState> {
  const { reasoningId, text } = event.data
  return inSequence(
    state,
    (next) => openStep(next, state.runId),
    (opened) => {
      const step = opened.step ?? freshStep
      const other = step.reasoningId !== null && step.reasoningId !== reasoningId
      const next = { ...opened, step: { ...step, reasoningId } }
      return other
        ? emit(next, frame('reasoning', '\n\n'), frame('reasoning', text))
        : emit(next, frame('reasoning', text))
    },
  )
}

/** `h:`. This wire has only sources with an address. */
function sourceFrames(state: VercelDataState, event: EventOf<'source.found'>): Projection<VercelDataState> {
  const { messageId, sourceId, url, title } = event.data
  if (url === undefined) return silent(state)
  const source = { sourceType: 'url', id: sourceId, url, ...(title === undefined ? {} : { title }) }
  return inSequence(
    state,
    (next) => openStep(next, messageId),
    (opened) => emit(opened, frame('source', source)),
  )
}

/** `9:`, sent once per call, because the client treats a second one as another call. */
function callFrames(
  state: VercelDataState,
  callId: string,
  name: string,
  input: JsonValue | undefined,
): Projection<VercelDataState> {
  if (state.calls.has(callId)) return silent(state)
  return inSequence(
    state,
    (next) => openStep(next, state.runId),
    (opened) => {
      const step = opened.step ?? freshStep
      const call = { ...unannouncedCall(name, input), announced: true, done: false }
      return emit(
        { ...withCall(opened, callId, call), step: { ...step, hadCalls: true, openCalls: step.openCalls + 1 } },
        frame('tool_call', { toolCallId: callId, toolName: name, args: argsOf(input) }),
      )
    },
  )
}

/**
 * Sends the `9:` if it is missing, because the client throws on a line about an unknown call. The journal always has a
 * `tool.called`, but a row that no longer matches its schema is skipped when reading. The call is then announced with
 * its next event, so that a person can see it and decide about it.
 */
function announceCall(state: VercelDataState, callId: string, input?: JsonValue): Projection<VercelDataState> {
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
    return askFrames(state, fields === undefined ? question : { ...question, fields })
  }
  return inSequence(
    state,
    (next) => announceCall(next, callId, input),
    (known) => {
      // The client executes the call because its `9:` has no result; it needs no other line.
      if (event.data.kind === 'client_tool') return silent(known)
      const call = known.calls.get(callId)
      return askFrames(known, {
        type: 'tool.awaiting_input',
        toolCallId: callId,
        toolName: call?.name,
        confirmationId: interactionId,
        input: input ?? (call === undefined ? undefined : argsOf(call.input)),
        message: prompt,
        ...(outcome === undefined ? {} : { outcome }),
      })
    },
  )
}

/** Sent twice: as data for live listeners, and as an annotation that the client keeps with the message. */
function askFrames(state: VercelDataState, item: object): Projection<VercelDataState> {
  return emit(state, frame('data', [item]), frame('message_annotations', [item]))
}

function startedFrames(state: VercelDataState, event: EventOf<'tool.started'>): Projection<VercelDataState> {
  const { callId, input } = event.data
  return inSequence(
    state,
    (next) => announceCall(next, callId, input),
    (known) => {
      const call = known.calls.get(callId)
      return silent(call === undefined ? known : withCall(known, callId, startedCall(call, event)))
    },
  )
}

function resultFrames(state: VercelDataState, event: EventOf<'tool.done'>): Projection<VercelDataState> {
  const { callId } = event.data
  const showResult = (known: VercelDataState) => {
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
        // These replace the arguments of the `9:` in the client, so an edited call shows the arguments that it ran with.
        ...(sameJson(argsOf(call.input), argsOf(latestInput(call))) ? {} : { args: argsOf(latestInput(call)) }),
        result: toolResultOf(event.data),
      }),
    )
  }
  return inSequence(state, (next) => announceCall(next, callId), showResult, closeFinishedStep, openStepAfterParked)
}

/** An `f:` after the last result of a step that was closed for the client's tools, for the reason that `closeStep` gives. */
function openStepAfterParked(state: VercelDataState): Projection<VercelDataState> {
  if (state.parkedCalls === 0) return silent(state)
  const parkedCalls = state.parkedCalls - 1
  const next = { ...state, parkedCalls }
  return parkedCalls > 0 ? silent(next) : openStep(next, state.runId)
}

function closeFinishedStep(state: VercelDataState): Projection<VercelDataState> {
  const { step } = state
  if (step === null || step.openCalls > 0) return silent(state)
  // The provider ran the calls itself and goes on with its answer: the client must not see it stop at a result.
  if (step.finish === null) return step.hadCalls ? closeStep(state, 'tool-calls', null) : silent(state)
  return closeStep(state, step.finish.reason, step.finish.tokens)
}

function stepDoneFrames(state: VercelDataState, event: EventOf<'step.done'>): Projection<VercelDataState> {
  const { finishReason, usage, messageId } = event.data
  const reason = finishReasonOf(finishReason)
  const tokens = tokensOf(usage)
  return inSequence(
    state,
    (next) => openStep(next, messageId),
    (opened) =>
      closeFinishedStep({
        ...opened,
        step: { ...(opened.step ?? freshStep), finish: { reason, tokens } },
        finishReason: reason,
        tokens: sumOf(opened.tokens, tokens),
      }),
  )
}

/** The stream ends here without another `f:`, so that the client posts the results of its tools. */
function parkedFrames(state: VercelDataState): Projection<VercelDataState> {
  const { finish } = state.step ?? freshStep
  const reason = finish?.reason ?? 'tool-calls'
  const usage = (tokens: Tokens | null | undefined) => (tokens == null ? {} : { usage: tokens })
  return emit(
    { ...state, step: null, parkedCalls: state.step?.openCalls ?? 0 },
    ...(state.step === null
      ? []
      : [frame('finish_step', { finishReason: reason, ...usage(finish?.tokens), isContinued: false })]),
    frame('finish_message', { finishReason: reason, ...usage(state.tokens) }),
  )
}

function endFrames(state: VercelDataState, event: EventOf<'run.ended'>): Projection<VercelDataState> {
  const { status, error } = event.data
  const reason = status === 'succeeded' ? state.finishReason : status === 'failed' ? 'error' : 'other'
  const finish = frame('finish_message', {
    finishReason: reason,
    ...(state.tokens === null ? {} : { usage: state.tokens }),
  })
  // Twice, because closing a step with calls opens an empty one (see `closeStep`).
  const closeOpen = (next: VercelDataState) => closeOpenStep(next, reason)
  return inSequence(state, closeOpen, closeOpen, (left) =>
    status === 'failed' ? emit(left, frame('error', error?.message ?? 'The run failed.'), finish) : emit(left, finish),
  )
}

function closeOpenStep(state: VercelDataState, reason: string): Projection<VercelDataState> {
  return closeStep(state, state.step?.finish?.reason ?? reason, state.step?.finish?.tokens ?? null)
}

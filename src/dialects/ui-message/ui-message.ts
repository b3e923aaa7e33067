// The wire of `format=ui-message`: the UI message stream of the AI SDK, one JSON part per SSE
// frame, for `useChat` of AI SDK 6 and later; with a variant for AI SDK 5. README.md beside this
// file has the mapping table and the reasons.
//
// What must stay true: the client throws on a part of an unknown type and on a delta without its
// start, so every part that was opened is closed before the stream ends, and a call is announced
// before any other part about it. All parts of a run belong to one message: the run's id is its id.

import { jsonString } from '../../kit/json-string.ts'
import type { EventData } from '../../journal/event.ts'
import { addUsage, isReported, noUsage, usageOfStep } from '../../journal/usage.ts'
import { type Dialect, emit, endsStream, type Frame, inSequence, pingTiming, silent } from '../dialect.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import { askedParts, announceCall, resolvedParts, resultParts, startedParts } from './call-parts.ts'
import { startMessage, closeUiText, type UiMessageState, uiPart, type UiProjection } from './ui-message-state.ts'

export type UiMessageOptions = {
  /** The major version of the AI SDK: 5 stands for 5, and 6 for 6 and later. */
  readonly sdk?: 5 | 6
  /** A replay from the beginning does not end at decisions up to this event. */
  readonly decidedUpTo?: number
  /** The stream ends at the answer to this interaction, although the run waits for others. */
  readonly endsAtAnswer?: string | undefined
}

const finishReasons: ReadonlySet<string> = new Set(['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other'])

/** The last frame of every stream. It is no JSON. */
const done: Frame = { name: 'done', data: '[DONE]' }

export function uiMessageDialect({
  sdk = 6,
  decidedUpTo = 0,
  endsAtAnswer,
}: UiMessageOptions = {}): Dialect<UiMessageState> {
  const ending = { atDecision: 'parks', decidedUpTo, endsAtAnswer } as const
  return {
    name: sdk === 5 ? 'ui-message-v5' : 'ui-message',
    headers: { ...sseHeaders, 'x-vercel-ai-ui-message-stream': 'v1' },

    open: ({ runId }) => ({
      runId,
      started: false,
      step: null,
      stepCount: 0,
      open: null,
      calls: new Map(),
      clientInteractions: new Map(),
      finishReason: 'other',
      usage: noUsage,
    }),

    step(state, event) {
      switch (event.type) {
        case 'run.accepted':
          return startMessage(state)
        case 'context.patch':
          return contextParts(state, event.data)
        case 'step.started':
          return stepParts(state, event.data.step)
        case 'text.delta':
          return deltaParts(state, 'text', event.data.messageId, event.data.text)
        case 'reasoning.delta':
          return deltaParts(state, 'reasoning', event.data.reasoningId, event.data.text)
        case 'source.found':
          return inSequence(state, startMessage, (next) => emit(next, sourcePart(event.data)))
        case 'message.done':
          return state.open?.id === event.data.messageId ? closeUiText(state) : silent(state)
        case 'tool.called':
          return announceCall(state, event.data.callId, event.data)
        case 'step.done':
          return silent({
            ...state,
            finishReason: finishReasons.has(event.data.finishReason) ? event.data.finishReason : 'other',
            usage: addUsage(state.usage, usageOfStep(event.data)),
          })
        case 'answer.discarded':
        case 'context.summarised':
          return silent({ ...state, usage: addUsage(state.usage, usageOfStep(event.data)) })
        case 'input.required':
          return askedParts(state, event.data, sdk)
        case 'input.resolved':
          return inSequence(
            state,
            (next) => resolvedParts(next, event.data),
            (next) => (endsStream(ending, event) ? parkedParts(next, sdk) : silent(next)),
          )
        case 'tool.started':
          return startedParts(state, event)
        case 'tool.done':
          return resultParts(state, event.data, sdk)
        case 'run.state':
          return endsStream(ending, event) ? parkedParts(state, sdk) : silent(state)
        case 'run.ended':
          return endParts(state, event.data, sdk)

        // No part on this wire. Listed without a default, so that a new event type is a compile error here.
        case 'run.prepared':
        case 'tool.progress':
        case 'output.rejected':
        case 'context.cut':
        case 'engine.handle':
        case 'diagnostic':
          return silent(state)
      }
    },

    encode: ({ data }, address) => sseFrame(address, null, data === done.data ? '[DONE]' : JSON.stringify(data)),

    encodeDelta({ open }, { seq, messageId, textJson }) {
      if (open === null || open.kind !== 'text' || open.id !== messageId) return null
      return `id: ${seq}\ndata: {"type":"text-delta","id":${jsonString(messageId)},"delta":${textJson}}\n\n`
    },

    keepAlive: () => ': c\n\n',
    keepAliveTiming: pingTiming,

    ...ending,
  }
}

function closeStep(state: UiMessageState): UiProjection {
  return inSequence(state, closeUiText, (next) =>
    next.step === null ? silent(next) : emit({ ...next, step: null }, uiPart('finish-step')),
  )
}

/** A step that is asked again after a restart stays open. */
function stepParts(state: UiMessageState, step: number): UiProjection {
  if (state.started && state.step === step) return silent(state)
  return inSequence(state, startMessage, closeStep, (next) =>
    emit({ ...next, step, stepCount: next.stepCount + 1 }, uiPart('start-step')),
  )
}

function deltaParts(state: UiMessageState, kind: 'text' | 'reasoning', id: string, delta: string): UiProjection {
  const deltaPart = uiPart(`${kind}-delta`, { id, delta })
  if (state.open?.kind === kind && state.open.id === id) return emit(state, deltaPart)
  return inSequence(state, startMessage, closeUiText, (next) =>
    emit({ ...next, open: { kind, id } }, uiPart(`${kind}-start`, { id }), deltaPart),
  )
}

/** The text that is open stays open: the client finds it by its id. */
function sourcePart({ sourceId, url, title, mediaType }: EventData<'source.found'>): Frame {
  if (url !== undefined) return uiPart('source-url', { sourceId, url, ...(title === undefined ? {} : { title }) })
  const document = { mediaType: mediaType ?? 'application/octet-stream', title: title ?? sourceId }
  return uiPart('source-document', { sourceId, ...document })
}

function contextParts(state: UiMessageState, { layer, patch }: EventData<'context.patch'>): UiProjection {
  const { conversationId } = patch
  const told =
    layer === 'session' && typeof conversationId === 'string' && conversationId !== ''
      ? uiPart('data-conversation', { id: 'conversation', data: { conversationId } })
      : uiPart('data-context', { data: { layer, patch } })
  return inSequence(state, startMessage, (next) => emit(next, told))
}

/** The stream ends here; the run goes on with the request that brings the decision. */
function parkedParts(state: UiMessageState, sdk: 5 | 6): UiProjection {
  return inSequence(state, startMessage, closeStep, (next) =>
    emit({ ...next, started: false }, finishPart(next, next.finishReason, sdk), done),
  )
}

function endParts(state: UiMessageState, { status, error, reason }: EventData<'run.ended'>, sdk: 5 | 6): UiProjection {
  return inSequence(state, startMessage, closeStep, (next) => {
    const ended = { ...next, started: false }
    if (status === 'succeeded') return emit(ended, finishPart(next, next.finishReason, sdk), done)
    // The client reads nothing after an error, so the metadata comes before it.
    const messageMetadata = metadataOf(next)
    const metadata = messageMetadata === undefined ? [] : [uiPart('message-metadata', { messageMetadata })]
    if (status === 'canceled') {
      return emit(ended, ...metadata, uiPart('abort', sdk === 5 || reason === undefined ? {} : { reason }), done)
    }
    const failure = uiPart('error', { errorText: error?.message ?? 'The run failed.' })
    return emit(ended, ...metadata, failure, finishPart(next, 'error', sdk), done)
  })
}

/** Early versions of AI SDK 5 refuse a `finishReason`. */
function finishPart(state: UiMessageState, finishReason: string, sdk: 5 | 6): Frame {
  const messageMetadata = metadataOf(state)
  return uiPart('finish', {
    ...(sdk === 5 ? {} : { finishReason }),
    ...(messageMetadata === undefined ? {} : { messageMetadata }),
  })
}

/** The tokens of all steps so far; undefined if no provider reported any. */
function metadataOf({ usage }: UiMessageState): { usage: Record<string, number> } | undefined {
  if (!isReported(usage)) return undefined
  const { inputTokens, outputTokens } = usage
  return { usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens } }
}

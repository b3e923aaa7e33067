// The wire of `format=ui-message`: the UI message stream of the AI SDK, one JSON part per SSE
// frame, for `useChat` of AI SDK 6 and later; with a variant for AI SDK 5. README.md beside this
// file has the mapping table and the reasons.
//
// What must stay true: the client throws on a part of an unknown type and on a delta without its
// start, so every part that was opened is closed before the stream ends, and a call is announced
// before any other part about it. All parts of a run belong to one message: the run's id is its id.

import { clientToolSource } from '../../journal/client-tool.ts'
import type { EventData, EventOf, JsonValue } from '../../journal/event.ts'
import type { FileReference } from '../../journal/part.ts'
import { addUsage, isReported, noUsage, usageOfStep, type UsageTotals } from '../../journal/usage.ts'
import { type Call, type Calls, shownOutput, startedCall, unannouncedCall, withCall } from '../calls.ts'
import { type Dialect, emit, endsStream, type Frame, pingTiming, type Projection, silent } from '../dialect.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'

/** A call is announced with its `tool-input-available`. */
type UiCall = Call & {
  readonly done: boolean
  readonly approvalAsked: boolean
  /** The client executes the call. */
  readonly byClient: boolean
  /** The count of steps when the call was announced. */
  readonly stepCount: number
}

export type UiMessageState = {
  readonly runId: string
  /** True between `start` and the end of the stream. A run that goes on after a decision starts its message again. */
  readonly started: boolean
  /** The number of the open step; null if none is open. */
  readonly step: number | null
  /** How many `start-step` parts there were. */
  readonly stepCount: number
  /** The text or the reasoning that is open. At most one is. */
  readonly open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | null
  readonly calls: Calls<UiCall>
  /** The interactions that wait for a result of the client, with their calls. */
  readonly clientInteractions: ReadonlyMap<string, string>
  readonly finishReason: string
  readonly usage: UsageTotals
}

type Told = Projection<UiMessageState>

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
          return started(state)
        case 'context.patch':
          return contextParts(state, event.data)
        case 'step.started':
          return stepParts(state, event.data.step)
        case 'text.delta':
          return deltaParts(state, 'text', event.data.messageId, event.data.text)
        case 'reasoning.delta':
          return deltaParts(state, 'reasoning', event.data.reasoningId, event.data.text)
        case 'source.found':
          return then(started(state), (next) => emit(next, sourcePart(event.data)))
        case 'message.done':
          return state.open?.id === event.data.messageId ? closed(state) : silent(state)
        case 'tool.called':
          return announced(state, event.data.callId, event.data)
        case 'step.done':
          return silent({
            ...state,
            finishReason: finishReasons.has(event.data.finishReason) ? event.data.finishReason : 'other',
            usage: addUsage(state.usage, usageOfStep(event.data)),
          })
        case 'context.summarised':
          return silent({ ...state, usage: addUsage(state.usage, usageOfStep(event.data)) })
        case 'input.required':
          return askedParts(state, event.data, sdk)
        case 'input.resolved':
          return then(resolvedParts(state, event.data), (next) =>
            endsStream(ending, event) ? parkedParts(next, sdk) : silent(next),
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

    encodeDelta({ open }, { seq, data: { messageId, text } }) {
      if (open === null || open.kind !== 'text' || open.id !== messageId) return null
      return `id: ${seq}\ndata: {"type":"text-delta","id":${JSON.stringify(messageId)},"delta":${JSON.stringify(text)}}\n\n`
    },

    keepAlive: () => ': c\n\n',
    keepAliveTiming: pingTiming,

    ...ending,
  }
}

function part(type: string, fields: Record<string, unknown> = {}): Frame {
  return { name: type, data: { type, ...fields } }
}

/** Runs `next` on the state of `before` and returns the frames of both. */
function then(before: Told, next: (state: UiMessageState) => Told): Told {
  const after = next(before.state)
  return { state: after.state, frames: [...before.frames, ...after.frames] }
}

function started(state: UiMessageState): Told {
  return state.started ? silent(state) : emit({ ...state, started: true }, part('start', { messageId: state.runId }))
}

/** Closes the text or the reasoning that is open. */
function closed(state: UiMessageState): Told {
  const { open } = state
  return open === null ? silent(state) : emit({ ...state, open: null }, part(`${open.kind}-end`, { id: open.id }))
}

function stepClosed(state: UiMessageState): Told {
  return then(closed(state), (next) =>
    next.step === null ? silent(next) : emit({ ...next, step: null }, part('finish-step')),
  )
}

/** A step that is asked again after a restart stays open. */
function stepParts(state: UiMessageState, step: number): Told {
  if (state.started && state.step === step) return silent(state)
  return then(then(started(state), stepClosed), (next) =>
    emit({ ...next, step, stepCount: next.stepCount + 1 }, part('start-step')),
  )
}

function deltaParts(state: UiMessageState, kind: 'text' | 'reasoning', id: string, delta: string): Told {
  const deltaPart = part(`${kind}-delta`, { id, delta })
  if (state.open?.kind === kind && state.open.id === id) return emit(state, deltaPart)
  return then(then(started(state), closed), (next) =>
    emit({ ...next, open: { kind, id } }, part(`${kind}-start`, { id }), deltaPart),
  )
}

/** The text that is open stays open: the client finds it by its id. */
function sourcePart({ sourceId, url, title, mediaType }: EventData<'source.found'>): Frame {
  if (url !== undefined) return part('source-url', { sourceId, url, ...(title === undefined ? {} : { title }) })
  const document = { mediaType: mediaType ?? 'application/octet-stream', title: title ?? sourceId }
  return part('source-document', { sourceId, ...document })
}

function contextParts(state: UiMessageState, { layer, patch }: EventData<'context.patch'>): Told {
  const { conversationId } = patch
  const told =
    layer === 'session' && typeof conversationId === 'string' && conversationId !== ''
      ? part('data-conversation', { id: 'conversation', data: { conversationId } })
      : part('data-context', { data: { layer, patch } })
  return then(started(state), (next) => emit(next, told))
}

type AnnouncedCall = { name: string; input: JsonValue | undefined; source?: string | undefined }

/** Announces a call once. */
function announced(state: UiMessageState, callId: string, { name, input, source }: AnnouncedCall): Told {
  if (state.calls.has(callId)) return silent(state)
  const call: UiCall = {
    ...unannouncedCall(name, input),
    announced: true,
    done: false,
    approvalAsked: false,
    byClient: source === clientToolSource,
    stepCount: state.stepCount,
  }
  return then(then(started(state), closed), (next) =>
    emit(withCall(next, callId, call), inputPart(callId, call, input)),
  )
}

/** `providerExecuted` says that the call runs on the server: the client then neither executes it nor posts its result. */
function inputPart(toolCallId: string, { name, byClient }: UiCall, input: JsonValue | undefined): Frame {
  const place = byClient ? {} : { providerExecuted: true }
  return part('tool-input-available', { toolCallId, toolName: name, input: input ?? {}, ...place })
}

/**
 * A row of the journal that no longer fits its schema is skipped when reading. The client throws on a part about a call
 * that it does not know, so such a call is announced with its next event, under the name `unknown`.
 */
function aboutCall(
  state: UiMessageState,
  callId: string,
  input: JsonValue | undefined,
  next: (state: UiMessageState, call: UiCall) => Told,
): Told {
  return then(then(announced(state, callId, { name: 'unknown', input }), started), (known) => {
    const call = known.calls.get(callId)
    return call === undefined || call.done ? silent(known) : next(known, call)
  })
}

function askedParts(state: UiMessageState, event: EventData<'input.required'>, sdk: 5 | 6): Told {
  const { callId, interactionId, prompt, input, outcome, options, fields } = event
  if (callId === undefined) {
    const data = {
      interactionId,
      kind: event.style ?? event.kind,
      message: prompt,
      options: options ?? [],
      fields: fields ?? [],
    }
    return then(then(started(state), closed), (next) =>
      emit(next, part('data-input-required', { id: interactionId, data })),
    )
  }
  if (event.kind === 'client_tool') {
    const clientInteractions = new Map(state.clientInteractions).set(interactionId, callId)
    return aboutCall({ ...state, clientInteractions }, callId, input, (known) => silent(known))
  }
  return aboutCall(state, callId, input, (known, call) => {
    const data = {
      confirmationId: interactionId,
      toolCallId: callId,
      toolName: call.name,
      message: prompt,
      ...(outcome === undefined ? {} : { outcome }),
    }
    const asked = part('data-tool-awaiting-input', { id: interactionId, data })
    const next = withCall(known, callId, { ...call, approvalAsked: true })
    if (sdk === 5) return emit(next, asked)
    return emit(next, asked, part('tool-approval-request', { approvalId: interactionId, toolCallId: callId }))
  })
}

/** A client that did not bring the decision itself learns it here: another tab, or a replay. */
function resolvedParts(state: UiMessageState, event: EventData<'input.resolved'>): Told {
  const { interactionId, resolution } = event
  const callId = state.clientInteractions.get(interactionId)
  if (callId !== undefined) return takenParts(state, callId, event)
  const resolved = part('data-input-resolved', { id: interactionId, data: { interactionId, resolution } })
  return then(then(started(state), closed), (next) => emit(next, resolved))
}

/**
 * The result of a tool of the client is sent back as soon as it is stored. Marked as executed by the server, it no longer
 * makes `lastAssistantMessageIsCompleteWithToolCalls` post the message again.
 */
function takenParts(state: UiMessageState, callId: string, event: EventData<'input.resolved'>): Told {
  const { resolution, response = null, reason } = event
  const taken = (result: Frame) =>
    aboutCall(state, callId, undefined, (known, call) =>
      then(closed(withCall(known, callId, { ...call, done: true })), (next) => emit(next, result)),
    )
  const about = { toolCallId: callId, providerExecuted: true }
  if (resolution === 'replied') return taken(part('tool-output-available', { ...about, output: response }))
  if (resolution === 'rejected') return taken(part('tool-output-error', { ...about, errorText: reason ?? '' }))
  // Its time ran out, or the run ended: the result of the call says so.
  return silent(state)
}

/**
 * The input is sent again if a person was asked: the client then shows the call as running, with the arguments that the
 * person may have changed. The client looks for the call only in the newest step, and would show it twice in a later one.
 */
function startedParts(state: UiMessageState, event: EventOf<'tool.started'>): Told {
  const { callId, input } = event.data
  return aboutCall(state, callId, input, (known, call) => {
    const running = withCall(known, callId, startedCall(call, event))
    if (!call.approvalAsked || call.stepCount !== known.stepCount) return silent(running)
    return emit(running, inputPart(callId, call, input))
  })
}

function resultParts(state: UiMessageState, event: EventData<'tool.done'>, sdk: 5 | 6): Told {
  const { callId } = event
  return aboutCall(state, callId, undefined, (known, call) =>
    then(closed(withCall(known, callId, { ...call, done: true })), (next) =>
      emit(next, outputPart(event, call, sdk), ...(event.files ?? []).map(filePart)),
    ),
  )
}

/** The address has no host, because a stream does not know under which one the client reaches the server. */
function filePart({ fileId, mediaType }: FileReference): Frame {
  return part('file', { url: `/v1/files/${encodeURIComponent(fileId)}/content`, mediaType })
}

function outputPart(event: EventData<'tool.done'>, call: UiCall, sdk: 5 | 6): Frame {
  const { callId: toolCallId, outcome, error, summary } = event
  if (outcome === 'succeeded') return part('tool-output-available', { toolCallId, output: shownOutput(event) ?? null })
  if (outcome === 'denied' && call.approvalAsked && sdk === 6) return part('tool-output-denied', { toolCallId })
  const taken = call.byClient ? { providerExecuted: true } : {}
  return part('tool-output-error', { toolCallId, errorText: error?.message ?? summary, ...taken })
}

/** The stream ends here; the run goes on with the request that brings the decision. */
function parkedParts(state: UiMessageState, sdk: 5 | 6): Told {
  return then(then(started(state), stepClosed), (next) =>
    emit({ ...next, started: false }, finishPart(next, next.finishReason, sdk), done),
  )
}

function endParts(state: UiMessageState, { status, error, reason }: EventData<'run.ended'>, sdk: 5 | 6): Told {
  return then(then(started(state), stepClosed), (next) => {
    const ended = { ...next, started: false }
    if (status === 'succeeded') return emit(ended, finishPart(next, next.finishReason, sdk), done)
    // The client reads nothing after an error, so the metadata comes before it.
    const messageMetadata = metadataOf(next)
    const metadata = messageMetadata === undefined ? [] : [part('message-metadata', { messageMetadata })]
    if (status === 'canceled') {
      return emit(ended, ...metadata, part('abort', sdk === 5 || reason === undefined ? {} : { reason }), done)
    }
    const failure = part('error', { errorText: error?.message ?? 'The run failed.' })
    return emit(ended, ...metadata, failure, finishPart(next, 'error', sdk), done)
  })
}

/** Early versions of AI SDK 5 refuse a `finishReason`. */
function finishPart(state: UiMessageState, finishReason: string, sdk: 5 | 6): Frame {
  const messageMetadata = metadataOf(state)
  return part('finish', {
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

// The parts about tool calls: the call, the question that it waits for, the answer, and the result.

import { clientToolSource } from '../../journal/client-tool.ts'
import type { EventData, EventOf, JsonValue } from '../../journal/event.ts'
import type { FileReference } from '../../journal/part.ts'
import { shownOutput, startedCall, unannouncedCall, withCall } from '../calls.ts'
import { emit, type Frame, inSequence, silent } from '../dialect.ts'
import {
  startMessage,
  closeUiText,
  type UiCall,
  type UiMessageState,
  uiPart,
  type UiProjection,
} from './ui-message-state.ts'

type AnnouncedCall = { name: string; input: JsonValue | undefined; source?: string | undefined }

/** Announces a call once. */
export function announceCall(
  state: UiMessageState,
  callId: string,
  { name, input, source }: AnnouncedCall,
): UiProjection {
  if (state.calls.has(callId)) return silent(state)
  const call: UiCall = {
    ...unannouncedCall(name, input),
    announced: true,
    done: false,
    approvalAsked: false,
    byClient: source === clientToolSource,
    stepCount: state.stepCount,
  }
  return inSequence(state, startMessage, closeUiText, (next) =>
    emit(withCall(next, callId, call), inputPart(callId, call, input)),
  )
}

/** `providerExecuted` says that the call runs on the server: the client then neither executes it nor posts its result. */
function inputPart(toolCallId: string, { name, byClient }: UiCall, input: JsonValue | undefined): Frame {
  const place = byClient ? {} : { providerExecuted: true }
  return uiPart('tool-input-available', { toolCallId, toolName: name, input: input ?? {}, ...place })
}

/**
 * A row of the journal that no longer fits its schema is skipped when reading. The client throws on a part about a call
 * that it does not know, so such a call is announced with its next event, under the name `unknown`.
 */
function aboutCall(
  state: UiMessageState,
  callId: string,
  input: JsonValue | undefined,
  next: (state: UiMessageState, call: UiCall) => UiProjection,
): UiProjection {
  return inSequence(
    state,
    (next) => announceCall(next, callId, { name: 'unknown', input }),
    startMessage,
    (known) => {
      const call = known.calls.get(callId)
      return call === undefined || call.done ? silent(known) : next(known, call)
    },
  )
}

export function askedParts(state: UiMessageState, event: EventData<'input.required'>, sdk: 5 | 6): UiProjection {
  const { callId, interactionId, prompt, input, outcome, options, fields } = event
  if (callId === undefined) {
    const data = {
      interactionId,
      kind: event.style ?? event.kind,
      message: prompt,
      options: options ?? [],
      fields: fields ?? [],
    }
    return inSequence(state, startMessage, closeUiText, (next) =>
      emit(next, uiPart('data-input-required', { id: interactionId, data })),
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
    const asked = uiPart('data-tool-awaiting-input', { id: interactionId, data })
    const next = withCall(known, callId, { ...call, approvalAsked: true })
    if (sdk === 5) return emit(next, asked)
    return emit(next, asked, uiPart('tool-approval-request', { approvalId: interactionId, toolCallId: callId }))
  })
}

/** A client that did not bring the decision itself learns it here: another tab, or a replay. */
export function resolvedParts(state: UiMessageState, event: EventData<'input.resolved'>): UiProjection {
  const { interactionId, resolution } = event
  const callId = state.clientInteractions.get(interactionId)
  if (callId !== undefined) return takenParts(state, callId, event)
  const resolved = uiPart('data-input-resolved', { id: interactionId, data: { interactionId, resolution } })
  return inSequence(state, startMessage, closeUiText, (next) => emit(next, resolved))
}

/**
 * The result of a tool of the client is sent back as soon as it is stored. Marked as executed by the server, it no longer
 * makes `lastAssistantMessageIsCompleteWithToolCalls` post the message again.
 */
function takenParts(state: UiMessageState, callId: string, event: EventData<'input.resolved'>): UiProjection {
  const { resolution, response = null, reason } = event
  const taken = (result: Frame) =>
    aboutCall(state, callId, undefined, (known, call) =>
      inSequence(withCall(known, callId, { ...call, done: true }), closeUiText, (next) => emit(next, result)),
    )
  const about = { toolCallId: callId, providerExecuted: true }
  if (resolution === 'replied') return taken(uiPart('tool-output-available', { ...about, output: response }))
  if (resolution === 'rejected') return taken(uiPart('tool-output-error', { ...about, errorText: reason ?? '' }))
  // Its time ran out, or the run ended: the result of the call says so.
  return silent(state)
}

/**
 * The input is sent again if a person was asked: the client then shows the call as running, with the arguments that the
 * person may have changed. The client looks for the call only in the newest step, and would show it twice in a later one.
 */
export function startedParts(state: UiMessageState, event: EventOf<'tool.started'>): UiProjection {
  const { callId, input } = event.data
  return aboutCall(state, callId, input, (known, call) => {
    const running = withCall(known, callId, startedCall(call, event))
    if (!call.approvalAsked || call.stepCount !== known.stepCount) return silent(running)
    return emit(running, inputPart(callId, call, input))
  })
}

export function resultParts(state: UiMessageState, event: EventData<'tool.done'>, sdk: 5 | 6): UiProjection {
  const { callId } = event
  return aboutCall(state, callId, undefined, (known, call) =>
    inSequence(withCall(known, callId, { ...call, done: true }), closeUiText, (next) =>
      emit(next, outputPart(event, call, sdk), ...(event.files ?? []).map(filePart)),
    ),
  )
}

/** The address has no host, because a stream does not know under which one the client reaches the server. */
function filePart({ fileId, mediaType }: FileReference): Frame {
  return uiPart('file', { url: `/v1/files/${encodeURIComponent(fileId)}/content`, mediaType })
}

function outputPart(event: EventData<'tool.done'>, call: UiCall, sdk: 5 | 6): Frame {
  const { callId: toolCallId, outcome, error, summary } = event
  if (outcome === 'succeeded')
    return uiPart('tool-output-available', { toolCallId, output: shownOutput(event) ?? null })
  if (outcome === 'denied' && call.approvalAsked && sdk === 6) return uiPart('tool-output-denied', { toolCallId })
  const taken = call.byClient ? { providerExecuted: true } : {}
  return uiPart('tool-output-error', { toolCallId, errorText: error?.message ?? summary, ...taken })
}

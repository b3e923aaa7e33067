// Tool calls on AG-UI, and what a person decides about them.

import type { EventData, EventOf } from '../../journal/event.ts'
import { resultForModel } from '../../journal/tool-outcome.ts'
import { defined } from '../../kit/defined.ts'
import { type Call, latestInput, ranWithOtherInput, startedCall, unannouncedCall, withCall } from '../calls.ts'
import { emit, inSequence, silent } from '../dialect.ts'
import { agUiFrame, customFrame } from './ag-ui-frame.ts'
import {
  type AgUiCall,
  type AgUiState,
  type AgUiProjection,
  closeReasoning,
  startRun,
  emitInRun,
} from './ag-ui-state.ts'

export function calledFrames(state: AgUiState, event: EventData<'tool.called'>): AgUiProjection {
  return announceCall(state, event.callId, event.name, argumentsOf(event))
}

/** The arguments that the model wrote, also if they are not JSON. */
function argumentsOf({ input, invalidInput }: EventData<'tool.called'>): AnnouncedInput {
  return { input, text: invalidInput ?? JSON.stringify(input) }
}

type AnnouncedInput = { input: Call['input']; text: string }

const noInput: AnnouncedInput = { input: undefined, text: '{}' }

function announceCall(
  state: AgUiState,
  toolCallId: string,
  toolCallName: string,
  { input, text }: AnnouncedInput,
): AgUiProjection {
  if (state.calls.has(toolCallId)) return silent(state)
  const call: AgUiCall = {
    ...unannouncedCall(toolCallName, input),
    announced: true,
    done: false,
    resultOfClient: false,
  }
  return inSequence(withCall(state, toolCallId, call), startRun, closeReasoning, (next) =>
    emit(
      next,
      agUiFrame('TOOL_CALL_START', { toolCallId, toolCallName, ...defined({ parentMessageId: next.stepMessageId }) }),
      agUiFrame('TOOL_CALL_ARGS', { toolCallId, delta: text }),
      agUiFrame('TOOL_CALL_END', { toolCallId }),
    ),
  )
}

/**
 * A row of the journal that no longer fits its schema is skipped when reading, so a call may be announced only with its
 * next event, under the name `unknown`.
 */
function aboutCall(
  state: AgUiState,
  callId: string,
  next: (state: AgUiState, call: AgUiCall) => AgUiProjection,
): AgUiProjection {
  return inSequence(
    state,
    (known) => announceCall(known, callId, 'unknown', noInput),
    (known) => {
      const call = known.calls.get(callId)
      return call === undefined || call.done ? silent(known) : next(known, call)
    },
  )
}

/** Told when the run parks: a run that is decided before does not have to wait. */
export function askedFrames(state: AgUiState, asked: EventData<'input.required'>): AgUiProjection {
  const next = { ...state, awaited: new Map(state.awaited).set(asked.interactionId, asked) }
  return asked.callId === undefined ? silent(next) : aboutCall(next, asked.callId, silent)
}

/** A client that did not bring the decision itself learns it here: another tab, or a replay. */
export function resolvedFrames(
  state: AgUiState,
  { interactionId, resolution }: EventData<'input.resolved'>,
): AgUiProjection {
  const asked = state.awaited.get(interactionId)
  const awaited = new Map(state.awaited)
  awaited.delete(interactionId)
  const call = asked?.callId === undefined ? undefined : state.calls.get(asked.callId)
  const resultOfClient = asked?.kind === 'client_tool' && (resolution === 'replied' || resolution === 'rejected')
  const next = { ...state, awaited }
  const known = call === undefined ? next : withCall(next, asked?.callId as string, { ...call, resultOfClient })
  return emitInRun(known, customFrame('input.resolved', { interactionId, resolution }))
}

/** A call cannot be announced a second time, so changed arguments are told with an event of their own. */
export function startedFrames(state: AgUiState, event: EventOf<'tool.started'>): AgUiProjection {
  const { callId } = event.data
  return aboutCall(state, callId, (known, call) => {
    const running = startedCall(call, event)
    const next = withCall(known, callId, running)
    if (call.input === undefined || !ranWithOtherInput(running)) return silent(next)
    return emitInRun(next, customFrame('tool.input_changed', { toolCallId: callId, input: latestInput(running) }))
  })
}

export function resultFrames(
  state: AgUiState,
  event: EventData<'tool.done'>,
  clientHasOwnResults: boolean,
): AgUiProjection {
  const { callId: toolCallId, messageId } = event
  return aboutCall(state, toolCallId, (known, call) => {
    const next = withCall(known, toolCallId, { ...call, done: true })
    if (clientHasOwnResults && call.resultOfClient) return silent(next)
    const metadata = metadataOfResult(event)
    // What the model was told, as in the snapshots of later runs.
    const content = resultForModel(event)
    return emitInRun(
      next,
      agUiFrame('TOOL_CALL_RESULT', { messageId, toolCallId, content, role: 'tool', ...defined({ metadata }) }),
    )
  })
}

/** What a result has no field for: how and why the call ended, if it did not succeed, and its files. */
function metadataOfResult({ outcome, error, files }: EventData<'tool.done'>): object | undefined {
  const ending = outcome === 'succeeded' ? {} : { outcome, ...defined({ code: error?.code, message: error?.message }) }
  const links = files?.map((file) => ({ ...file, url: `/v1/files/${encodeURIComponent(file.fileId)}/content` }))
  const metadata = { ...ending, ...defined({ files: links }) }
  return Object.keys(metadata).length === 0 ? undefined : metadata
}

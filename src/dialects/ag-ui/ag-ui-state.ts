// The state of the AG-UI dialect, and the frames that open and close what a stream consists of: the
// run, its steps, text and reasoning.

import type { EventData } from '../../journal/event.ts'
import type { UsageTotals } from '../../journal/usage.ts'
import type { Call, Calls } from '../calls.ts'
import { emit, type Frame, inSequence, type Projection, silent } from '../dialect.ts'
import { agUiFrame } from './ag-ui-frame.ts'
import type { Awaited } from './open-interrupts.ts'
import type { SharedState } from './shared-state.ts'

export type AgUiCall = Call & {
  readonly done: boolean
  /** True if the client ran the call and sent its result. */
  readonly resultOfClient: boolean
}

export type AgUiState = {
  readonly threadId: string
  readonly runId: string
  /** False for clients before 1.0, which refuse the outcome `cancelled` and unknown fields of an outcome. */
  readonly modern: boolean
  /** True between RUN_STARTED and the end of the stream. A run that goes on after a decision starts again. */
  readonly started: boolean
  /** The number of the open step; null if none is open. */
  readonly step: number | null
  /** The message that the text and the calls of the newest step belong to. */
  readonly stepMessageId: string | undefined
  /** The text message that is open. */
  readonly text: string | null
  /** The reasoning that is open. */
  readonly reasoning: string | null
  readonly calls: Calls<AgUiCall>
  readonly awaited: Awaited
  readonly shared: SharedState
  readonly model: string
  /** By model, since RUN_STARTED. */
  readonly usage: ReadonlyMap<string, UsageTotals>
  /** True if the answer has to fit a schema, so that it is JSON. */
  readonly isJson: boolean
  /** The newest message, if it is too long for `run.ended` to repeat it. */
  readonly longMessage: { readonly id: string; readonly text: string } | undefined
}

export type AgUiProjection = Projection<AgUiState>

const protocolVersion = '1.0'

export function emitInRun(state: AgUiState, ...frames: Frame[]): AgUiProjection {
  return inSequence(state, startRun, (next) => emit(next, ...frames))
}

export function startRun(state: AgUiState): AgUiProjection {
  if (state.started) return silent(state)
  const { threadId, runId } = state
  const version = state.modern ? { protocolVersion } : {}
  return emit({ ...state, started: true }, agUiFrame('RUN_STARTED', { threadId, runId, ...version }))
}

/** A step that is asked again after a restart stays open. */
export function stepFrames(state: AgUiState, { step, messageId, model }: EventData<'step.started'>): AgUiProjection {
  const known = { ...state, stepMessageId: messageId, model }
  if (state.started && state.step === step) return silent(known)
  return inSequence(known, startRun, closeStep, (next) =>
    emit({ ...next, step }, agUiFrame('STEP_STARTED', { stepName: stepName(step) })),
  )
}

function stepName(step: number): string {
  return `step-${step}`
}

export function closeStep(state: AgUiState): AgUiProjection {
  return inSequence(state, closeReasoning, closeTextMessage, (next) =>
    next.step === null
      ? silent(next)
      : emit({ ...next, step: null }, agUiFrame('STEP_FINISHED', { stepName: stepName(next.step) })),
  )
}

/** The text stays open while the model thinks or calls tools: one message is announced once. */
export function textFrames(state: AgUiState, { messageId, text }: EventData<'text.delta'>): AgUiProjection {
  if (text === '') return silent(state)
  const content = agUiFrame('TEXT_MESSAGE_CONTENT', { messageId, delta: text })
  return inSequence(state, startRun, closeReasoning, (next) => {
    if (next.text === messageId) return emit(next, content)
    const start = agUiFrame('TEXT_MESSAGE_START', { messageId, role: 'assistant' })
    return inSequence(next, closeTextMessage, (closed) => emit({ ...closed, text: messageId }, start, content))
  })
}

export function closeTextMessage(state: AgUiState): AgUiProjection {
  const { text: messageId } = state
  return messageId === null
    ? silent(state)
    : emit({ ...state, text: null }, agUiFrame('TEXT_MESSAGE_END', { messageId }))
}

export function reasoningFrames(
  state: AgUiState,
  { reasoningId: messageId, text }: EventData<'reasoning.delta'>,
): AgUiProjection {
  if (text === '') return silent(state)
  const content = agUiFrame('REASONING_MESSAGE_CONTENT', { messageId, delta: text })
  if (state.started && state.reasoning === messageId) return emit(state, content)
  return inSequence(state, startRun, closeReasoning, (next) =>
    emit(
      { ...next, reasoning: messageId },
      agUiFrame('REASONING_START', { messageId }),
      agUiFrame('REASONING_MESSAGE_START', { messageId, role: 'reasoning' }),
      content,
    ),
  )
}

export function closeReasoning(state: AgUiState): AgUiProjection {
  const { reasoning: messageId } = state
  if (messageId === null) return silent(state)
  return emit(
    { ...state, reasoning: null },
    agUiFrame('REASONING_MESSAGE_END', { messageId }),
    agUiFrame('REASONING_END', { messageId }),
  )
}

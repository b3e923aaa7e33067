// The state of the UI message stream, and the steps that all of its parts are made of: opening the
// message, closing what is open, and one thing after the other.

import type { UsageTotals } from '../../journal/usage.ts'
import type { Call, Calls } from '../calls.ts'
import { emit, type Frame, type Projection, silent } from '../dialect.ts'

/** A call is announced with its `tool-input-available`. */
export type UiCall = Call & {
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

export type UiProjection = Projection<UiMessageState>

export function uiPart(type: string, fields: Record<string, unknown> = {}): Frame {
  return { name: type, data: { type, ...fields } }
}

export function startMessage(state: UiMessageState): UiProjection {
  return state.started ? silent(state) : emit({ ...state, started: true }, uiPart('start', { messageId: state.runId }))
}

/** Closes the text or the reasoning that is open. */
export function closeUiText(state: UiMessageState): UiProjection {
  const { open } = state
  return open === null ? silent(state) : emit({ ...state, open: null }, uiPart(`${open.kind}-end`, { id: open.id }))
}

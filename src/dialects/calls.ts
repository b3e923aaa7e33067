// The state that a dialect keeps for each tool call: a fold of tool.called, tool.started and
// input.required. The dialect decides when it announces a call to the client. After that,
// `input` keeps the announced arguments, so that the dialect can tell the client if the call
// runs with other arguments.

import type { EventData, EventOf, JsonValue } from '../journal/event.ts'
import { withEntry } from '../kit/shared-map.ts'
import { sortedJson } from '../kit/sorted-json.ts'

export type Call = {
  readonly name: string
  /** One sentence for people: what the call is about to do. */
  readonly note: string
  /** The arguments that were announced, or will be. Undefined if they cannot be read. */
  readonly input: JsonValue | undefined
  /** The arguments with which the call last started; undefined if it has not started since it was announced. */
  readonly ranWith: JsonValue | undefined
  readonly startedAt: number | undefined
  /** True if the client has seen a frame about this call. */
  readonly announced: boolean
}

export type Calls<One extends Call = Call> = ReadonlyMap<string, One>

/** Shared by all streams, most of which never see a call. */
export const noCalls: ReadonlyMap<string, never> = new Map<string, never>()

type CallOf<State> = State extends { readonly calls: ReadonlyMap<string, infer One> } ? One : never

/** The map of the given state stays as it is, because a dialect's state is immutable. */
export function withCall<State extends { readonly calls: ReadonlyMap<string, unknown> }>(
  state: State,
  callId: string,
  call: CallOf<State>,
): State {
  return { ...state, calls: withEntry(state.calls, callId, call) }
}

export function calledCall({ name, note, input }: EventData<'tool.called'>): Call {
  return { ...unannouncedCall(name, input), note }
}

export function unannouncedCall(name: string, input: JsonValue | undefined): Call {
  return { name, note: '', input, ranWith: undefined, startedAt: undefined, announced: false }
}

export function startedCall<One extends Call>(call: One, event: EventOf<'tool.started'>): One {
  const { input } = event.data
  return { ...call, input: call.announced ? call.input : input, ranWith: input, startedAt: event.at }
}

/** The arguments that the call ran with, or the announced ones if it has not started. */
export function latestInput({ input, ranWith }: Call): JsonValue | undefined {
  return ranWith === undefined ? input : ranWith
}

/** True if the call ran with other arguments than those that were announced: a person changed them. */
export function ranWithOtherInput({ input, ranWith }: Call): boolean {
  if (ranWith === undefined) return false
  return input === undefined || sortedJson(ranWith) !== sortedJson(input)
}

/** The output of a call as wires show it. Undefined if there is none; only the beginning if it was cut. */
export function shownOutput({ output, truncated, fullLength }: EventData<'tool.done'>): JsonValue | undefined {
  return output !== undefined && truncated ? { truncated: true, fullLength, preview: output } : output
}

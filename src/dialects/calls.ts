// What wires that tell of tool calls remember of each: a fold of tool.called, tool.started
// and input.required that a dialect composes into its state. The dialect decides when it
// announces a call; from then on `input` stays what was announced, so that the wire can say
// when the call runs with other arguments.

import type { EventData, EventOf, JsonValue } from '../journal/event.ts'
import { sortedJson } from '../kit/sorted-json.ts'

export type Call = {
  readonly name: string
  /** What the call is about to do, for people. */
  readonly note: string
  /** The arguments that were announced, or will be. Undefined if they cannot be read. */
  readonly input: JsonValue | undefined
  /** The arguments with which the call last started; undefined if it has not started since it was announced. */
  readonly ranWith: JsonValue | undefined
  readonly startedAt: number | undefined
  /** The wire has told of the call. */
  readonly announced: boolean
}

export type Calls<One extends Call = Call> = ReadonlyMap<string, One>

type CallOf<State> = State extends { readonly calls: ReadonlyMap<string, infer One> } ? One : never

/** States are values, so the map is copied. */
export function withCall<State extends { readonly calls: ReadonlyMap<string, unknown> }>(
  state: State,
  callId: string,
  call: CallOf<State>,
): State {
  return { ...state, calls: new Map(state.calls).set(callId, call) }
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

/** The newest arguments that are known of the call. */
export function latestInput({ input, ranWith }: Call): JsonValue | undefined {
  return ranWith === undefined ? input : ranWith
}

/** True if the call ran with other arguments than those that were announced: a person changed them. */
export function ranWithOtherInput({ input, ranWith }: Call): boolean {
  if (ranWith === undefined) return false
  return input === undefined || sortedJson(ranWith) !== sortedJson(input)
}

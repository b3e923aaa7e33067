// Engines propose what happens next in a run, and `runs/` writes it to the journal. There
// are two kinds. A step engine answers one model request, and `runs/` executes the tool
// calls and requests the next step. A turn engine is a remote agent that executes its own
// tools: it owns the whole turn, from the question to the final answer.

import type { ToolChoice } from '../journal/sampling.ts'
import type { ErrorValue } from '../errors/app-error.ts'
import type { EventData, JsonValue, RunSpec, ToolOutcome, Usage } from '../journal/event.ts'
import type { FinishReason, ModelMessage, ModelPart, ModelTool, WantedAnswer } from '../models/model.ts'

export type StepRequest = {
  runId: string
  spec: RunSpec
  messages: ModelMessage[]
  tools: ModelTool[]
  /** Absent if any text is an answer. */
  answer?: WantedAnswer
  /** The tool that this step has to call; absent: the model decides. */
  toolChoice?: ToolChoice
  /** The trace context that is passed on to the provider. */
  traceparent?: string
}

export interface StepEngine {
  readonly kind: 'step'
  readonly name: string
  /** Same contract as `Model.stream`, but the engine also retries failures before the first part. */
  step(request: StepRequest, signal: AbortSignal): AsyncIterable<ModelPart[]>
  /** A run with this spec is being stored, and its first step is likely to follow at once. Must not throw. */
  prepare?(spec: RunSpec): void
}

export type TurnRequest = {
  runId: string
  spec: RunSpec
  owner: string
  conversationId: string | null
  /** Instructions, history and the new input. An engine with a remote session sends only what the session does not have. */
  messages: ModelMessage[]
  /** The last handle of this engine in the previous run of the conversation; absent if another engine answered there. */
  previous?: JsonValue
}

export interface TurnEngine {
  readonly kind: 'turn'
  readonly name: string
  /** Whether a person may change the arguments of a call while confirming it. */
  readonly canEditInput: boolean
  /**
   * Runs or re-attaches to one remote turn. `handle` is the last handle that this engine asked to have journaled for the
   * run; undefined if nothing remote can have been started. With a handle the engine must never start a second remote
   * turn: it re-attaches, or throws `engine_outcome_unknown`.
   *
   * Aborting the signal, or leaving the iteration early, detaches: the remote turn goes on. Only `abort` stops it.
   * An engine yields empty lists as a sign of life while the remote side works silently.
   * Throws `engine_unavailable` only if nothing remote can have been started.
   */
  turn(
    request: TurnRequest,
    handle: JsonValue | undefined,
    decisions: Decisions,
    signal: AbortSignal,
  ): AsyncIterable<TurnPart[]>
  /** Stops the remote turn. Resolves when the remote side has confirmed it. */
  abort(handle: JsonValue, signal: AbortSignal): Promise<void>
}

export type Engine = StepEngine | TurnEngine

export type TurnPart =
  | Extract<ModelPart, { type: 'text' } | { type: 'reasoning' }>
  /**
   * Must be the first part after a re-attach. `turn`: the engine repeats the remote turn from its start, and what is
   * already in the journal is skipped. `nothing`: it continues after the last part that was journaled.
   */
  | { type: 'attached'; replays: 'turn' | 'nothing' }
  /**
   * What the engine needs to find its work again. It is on disk before the next part is requested. Null: the remote side
   * did not take the request, so nothing remote was started.
   */
  | { type: 'handle'; handle: JsonValue }
  /** The remote side executes this call. */
  | { type: 'tool-called'; callId: string; name: string; input: JsonValue; note?: string }
  | { type: 'tool-progress'; callId: string; message: string }
  | {
      type: 'tool-done'
      callId: string
      outcome: ToolOutcome
      output?: JsonValue
      summary?: string
      error?: ErrorValue
    }
  /**
   * The remote side waits for consent to a call. After yielding it the engine looks up `decisions.of(key)`. If there is no
   * decision yet, the run waits for a person, and the engine is called again with the same handle afterwards.
   */
  | {
      type: 'approval'
      key: string
      callId: string
      name: string
      input: JsonValue
      prompt: string
      expiresAt?: number
    }
  /** The remote side waits for a reply in words. Otherwise like `approval`. */
  | { type: 'question'; key: string; prompt: string; expiresAt?: number }
  | { type: 'context'; layer: EventData<'context.patch'>['layer']; patch: { [name: string]: JsonValue } }
  /** The tokens that the remote side reported for a turn that failed. The error follows. */
  | Extract<ModelPart, { type: 'spent' }>
  | { type: 'finish'; reason: FinishReason; usage?: Usage }

export type TurnDecision = {
  resolution: 'confirmed' | 'rejected' | 'replied' | 'auto_decided' | 'expired' | 'closed'
  /** The arguments of the call, if a person changed them. */
  input?: JsonValue
  response?: JsonValue
  reason?: string
}

export interface Decisions {
  /** The decision on the approval or question that the engine named `key`; undefined while it is pending. */
  of(key: string): TurnDecision | undefined
}

/** `paused`: the engine did not answer lately and is not asked now; `trial`: the next run tries it. */
export const engineStates = ['available', 'paused', 'trial'] as const
export type EngineState = (typeof engineStates)[number]

/** The engines of this server, by name. */
export interface Engines {
  /** The engine of runs whose request and agent name none. */
  readonly defaultName: string
  /** Throws `engine_unknown`. */
  get(name: string): Engine
  /** Throws `engine_unknown` if the request names an engine that this server does not have. */
  resolve(name: string | undefined, agentId: string): string
  /** The engine that takes over if `name` is not available before its turn begins. */
  fallbackOf(name: string): string | undefined
}

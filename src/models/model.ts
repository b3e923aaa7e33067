// What a model is to us: messages and tools in, parts out, abortable. One call is
// one step of an agent; there is no loop in here.
//
// Parts come in arrays: everything that one read of the socket gave. The delta
// path runs for every token of every user, and an await per token is most of what
// such servers spend their time on.

import { AppError } from '../errors/app-error.ts'
import type { JsonValue, Usage } from '../journal/event.ts'

export type ModelMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string }
  | { role: 'assistant'; content: string; toolCalls?: { callId: string; name: string; input: JsonValue }[] }
  | { role: 'tool'; callId: string; name: string; content: string; isError: boolean }

export type ModelTool = { name: string; description: string; inputSchema: Record<string, unknown> }

export type ModelRequest = {
  /** The name after the slash of `provider/model`. */
  model: string
  messages: ModelMessage[]
  tools: ModelTool[]
  temperature?: number
  maxTokens?: number
}

/** A step that asks for more tool calls than this fails: each is an event, perhaps a question, and part of every later prompt. */
export const toolCallsMax = 128

export function tooManyToolCalls(): AppError {
  return new AppError(
    'tool_calls_too_many',
    `The model asked for more than ${toolCallsMax} tool calls in one step. Ask for less at once, or use another model.`,
  )
}

export type FinishReason = 'stop' | 'length' | 'tool-calls' | 'content-filter' | 'other'

export type ModelPart =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  /** Complete. `input` is absent where the arguments were not valid JSON; then `rawInput` holds them. */
  | { type: 'tool-call'; callId: string; name: string; input?: JsonValue; rawInput: string }
  /** Exactly one, last. A stream that ends without it was cut off. */
  | { type: 'finish'; reason: FinishReason; usage?: Usage }

export interface Model {
  /**
   * Streams one step. Throws AppErrors of kind `upstream` (`retryable` says whether asking again may help), before or
   * in the middle of the stream. When the provider's stream ends without its own end, throws
   * `model_stream_incomplete`. Aborting `signal` closes the provider's connection at once and makes the iterator throw.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelPart[]>
}

/** A named set of settings that a request may choose. */
export type ModelConfig = {
  name: string
  description?: string | undefined
  /** `provider/model`, or a model of the default provider; absent means the server's default. */
  model?: string | undefined
  temperature?: number | undefined
  maxTokens?: number | undefined
  /** Instead of the agent's own instructions. */
  systemPrompt?: string | undefined
  /** The only tools that are offered; absent means all that the agent allows. */
  tools?: string[] | undefined
}

export interface ModelConfigs {
  /** In the order of the file; never empty. */
  list(): readonly ModelConfig[]
  /** Without a name: the set called `default`, else the first. Throws `unknown_config`. */
  get(name: string | undefined): ModelConfig
}

export interface Models {
  /** `provider/model` that is used when a request names none. */
  readonly defaultModel: string
  /** A request's `model` → `provider/model`. Without a slash it is the default provider's. Throws `unknown_model`. */
  resolve(name: string | undefined): string
  /** The model behind a resolved name. Throws `unknown_model` where its provider is gone or has no key. */
  open(resolved: string): Model
  /** What can be used, for people: provider, whether it is ready, and why not. */
  list(): { provider: string; ready: boolean; reason: string | null }[]
}

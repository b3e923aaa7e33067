// The interface of a model: messages and tools in, a stream of parts out, abortable. One call
// is one step of an agent; the loop over steps is in `runs/`.
//
// Parts come in arrays, one array for each read of the socket. This code runs for every token
// of every user, and an await for each token would dominate the CPU time.

import { AppError } from '../errors/app-error.ts'
import type { JsonValue, Usage } from '../journal/event.ts'
import type { FileReference } from '../journal/part.ts'
import type { ProviderOptions } from '../journal/provider-options.ts'
import type { Sampling, ToolChoice } from '../journal/sampling.ts'
import type { ProviderTool, ProviderToolName } from '../journal/provider-tools.ts'

/** A file of a message. Without `data` it is not sent; its label in the text of the message stands for it. */
export type ModelFile = FileReference & { data?: Uint8Array }

export type ModelContent = { type: 'text'; text: string } | ({ type: 'file' } & ModelFile)

export type ModelMessage =
  | { role: 'system'; content: string }
  | {
      role: 'user'
      /** The text, with a label for each file. */
      content: string
      /** Present if the message has files; it says the same as `content`, in order, with the files. */
      parts?: ModelContent[]
    }
  | {
      role: 'assistant'
      content: string
      toolCalls?: { callId: string; name: string; input: JsonValue }[]
      /** The state that the same provider sent at the end of this message; see `finish`. */
      providerState?: JsonValue
    }
  | {
      role: 'tool'
      callId: string
      name: string
      content: string
      isError: boolean
      /** The files of the result; `content` has a label for each. */
      files?: ModelFile[]
    }

export type ModelTool = {
  name: string
  description: string
  inputSchema: Record<string, unknown>
  /** The arguments must follow the schema exactly, if the provider has such a mode. */
  strict?: boolean
}

/** The first line of the instructions for a summary of a conversation. The demo model recognises them by it. */
export const summaryTask = 'You write the memory of a conversation between a user and an assistant.'

/** What is known about the final answer before the model is asked. */
export type WantedAnswer = {
  /** The JSON Schema that it has to fit. The prompt states it, too. */
  schema: Record<string, JsonValue>
  /** True if the provider's own mode for structured output is to be used. Then every final answer is JSON. */
  native?: boolean
  /** The answer that code alone can give. Real models ignore it; the demo model answers with it. */
  computed?: Record<string, JsonValue>
}

export type ModelRequest = {
  /** The name after the slash of `provider/model`. */
  model: string
  messages: ModelMessage[]
  tools: ModelTool[]
  /** Tools that the provider runs itself. A client whose provider has none ignores them. */
  providerTools?: { name: string; options?: ProviderOptions | undefined }[]
  temperature?: number
  maxTokens?: number
  sampling?: Sampling
  /** Absent: the model decides. */
  toolChoice?: ToolChoice
  /** By the name of the provider; a client reads only its own. */
  providerOptions?: ProviderOptions
  answer?: WantedAnswer
  /** Sent as the header of the same name. */
  traceparent?: string
  /** Names the session at a provider that keeps sessions. */
  user?: string
}

/** A step with more tool calls fails, because each call is a journal event and part of every later prompt. */
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
  /** Always complete. `input` is absent if the arguments could not be parsed; `rawInput` always holds them as text. */
  | { type: 'tool-call'; callId: string; name: string; input?: JsonValue; rawInput: string }
  /** A tool that the provider runs itself while it answers. It must not be executed here. `callId` is the provider's. */
  | { type: 'provider-call'; callId: string; name: string; input: JsonValue }
  | { type: 'provider-result'; callId: string; output: JsonValue; isError: boolean }
  /** A page or a document that the answer is based on. */
  | { type: 'source'; url?: string; title?: string; mediaType?: string }
  /** The tokens that the provider reported for an attempt that failed. The error follows, or the parts of the next attempt. */
  | { type: 'spent'; usage: Usage }
  /** Exactly one, as the last part. A stream that ends without it was truncated. */
  | {
      type: 'finish'
      reason: FinishReason
      usage?: Usage
      /** What the provider needs back with this message, for example signed reasoning. Opaque outside of `models/`. */
      state?: JsonValue
      /** Settings and options of the request that the provider does not have, and that were not sent. */
      ignored?: string[]
    }

export interface Model {
  /**
   * Streams one step. Throws AppErrors of kind `upstream`, before or in the middle of the stream; `retryable` says
   * whether a retry may help. Throws `model_stream_incomplete` if the provider's stream was truncated. Aborting `signal`
   * closes the provider's connection at once and makes the iterator throw. A `spent` part comes before the error, if the
   * provider had reported tokens.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelPart[]>
  /** A request is likely to follow within milliseconds. Absent if there is nothing to prepare. */
  prepare?(): void
}

/** A named set of settings that a request may choose. */
export type ModelConfig = {
  name: string
  description?: string | undefined
  /** `provider/model`, a model of the default provider, or a list of them; absent means the server's default. */
  model?: string | readonly string[] | undefined
  /** The name of an engine, for example `ag-ui:weather`; absent means that of the agent, or the server's default. */
  engine?: string | undefined
  temperature?: number | undefined
  maxTokens?: number | undefined
  /** Passed to the provider by name. */
  providerOptions?: ProviderOptions | undefined
  /** Tools that the provider runs itself; absent means those of the agent. */
  providerTools?: ProviderTool[] | undefined
  /** Replaces the agent's own instructions. */
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

/** In US dollars for a million tokens. */
export type ModelPrice = {
  input: number
  /** For tokens that are read from the prompt cache; absent: as `input`. */
  cached?: number | undefined
  /** For tokens that are written to the prompt cache; absent: as `input`. */
  cacheWrite?: number | undefined
  output: number
}

/** What is known about a model. Null means that it is not known. */
export type ModelFacts = {
  /** The size of the context window, in tokens. */
  contextTokens: number | null
  maxOutputTokens: number | null
  vision: boolean | null
  pdf: boolean | null
  reasoning: boolean | null
  /** Whether the provider can hold the answer to a JSON Schema. */
  structuredOutput: boolean | null
  /** `above`: other prices for the whole request if its input has more than `inputTokens`. */
  price: (ModelPrice & { above?: (ModelPrice & { inputTokens: number }) | undefined }) | null
}

export interface ModelTable {
  /** The day of the prices, as `2026-11-16`. */
  readonly asOf: string
  /** The facts of `provider/model`; undefined if the model is not in the table. A dated version has the facts of its base name. */
  find(model: string): ModelFacts | undefined
  /** In millionths of a dollar, rounded up. Undefined if the price is not known, or the tokens were not reported. */
  costOf(model: string, usage: Usage | undefined): number | undefined
  /** Every model of the table, as `provider/model`. */
  names(): readonly string[]
}

export interface Models {
  /** `provider/model` that is used when a request names none. */
  readonly defaultModel: string
  /** A request's `model` → `provider/model`. Without a slash it is the default provider's, or that of the provider that is known for such names. Throws `unknown_model`. */
  resolve(name: string | undefined): string
  /** The model for a resolved name. Throws `unknown_model` if its provider is not configured any more. */
  open(resolved: string): Model
  /** The models that the operator listed for named providers, as `provider/model`. */
  listed(): readonly string[]
  /** The tools that the provider of a resolved model can run itself. */
  providerTools(resolved: string): readonly ProviderToolName[]
  /** All providers, whether each can be used, and if not, the reason. */
  list(): { provider: string; ready: boolean; reason: string | null }[]
}

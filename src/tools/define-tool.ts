// `defineTool`: a tool that is written in code, in polylog.config.ts or in a program that
// embeds the server. Nothing is checked here; all problems of a configuration are reported
// together when the server is built (code-tool.ts).

import type { JsonValue, ToolEffect } from '../journal/event.ts'
import type { OutputOf, StandardSchema } from '../kit/standard-schema.ts'

/** The schema of the arguments: zod (4.2 or later), any Standard Schema that gives JSON Schema, or plain JSON Schema. */
export type ToolInput = StandardSchema | { readonly type: 'object'; readonly [keyword: string]: unknown }

export type ToolArguments<Input extends ToolInput> = Input extends StandardSchema
  ? OutputOf<Input>
  : Record<string, JsonValue>

export type ToolCall = {
  /** Aborted when the call times out or its run is cancelled. Pass it on to `fetch` and other slow work. */
  readonly signal: AbortSignal
  /** The same for all retries of one call. Pass it on if the service behind the tool supports idempotency keys. */
  readonly idempotencyKey: string
  /** The user on whose behalf the tool runs. */
  readonly userId: string
  readonly conversationId: string | null
  readonly runId: string
  /** Shows people how far the call is, one line at a time. */
  progress(message: string): void
  /**
   * Adds an image or another file to the result of the call; the model sees it beside what `execute` returns. The type is found
   * in the bytes.
   */
  attach(file: AttachedFile): void
}

export type AttachedFile = {
  readonly bytes: Uint8Array
  readonly name?: string | undefined
  readonly mediaType?: string | undefined
}

/** A method type, so that the author of a plain JSON Schema may say which arguments it gives. */
type ConfirmRule<Arguments> = { rule(input: Arguments): boolean }['rule']

export type ToolOptions<Input extends ToolInput> = ToolShape<Input, ToolArguments<Input>>

type ToolShape<Input extends ToolInput, Arguments> = {
  /** Letters, digits, `_` and `-`, at most 64. */
  readonly name: string
  /** What the model reads to decide whether to use the tool. */
  readonly description: string
  readonly input: Input
  /**
   * `read` changes nothing and may run again. `idempotent` may run again with the same `idempotencyKey`. `unsafe` is never
   * run a second time by the server: after a crash in the middle of a call, a person decides.
   */
  readonly effect: ToolEffect
  /** Whether a person confirms each call. If absent: `never` for `read`, `always` for the others. */
  readonly confirm?: 'always' | 'never' | ConfirmRule<Arguments> | undefined
  /** How long a call may take; if absent, POLYLOG_TOOL_TIMEOUT_MS. */
  readonly timeoutMs?: number | undefined
  /** Tells people in one sentence what a call will do; they read it before they confirm. */
  describe?(input: Arguments): string
  /** Does the work. The result is shown to the model as JSON. Throw a `ToolError` to tell the model why it did not work. */
  execute(input: Arguments, call: ToolCall): unknown
}

/** A tool whose argument types are no longer known to the compiler. */
export type ToolDefinition = ToolShape<ToolInput, Record<string, JsonValue>>

export function defineTool<const Input extends ToolInput>(tool: ToolOptions<Input>): ToolDefinition {
  const place = callerPlace()
  // Plain JavaScript may pass anything; the check of the configuration says what is wrong with it.
  if (place !== null && typeof tool === 'object' && tool !== null) places.set(tool, place)
  return tool as unknown as ToolDefinition
}

const places = new WeakMap<object, string>()

/** Where a tool was defined (`file:line`), for error messages. */
export function placeOfTool(tool: object): string | null {
  return places.get(tool) ?? null
}

/** The file and line that called `defineTool`. */
function callerPlace(): string | null {
  const trace: { stack?: string } = {}
  Error.captureStackTrace(trace, defineTool)
  const line = trace.stack?.split('\n')[1] ?? ''
  return /(?:file:\/\/)?([^\s()]+:\d+):\d+\)?$/.exec(line)?.[1] ?? null
}

const toolErrorBrand = Symbol.for('polylog.tool-error')

/**
 * Thrown by `execute` if the tool works and its answer is negative: the model reads the message. `outcome: 'unknown'` says
 * that the effect may have happened, for example if a service did not answer; a person then checks it.
 */
export class ToolError extends Error {
  override readonly name = 'ToolError'
  readonly outcome: 'failed' | 'unknown'
  readonly [toolErrorBrand] = true

  constructor(message: string, options: { outcome?: 'failed' | 'unknown'; cause?: unknown } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.outcome = options.outcome ?? 'failed'
  }
}

/** Also true for an error of another copy of this package. */
export function isToolError(thrown: unknown): thrown is ToolError {
  return typeof thrown === 'object' && thrown !== null && toolErrorBrand in thrown
}

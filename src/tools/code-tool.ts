// Turns a tool that is written in code (define-tool.ts) into one of ours. Its functions are
// code of the operator: whatever they throw, return or change hurts their own call only.
// Each function gets a copy of the arguments; an exception in something that `execute` left
// running fails the call (user-code.ts). Only code that blocks the thread cannot be contained.

import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import { shownConversationIdOrNull } from '../kit/conversation-id.ts'
import { beginningOf } from '../kit/cut-text.ts'
import { isStandardSchema, issuesSentence, type SchemaResult } from '../kit/standard-schema.ts'
import { messageOf } from '../kit/thrown-message.ts'
import { callUserCode, isPromiseLike, runUserCode } from '../kit/user-code.ts'
import { isToolError, type ToolCall, type ToolDefinition } from './define-tool.ts'
import { excerpt, withArguments } from './excerpt.ts'
import { restLeftOut, toPlainJson } from './plain-json.ts'
import type { Tool, ToolContext, ToolFile, ToolResult } from './tool.ts'

export type CodeToolOptions = {
  /** For tools that say nothing about it. */
  timeoutMs: number
  log: { warn(details: object, message: string): void }
}

/** Longer sentences are cut; a person reads them before a click. */
const sentenceCharsMax = 2000
/** What the model is shown, as for `bash_run`: a longer output would push the question out of its memory. */
const outputCharsMax = 30_000

/** The definition must have been checked, and `inputSchema` is what the check made of its input. */
export function toCodeTool(
  definition: ToolDefinition,
  inputSchema: Record<string, unknown>,
  { timeoutMs, log }: CodeToolOptions,
): Tool {
  const { name, effect, confirm = effect === 'read' ? 'never' : 'always' } = definition
  const codeName = `the tool ${name}`
  const schemaName = `the input schema of the tool ${name}`

  /** Undefined if the arguments do not fit, or if only an asynchronous check can tell. */
  function argumentsOf(input: JsonValue): { value: Record<string, JsonValue> } | undefined {
    const result = callUserCode(schemaName, () => validate(definition, input))
    return isPromiseLike(result) || result.issues !== undefined ? undefined : result
  }

  async function run(input: JsonValue, context: ToolContext): Promise<ToolResult> {
    try {
      const parsed = await runUserCode(schemaName, () => validate(definition, input))
      if (parsed.issues !== undefined) {
        const sentence = `The arguments do not fit: ${issuesSentence(parsed.issues)}.`
        return { ok: false, output: { error: sentence }, summary: sentence }
      }
      const files: ToolFile[] = []
      const result = await runUserCode(codeName, () => definition.execute(parsed.value, callOf(context, files)))
      return { ...resultOf(name, toPlainJson(result)), ...(files.length === 0 ? {} : { files: [...files] }) }
    } catch (thrown) {
      if (isToolError(thrown)) return negative(name, thrown.outcome, messageOf(thrown))
      const { runId, callId } = context
      if (!context.signal.aborted) log.warn({ err: thrown, tool: name, runId, callId }, 'a tool in code threw an error')
      throw new AppError('tool_failed', `${name} failed: ${messageOf(thrown)}`)
    }
  }

  return {
    name,
    description: definition.description,
    effect,
    confirm:
      typeof confirm === 'function'
        ? (input) => mustConfirm(() => callUserCode(codeName, () => confirm(needed(argumentsOf(input)))))
        : confirm,
    howToAllow: `Set confirm to 'never' for the tool ${name} where it is defined (polylog.config.ts).`,
    inputSchema,
    check: (input) => complaintOf(() => callUserCode(schemaName, () => validate(definition, input))),
    timeoutMs: definition.timeoutMs ?? timeoutMs,
    outputCharsMax,
    describe(input) {
      const fallback = `Use ${name}${withArguments(input)}`
      const parsed = argumentsOf(input)
      if (definition.describe === undefined || parsed === undefined) return fallback
      const sentence: unknown = callUserCode(codeName, () => definition.describe?.(parsed.value))
      return typeof sentence === 'string' && sentence.trim() !== '' ? beginningOf(sentence, sentenceCharsMax) : fallback
    },
    run,
  }
}

type Parsed = SchemaResult<Record<string, JsonValue>>

/** The arguments as the functions of the tool get them. Always a copy. */
function validate(definition: ToolDefinition, input: JsonValue): Parsed | Promise<Parsed> {
  const copy = structuredClone(input)
  if (!isStandardSchema(definition.input)) return { value: copy as Record<string, JsonValue> }
  return definition.input['~standard'].validate(copy) as Parsed | Promise<Parsed>
}

function complaintOf(check: () => Parsed | Promise<Parsed>): string | null {
  try {
    const result = check()
    // An asynchronous check is made by `run`, which can wait for it.
    return isPromiseLike(result) || result.issues === undefined ? null : issuesSentence(result.issues)
  } catch (thrown) {
    return `the check of the arguments failed: ${messageOf(thrown)}`
  }
}

/** Only a plain `false` skips the confirmation: not an exception, not a promise, not a forgotten `return`. */
function mustConfirm(ask: () => unknown): 'always' | 'never' {
  try {
    return ask() === false ? 'never' : 'always'
  } catch {
    return 'always'
  }
}

function needed<T>(parsed: { value: T } | undefined): T {
  if (parsed === undefined) throw new Error('the arguments are not known yet')
  return parsed.value
}

function callOf(context: ToolContext, files: ToolFile[]): ToolCall {
  return {
    signal: context.signal,
    idempotencyKey: context.idempotencyKey,
    userId: context.owner,
    conversationId: shownConversationIdOrNull(context.conversationId),
    runId: context.runId,
    progress: (message) => context.progress(typeof message === 'string' ? message : messageOf(message)),
    attach({ bytes, name, mediaType }) {
      if (!(bytes instanceof Uint8Array)) throw new TypeError('attach needs bytes: a Buffer or another Uint8Array.')
      // A copy, because the tool may use its buffer again.
      files.push({ bytes: new Uint8Array(bytes), name: textOrNothing(name), mediaType: textOrNothing(mediaType) })
    },
  }
}

function textOrNothing(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function resultOf(name: string, output: JsonValue): ToolResult {
  // Of a long output only the beginning is needed.
  const text = typeof output === 'string' ? output.slice(0, 1000) : output === null ? '' : summaryText(output)
  return { ok: true, output, summary: excerpt(text, 200) || `${name} is done.` }
}

/** Writing megabytes as JSON for one line would be a waste. */
function summaryText(output: JsonValue): string {
  if (typeof output !== 'object' || output === null) return String(output)
  if (Array.isArray(output)) {
    if (output.at(-1) === restLeftOut) return `more than ${output.length - 1} entries`
    return `${output.length} ${output.length === 1 ? 'entry' : 'entries'}`
  }
  return withArguments(output).replace(/^ with /, '')
}

function negative(name: string, outcome: 'failed' | 'unknown', message: string): ToolResult {
  if (outcome === 'unknown') throw new AppError('tool_failed', message, { details: { outcome: 'unknown' } })
  return { ok: false, output: { error: message }, summary: message || `${name} did not work.` }
}

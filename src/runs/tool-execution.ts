// Runs one tool call and returns its outcome as a value. Whatever the tool does
// (succeeds, fails, throws, hangs, ignores its signal, returns megabytes), the result
// is a `tool.done` that fits the journal. Only an aborted run makes this throw.

import { AppError, type ErrorValue } from '../errors/app-error.ts'
import type { FileService } from '../files/file-service.ts'
import type { EventData, JsonValue } from '../journal/event.ts'
import { fileLabel } from '../journal/message-parts.ts'
import type { FileReference } from '../journal/part.ts'
import type { CallState } from '../journal/run-state.ts'
import { type Clock, elapsedMs } from '../kit/clock.ts'
import { beginningOf } from '../kit/cut-text.ts'
import { defined } from '../kit/defined.ts'
import type { Ids } from '../kit/ids.ts'
import type { Tool, ToolContext, ToolFile, ToolResult } from '../tools/tool.ts'
import { storeResultFiles } from './stored-files.ts'
import { inlineOutputCharsMax, storeOutput } from './stored-output.ts'

export type CallContext = {
  clock: Clock
  ids: Ids
  owner: string
  runId: string
  conversationId: string | null
  idempotencyKey: string
  traceparent?: string
  signal: AbortSignal
  progress(message: string): void
  workspace?: { dir: string }
  putBlob(id: string, body: string): Promise<void>
  putFile(file: ToolFile): ReturnType<FileService['put']>
}

type Done = EventData<'tool.done'>

const summaryCharsMax = 500
const errorCharsMax = 2000
/** Each progress message is an event for every reader. Longer output is available in the result of the call. */
const progressMax = 2000

export async function executeCall(tool: Tool, call: CallState, input: JsonValue, context: CallContext): Promise<Done> {
  const startedAt = context.clock.monotonic()
  const settle = (rest: Omit<Done, 'callId' | 'messageId' | 'durationMs'>): Done => ({
    callId: call.callId,
    messageId: context.ids(),
    durationMs: elapsedMs(context.clock, startedAt),
    ...rest,
    summary: beginningOf(rest.summary, summaryCharsMax),
  })
  try {
    const result = await withinLimits(tool, input, call, context)
    const { files, notes } = await storeResultFiles(result.files ?? [], (file) => context.putFile(file))
    const output = withNotes(result.output, [...labelsOf(files, result.output), ...notes])
    const stored = await storeOutput(output, Math.min(tool.outputCharsMax, inlineOutputCharsMax), context)
    return settle({
      outcome: result.ok ? 'succeeded' : 'failed',
      ...stored,
      summary: result.summary,
      ...defined({
        error: result.ok ? undefined : { code: 'tool_failed', message: result.summary },
        modified: result.modified,
        paths: result.paths,
        files: files.length === 0 ? undefined : files,
      }),
    })
  } catch (thrown) {
    // When a run ends, run-ending.ts writes the results of its open calls.
    if (context.signal.aborted) throw context.signal.reason
    const error = errorOf(tool, thrown)
    const unknown = error.code === 'tool_outcome_unknown'
    return settle({
      outcome: unknown ? 'unknown' : 'threw',
      summary: error.message,
      error,
      fullLength: 0,
      truncated: false,
    })
  }
}

/** Wires that know only text show these names. Other outputs stay as the tool returned them, and `files` names the files. */
function labelsOf(files: readonly FileReference[], output: JsonValue): string[] {
  return typeof output === 'string' ? files.map(fileLabel).filter((label) => !output.includes(label)) : []
}

function withNotes(output: JsonValue, notes: readonly string[]): JsonValue {
  if (notes.length === 0) return output
  return typeof output === 'string' ? [output, ...notes].join('\n') : { output, notes: [...notes] }
}

/** Waits for the tool, its time limit or the end of the run, whichever comes first. A tool that ignores its signal keeps running unobserved. */
async function withinLimits(tool: Tool, input: JsonValue, call: CallState, context: CallContext): Promise<ToolResult> {
  const limit = new AbortController()
  const toolContext: ToolContext = {
    owner: context.owner,
    runId: context.runId,
    callId: call.callId,
    conversationId: context.conversationId,
    idempotencyKey: context.idempotencyKey,
    signal: limit.signal,
    now: () => context.clock.now(),
    progress: boundedProgress(context.progress),
    ...defined({ workspace: context.workspace, traceparent: context.traceparent }),
  }
  let removeListeners = () => {}
  try {
    return await new Promise<ToolResult>((resolve, reject) => {
      const stop = (reason: unknown) => {
        limit.abort(reason)
        reject(reason)
      }
      const timer = context.clock.after(tool.timeoutMs, () => stop(timedOut(tool)))
      const onAbort = () => stop(context.signal.reason)
      removeListeners = () => {
        timer.cancel()
        context.signal.removeEventListener('abort', onAbort)
      }
      if (context.signal.aborted) return onAbort()
      context.signal.addEventListener('abort', onAbort, { once: true })
      tool.run(input, toolContext).then(resolve, reject)
    })
  } finally {
    removeListeners()
  }
}

function boundedProgress(progress: CallContext['progress']): CallContext['progress'] {
  let count = 0
  return (message) => {
    count += 1
    if (count < progressMax) progress(message)
    else if (count === progressMax) progress('More progress of this call is not shown.')
  }
}

function timedOut(tool: Tool): AppError {
  const seconds = tool.timeoutMs / 1000
  if (tool.effect === 'unsafe') {
    return new AppError(
      'tool_outcome_unknown',
      `${tool.name} did not answer within ${seconds} s; it may have happened. Check before you try again.`,
    )
  }
  return new AppError('tool_timed_out', `${tool.name} did not answer within ${seconds} s.`)
}

function errorOf(tool: Tool, thrown: unknown): ErrorValue {
  if (thrown instanceof AppError) {
    const value = thrown.toValue()
    // The tool reports that its effect may have happened. For an unsafe tool this replaces any other error code.
    const unknown = tool.effect === 'unsafe' && thrown.details?.['outcome'] === 'unknown'
    return unknown ? { ...value, code: 'tool_outcome_unknown' } : value
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return { code: 'tool_failed', message: beginningOf(`${tool.name} failed: ${message}`, errorCharsMax) }
}

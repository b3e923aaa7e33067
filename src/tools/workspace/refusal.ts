// Refusals of the file tools. A refusal becomes a tool result with `ok: false`, so that the
// model reads the reason and tries something else. Errors that are not listed here (such as a
// full disk) stay exceptions. No message may name a path outside the workspace.

import { AppError } from '../../errors/app-error.ts'
import type { Tool, ToolResult } from '../tool.ts'

export function outside(shown: string): AppError {
  return new AppError('workspace_outside', `${shown} is outside the working directory.`)
}

export function refused(message: string): AppError {
  return new AppError('file_refused', message)
}

const sentences: Record<string, (shown: string) => string> = {
  ENOENT: (shown) => `There is no file or directory ${shown}.`,
  ENOTDIR: (shown) => `A part of ${shown} is a file, not a directory.`,
  EISDIR: (shown) => `${shown} is a directory.`,
  EACCES: (shown) => `${shown} may not be used: permission denied.`,
  EPERM: (shown) => `${shown} may not be used: permission denied.`,
  EROFS: (shown) => `${shown} is on a file system that cannot be written.`,
  ENAMETOOLONG: (shown) => `The name ${shown} is too long.`,
  ELOOP: (shown) => `${shown} is a link, or a link leads to it; links are not followed.`,
  ENXIO: (shown) => `${shown} is not a regular file.`,
  EINVAL: (shown) => `The name ${shown} cannot be used.`,
}

/** Turns a system error into an AppError with our own message, because the system's message contains real paths. */
export function toFileError(error: unknown, shown: string): AppError {
  if (error instanceof AppError) return error
  const code = codeOf(error)
  const sentence = sentences[code]
  if (sentence !== undefined) return refused(sentence(shown))
  return new AppError('tool_failed', `${shown} could not be used: ${code || 'an unexpected error'}.`, { cause: error })
}

export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : ''
}

/** Wraps a tool's `run`: refusals become results with `ok: false`, which also carry the fields of `extra`. */
export function withRefusalsAsResults(
  run: Tool['run'],
  extra: Pick<ToolResult, 'modified' | 'paths'> = {},
): Tool['run'] {
  return async (input, context) => {
    try {
      return await run(input, context)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      if (error.code !== 'workspace_outside' && error.code !== 'file_refused') throw error
      return refusalResult(error.message, extra)
    }
  }
}

export function refusalResult(message: string, extra: Pick<ToolResult, 'modified' | 'paths'> = {}): ToolResult {
  return { ok: false, output: { ok: false, error: message }, summary: message, ...extra }
}

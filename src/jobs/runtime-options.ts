// Reads the `runtime_options` of a job. Unknown options are refused, so that a misspelt one is
// not ignored silently.

import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import { executionModes, type ExecutionMode } from '../skills/skill.ts'

export type RuntimeOptions = {
  mode: ExecutionMode
  requireReply: boolean
  replyTimeoutMs: number
  given: Record<string, JsonValue>
}

const flags = ['verbose', 'no_cache', 'debug', 'debug_keep_temp', 'interactive_require_user_reply'] as const
/** Names of one option, the current one first. If a request has several of them, the first of this list counts. */
const timeouts = [
  'session_timeout_sec',
  'interactive_wait_timeout_sec',
  'hard_wait_timeout_sec',
  'wait_timeout_sec',
] as const
const timeoutSecondsDefault = 1200
/** One year. A longer timeout is certainly a mistake. */
const timeoutSecondsMax = 366 * 24 * 3600
const known: ReadonlySet<string> = new Set([...flags, ...timeouts, 'execution_mode'])

/** Throws `runtime_option_unknown` or `runtime_option_invalid`. */
export function readRuntimeOptions(given: Record<string, JsonValue>): RuntimeOptions {
  for (const name of Object.keys(given)) {
    if (!known.has(name)) {
      throw new AppError(
        'runtime_option_unknown',
        `There is no runtime option ${JSON.stringify(name)}. There are: ${[...known].join(', ')}.`,
      )
    }
  }
  for (const name of flags) {
    const value = given[name]
    if (value !== undefined && typeof value !== 'boolean') throw wrong(name, 'true or false')
  }
  for (const name of timeouts) {
    const value = given[name]
    if (value === undefined) continue
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > timeoutSecondsMax) {
      throw wrong(name, `a whole number of seconds from 1 to ${timeoutSecondsMax}`)
    }
  }
  const mode = given['execution_mode'] ?? 'auto'
  if (!executionModes.includes(mode as ExecutionMode))
    throw wrong('execution_mode', `one of ${executionModes.join(', ')}`)
  const timeout = timeouts.map((name) => given[name]).find((value) => value !== undefined)
  return {
    mode: mode as ExecutionMode,
    requireReply: given['interactive_require_user_reply'] !== false,
    replyTimeoutMs: Number(timeout ?? timeoutSecondsDefault) * 1000,
    given,
  }
}

function wrong(name: string, allowed: string): AppError {
  return new AppError('runtime_option_invalid', `The runtime option ${name} must be ${allowed}.`)
}

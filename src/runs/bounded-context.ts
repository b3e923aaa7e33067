// Limits the caller's context to a size that fits a prompt, and reads the setting in it
// that affects the run (`enabledTools`). Pure.

import { isRecord } from '../kit/is-record.ts'

type ContextBounds = {
  readonly depthMax: number
  readonly itemsMax: number
  readonly keysMax: number
  readonly charsMax: number
}

const chatBounds: ContextBounds = { depthMax: 3, itemsMax: 20, keysMax: 24, charsMax: 500 }

/** For applications whose whole state is context. It is bounded as a whole, by `wideCharsMax`. */
const wideBounds: ContextBounds = { depthMax: 12, itemsMax: 500, keysMax: 500, charsMax: 16_000 }
const wideCharsMax = 64 * 1024
const enabledToolsMax = 12

const composerKeys = ['enabledTools', 'attachments', 'feishuEnabled', 'inputMode', 'skillActionId', 'rawInputs']

export function boundContext(context: Record<string, unknown>): Record<string, unknown> {
  const bounded = bound(context, 0, chatBounds) as Record<string, unknown>
  const composer = context.composer
  if (isRecord(composer)) {
    const known = Object.entries(composer).filter(([key]) => composerKeys.includes(key))
    bounded.composer = bound(Object.fromEntries(known), 1, chatBounds)
  }
  return bounded
}

/** As `boundContext`, but only a context that is too large as a whole is cut. */
export function boundWholeContext(context: Record<string, unknown>): Record<string, unknown> {
  const bounded = bound(context, 0, wideBounds) as Record<string, unknown>
  return JSON.stringify(bounded).length <= wideCharsMax ? bounded : boundContext(context)
}

/**
 * `context.composer.enabledTools`: the tools of the agent that the caller allows for this run; an empty list allows none.
 * Undefined if the caller sent no list. Tools that only some runs get (`Tool.audience`) are not affected.
 */
export function enabledTools(context: Record<string, unknown>): string[] | undefined {
  const composer = context.composer as { enabledTools?: unknown } | null | undefined
  const names = composer?.enabledTools
  if (!Array.isArray(names)) return undefined
  return names.filter((name): name is string => typeof name === 'string' && name.length <= 64).slice(0, enabledToolsMax)
}

function bound(value: unknown, depth: number, bounds: ContextBounds): unknown {
  const { depthMax, itemsMax, keysMax, charsMax } = bounds
  if (typeof value === 'string') return value.length > charsMax ? `${value.slice(0, charsMax)}…` : value
  if (value === null || typeof value !== 'object') return value
  if (depth >= depthMax) return '[…]'
  if (Array.isArray(value)) return value.slice(0, itemsMax).map((item) => bound(item, depth + 1, bounds))
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, keysMax)
      .map(([key, item]) => [key.slice(0, charsMax), bound(item, depth + 1, bounds)]),
  )
}

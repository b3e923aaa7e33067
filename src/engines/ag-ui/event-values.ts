// Reads values in the events of a remote agent: arguments, results, usage. The remote side
// chooses them all, so each may have any type and any depth.

import type { JsonValue, Usage } from '../../journal/event.ts'
import { isTokenCount } from '../../journal/usage.ts'
import { defined } from '../../kit/defined.ts'
import { isDeeperThan } from '../../kit/json-depth.ts'
import { isRecord } from '../../kit/is-record.ts'

const depthMax = 100
const parsedOutputCharsMax = 256 * 1024

export function parseArguments(text: string): JsonValue {
  if (text.trim() === '') return {}
  if (!isDeeperThan(text, depthMax)) {
    try {
      return JSON.parse(text) as JsonValue
    } catch {
      // Shown as they are.
    }
  }
  return { arguments: text.slice(0, 4000) }
}

/** A result is text; if it is JSON, it is shown as such. */
export function outputIn(content: unknown): JsonValue {
  const text = typeof content === 'string' ? content : contentText(content)
  if (/^\s*[[{]/.test(text) && text.length <= parsedOutputCharsMax && !isDeeperThan(text, depthMax)) {
    try {
      return JSON.parse(text) as JsonValue
    } catch {
      // It only looks like JSON.
    }
  }
  return text
}

function contentText(content: unknown): string {
  if (!Array.isArray(content)) return content === undefined || content === null ? '' : JSON.stringify(content)
  return content
    .map((part: unknown) => {
      if (!isRecord(part)) return ''
      return typeof part['text'] === 'string' ? part['text'] : `[${textIn(part['type']) ?? 'content'}]`
    })
    .join('\n')
}

/** One entry for each model that was used. */
export function remoteUsage(list: unknown): Usage | undefined {
  if (!Array.isArray(list) || list.length === 0) return undefined
  const entries = list.filter(isRecord)
  const sum = (name: string) => {
    const counts = entries.map((entry) => entry[name]).filter(isTokenCount)
    const total = counts.reduce((left, right) => left + right, 0)
    return counts.length > 0 && isTokenCount(total) ? total : undefined
  }
  return defined({
    inputTokens: sum('inputTokens'),
    cachedTokens: sum('cachedInputTokens'),
    cacheWriteTokens: sum('cacheWriteInputTokens'),
    outputTokens: sum('outputTokens'),
    reasoningTokens: sum('reasoningTokens'),
  })
}

export function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

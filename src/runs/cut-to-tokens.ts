// Cuts a text to a number of tokens and says so at its end. Pure.

import { estimateTokens } from '../kit/token-estimate.ts'

/** The tokens of the note, of a message around the text, and of what rounding adds. */
const noteTokens = 48

export function cutToTokens(
  text: string,
  tokens: number,
  noteOf = (shown: number) => `${shown} of ${text.length} characters`,
): string {
  if (4 + estimateTokens(text) <= tokens) return text
  // In quarters of a token, as `estimateTokens` counts them.
  let left = Math.max(0, tokens - noteTokens) * 4
  let end = 0
  while (end < text.length) {
    left -= text.charCodeAt(end) > 0x2e7f ? 4 : 1
    if (left < 0) break
    end += 1
  }
  return `${text.slice(0, end).toWellFormed()}\n[cut to fit: ${noteOf(end)}]`
}

// Decides which part of a prompt is left out if it does not fit. Pure.
//
// A provider can cache only a prompt whose beginning stays the same. So the history is cut rarely and
// then by a lot, always before the message of a user, and the place is remembered in the journal:
// the next requests begin with the same message until the next cut.

import type { ModelMessage } from '../models/model.ts'
import type { ContextRoom } from './context-room.ts'
import { cutToTokens } from './cut-to-tokens.ts'
import type { PromptParts } from './prompt.ts'
import { readOnNote } from '../journal/tool-outcome.ts'
import { blockTokens, messageTokens, type PromptBlock, promptBlock } from './prompt-blocks.ts'

/** After a cut that cannot be made in portions, the kept part takes at most this share of its room. The rest is for what comes. */
const keptShare = 1 / 2
/** Each result of the newest step keeps at least this much, even if the request is then too large. */
const resultTokensMin = 64

/**
 * How many blocks of the history have to be left out. `incomplete`: messages before the history could not be read, so a cut is
 * needed even if the rest fits.
 */
export function historyToDrop(parts: PromptParts, room: ContextRoom, incomplete = false): number {
  const { history, summary, asked, steps } = parts
  const firstTurn = history.findIndex(({ startsTurn }) => startsTurn)
  // Providers require that the first message is a user's.
  const leading = firstTurn === -1 ? history.length : firstTurn
  const size = blockTokens(history)
  const left = room.memory - blockTokens(summary) - blockTokens(asked) - blockTokens(steps)
  if (!incomplete && size <= left) return leading
  const fitting = incomplete ? Math.min(left, size) : left
  return Math.max(leading, afterPortions(history, size - fitting, room.portion) ?? firstKept(history, fitting))
}

/** The index of the first turn after whole portions that together have `excess` tokens; undefined if no turn is left then. */
function afterPortions(history: readonly PromptBlock[], excess: number, portion: number): number | undefined {
  const dropped = Math.max(1, Math.ceil(excess / portion)) * portion
  let tokens = 0
  for (const [at, block] of history.entries()) {
    if (tokens >= dropped && block.startsTurn) return at
    tokens += block.tokens
  }
  return undefined
}

/**
 * The index of the first block of the newest turns that fit, for a history with turns that are larger than a portion. The newest
 * turn may take all of the room.
 */
function firstKept(history: readonly PromptBlock[], left: number): number {
  let kept = history.length
  let tokens = 0
  for (let at = history.length - 1; at >= 0; at -= 1) {
    const block = history[at] as PromptBlock
    tokens += block.tokens
    if (tokens > (kept === history.length ? left : left * keptShare)) break
    if (block.startsTurn) kept = at
  }
  return kept
}

/** How many steps of the run itself have to be left out. The newest one is never among them: the model must see its results. */
export function stepsToDrop({ summary, asked, steps }: PromptParts, room: ContextRoom): number {
  const newest = steps.at(-1)
  const left = room.memory - blockTokens(summary) - blockTokens(asked)
  if (newest === undefined || blockTokens(steps) <= left) return 0
  let kept = steps.length - 1
  let tokens = newest.tokens
  while (kept > 0) {
    tokens += (steps[kept - 1] as PromptBlock).tokens
    if (tokens > left * keptShare) break
    kept -= 1
  }
  return kept
}

/** Shortens the results of the newest step if they do not fit the window of the model, the longest ones first. */
export function withFittingResults(parts: PromptParts, room: ContextRoom): PromptParts {
  const { summary, history, asked, steps } = parts
  const newest = steps.at(-1)
  if (newest === undefined) return parts
  const others = blockTokens(summary) + blockTokens(history) + blockTokens(asked) + blockTokens(steps.slice(0, -1))
  const left = room.window - others
  if (newest.tokens <= left) return parts
  return { ...parts, steps: [...steps.slice(0, -1), fitResults(newest, left)] }
}

function fitResults(block: PromptBlock, tokens: number): PromptBlock {
  const results = block.messages.filter(({ role }) => role === 'tool').map(messageTokens)
  const share = shareOf(results, tokens - (block.tokens - results.reduce((sum, size) => sum + size, 0)))
  const limit = Math.max(resultTokensMin, share)
  const messages = block.messages.map((message, at): ModelMessage => {
    if (message.role !== 'tool' || messageTokens(message) <= limit) return message
    const { content } = message
    // The first id is that of the message with the calls, the next ones are those of their results.
    const noteOf = (shown: number) => readOnNote(block.ids[at] ?? '', shown, content.length)
    return { ...message, content: cutToTokens(content, limit, noteOf) }
  })
  return promptBlock(messages, [...block.ids])
}

/** The largest size that all can have if each of them keeps at most that and together they take at most `tokens`. */
function shareOf(sizes: readonly number[], tokens: number): number {
  let left = tokens
  const ascending = sizes.toSorted((a, b) => a - b)
  for (const [index, size] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index))
    if (size > share) return share
    left -= size
  }
  return left
}

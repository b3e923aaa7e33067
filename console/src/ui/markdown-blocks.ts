// Markdown that grows, and in a replay shrinks: the text is split into blocks, and only the last ones are read again when text
// is added or removed at its end. Blocks that have not changed are the same objects as before, so they are not drawn again.

import { marked, type Token, type TokensList } from 'marked'

export type MarkdownBlock = {
  /** Where the block begins in the text; it stays the same while the text grows. */
  start: number
  raw: string
  token: Token
}

/** The first `settled` blocks are exactly the beginning of the text, and more text cannot change them. */
export type MarkdownText = { text: string; blocks: readonly MarkdownBlock[]; settled: number }

export const noMarkdown: MarkdownText = { text: '', blocks: [], settled: 0 }

export function extendMarkdown(known: MarkdownText, text: string): MarkdownText {
  if (text === known.text) return known
  const kept = keptBlocks(known, text)
  const last = kept.at(-1)
  const from = last === undefined ? 0 : last.start + last.raw.length
  const blocks = [...kept, ...blocksFrom(text, from)]
  return { text, blocks, settled: settledBlocks(text, blocks, kept.length) }
}

function keptBlocks({ text: before, blocks, settled }: MarkdownText, text: string): MarkdownBlock[] {
  const known = blocks.slice(0, settled)
  if (text.startsWith(before)) return known
  if (!before.startsWith(text)) return []
  // What followed the last blocks, and settled them, may be gone.
  return known.filter(({ start, raw }) => start + raw.length <= text.length).slice(0, -2)
}

/** A blank line between two blocks belongs to the first of them, so that the blocks make up the whole text. */
function blocksFrom(text: string, from: number): MarkdownBlock[] {
  const blocks: MarkdownBlock[] = []
  let start = from
  for (const token of lex(text.slice(from))) {
    const last = blocks.at(-1)
    if (token.type === 'space' && last !== undefined) last.raw += token.raw
    else blocks.push({ start, raw: token.raw, token })
    start += token.raw.length
  }
  return blocks
}

/**
 * A block is settled if two others follow, the first of them after a blank line: what looks like a rule may become one more
 * item of the list before it. The parser changes some characters (tabs in lists, for
 * example), after which positions no longer fit; from there on everything is read again.
 */
function settledBlocks(text: string, blocks: readonly MarkdownBlock[], known: number): number {
  let settled = known
  for (let index = known; index < blocks.length - 2; index++) {
    const { start, raw } = blocks[index] as MarkdownBlock
    if (text.slice(start, start + raw.length) !== raw) break
    if (raw.endsWith('\n\n')) settled = index + 1
  }
  return settled
}

function lex(text: string): TokensList | Token[] {
  try {
    return marked.lexer(text, { gfm: true })
  } catch {
    // A text that the parser cannot read is shown as it is.
    return [{ type: 'code', raw: text, text }]
  }
}

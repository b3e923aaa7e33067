// Markdown that grows: the text is split into blocks, and only the last block is read again when text is added. Blocks
// that have not changed are the same objects as before, so they are not drawn again.

import { marked, type Token, type TokensList } from 'marked'

export type MarkdownBlock = {
  /** Where the block begins in the text; it stays the same while the text grows. */
  start: number
  raw: string
  token: Token
}

export type MarkdownText = { text: string; blocks: readonly MarkdownBlock[] }

export const noMarkdown: MarkdownText = { text: '', blocks: [] }

export function extendMarkdown(known: MarkdownText, text: string): MarkdownText {
  if (text === known.text) return known
  const kept = text.startsWith(known.text) ? known.blocks.slice(0, -1) : []
  const last = kept.at(-1)
  const from = last === undefined ? 0 : last.start + last.raw.length
  return { text, blocks: [...kept, ...blocksFrom(text, from)] }
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

function lex(text: string): TokensList | Token[] {
  try {
    return marked.lexer(text, { gfm: true })
  } catch {
    // A text that the parser cannot read is shown as it is.
    return [{ type: 'code', raw: text, text }]
  }
}

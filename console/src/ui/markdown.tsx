// Markdown of a model, drawn while it grows. See markdown-blocks.ts for how and markdown-html.ts for what is allowed.

import { memo, useEffect, useMemo, useRef, useState } from 'react'
import type { Tokens } from 'marked'
import { useWords } from '../i18n/words.ts'
import { CodeBlock } from './code-block.tsx'
import { extendMarkdown, type MarkdownBlock, noMarkdown } from './markdown-blocks.ts'
import { htmlOf } from './markdown-html.ts'
import { uiWords } from './words.ts'
import './markdown.css'

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const known = useRef(noMarkdown)
  known.current = extendMarkdown(known.current, text)
  const { blocks } = known.current
  const drawn = useDrawn(blocks.length)
  return (
    <div className="markdown">
      {blocks.slice(0, drawn).map((block) => (
        <Block key={block.start} block={block} />
      ))}
    </div>
  )
})

/** A long text that comes at once is drawn in portions, so that the page stays alive. */
const portion = 60

/** How many of `count` blocks to draw now. */
function useDrawn(count: number): number {
  const [drawn, setDrawn] = useState(portion)
  useEffect(() => {
    if (drawn >= count) return
    const frame = requestAnimationFrame(() => setDrawn(drawn + portion))
    return () => cancelAnimationFrame(frame)
  }, [drawn, count])
  return drawn
}

const Block = memo(
  function Block({ block: { token } }: { block: MarkdownBlock }) {
    const words = useWords(uiWords)
    const drawn = useMemo(() => (token.type === 'code' || token.type === 'space' ? null : htmlOf(token)), [token])
    if (drawn === null) {
      const { text = '', lang } = token as Partial<Tokens.Code>
      return token.type === 'space' ? null : <CodeBlock code={text} language={lang} />
    }
    return (
      <>
        <div dir="auto" className="markdown-block" dangerouslySetInnerHTML={{ __html: drawn.html }} />
        {drawn.rowsLeftOut === 0 ? null : <p className="faint">{words.rowsLeftOut(drawn.rowsLeftOut)}</p>}
      </>
    )
  },
  (before, after) => before.block.raw === after.block.raw,
)

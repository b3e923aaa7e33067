// Markdown of a model, drawn while it grows. See markdown-blocks.ts for how and markdown-html.ts for what is allowed.

import { memo, useMemo, useRef } from 'react'
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
  return (
    <div className="markdown">
      {known.current.blocks.map((block) => (
        <Block key={block.start} block={block} />
      ))}
    </div>
  )
})

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

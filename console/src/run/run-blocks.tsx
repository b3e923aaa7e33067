// What a run said and did, in order: messages, reasoning, tool calls, questions. The chat, the page of a run and the
// arena draw runs with it.

import { memo } from 'react'
import type { Block, TextBlock } from '@polylog/client'
import { useWords } from '../i18n/words.ts'
import { Markdown } from '../ui/markdown.tsx'
import { QuestionCard } from './question-card.tsx'
import type { RunView, ToolTimes } from './run-view.ts'
import { ToolCard } from './tool-card.tsx'
import { runWords } from './words.ts'
import './run-blocks.css'

type RunBlocksProps = {
  runId: string
  view: RunView
  /** False in a replay. */
  canDecide?: boolean
}

export function RunBlocks({ runId, view, canDecide = true }: RunBlocksProps) {
  return (
    <div className="run-blocks">
      {view.state.blocks.map((block) => (
        <RunBlock
          key={`${block.type} ${block.id}`}
          runId={runId}
          block={block}
          times={block.type === 'tool' ? view.tools[block.id] : undefined}
          canDecide={canDecide}
        />
      ))}
    </div>
  )
}

type RunBlockProps = { runId: string; block: Block; times: ToolTimes | undefined; canDecide: boolean }

export const RunBlock = memo(function RunBlock({ runId, block, times, canDecide }: RunBlockProps) {
  const words = useWords(runWords)
  switch (block.type) {
    case 'text':
      return block.text === '' ? null : <Message block={block} />
    case 'reasoning':
      return (
        <details className="run-reasoning">
          <summary>{words.reasoning}</summary>
          <Markdown text={block.text} />
        </details>
      )
    case 'tool':
      return <ToolCard runId={runId} block={block} times={times} canDecide={canDecide} />
    case 'question':
      return <QuestionCard block={block} canAnswer={canDecide} />
  }
})

function Message({ block }: { block: TextBlock }) {
  const words = useWords(runWords)
  const links = block.sources.filter(({ url }) => url !== undefined && /^https?:/.test(url))
  return (
    <div className="run-message" data-state={block.state}>
      {block.state === 'superseded' ? (
        <details>
          <summary className="faint">{words.superseded}</summary>
          <del>{block.text}</del>
        </details>
      ) : (
        <Markdown text={block.text} />
      )}
      {links.length === 0 ? null : (
        <ul className="run-sources" aria-label={words.sources}>
          {links.map(({ id, url, title }) => (
            <li key={id}>
              <a href={url} target="_blank" rel="noopener noreferrer nofollow">
                {title ?? new URL(url ?? '').host}
              </a>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

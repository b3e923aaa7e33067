// What a person saw at this moment: the fold of all frames up to it. The block that the event belongs to is marked, and each
// block leads to the event that it began with.

import { type ReactNode, useEffect, useRef } from 'react'
import type { Block } from '@polylog/client'
import { useWords } from '../../i18n/words.ts'
import type { JournalRow } from '../../run/journal-row.ts'
import { RunBlock } from '../../run/run-blocks.tsx'
import { isEnded, type RunView } from '../../run/run-view.ts'
import { StatusBadge } from '../../run/status-badge.tsx'
import { runWords } from '../../run/words.ts'
import { Problem } from '../../ui/problem.tsx'
import { VirtualList, type VirtualListHandle } from '../../ui/virtual-list.tsx'
import { runsWords } from './words.ts'
import './moment-view.css'

/** The usual height of a block in pixels. */
const blockHeight = 64

type MomentViewProps = {
  runId: string
  view: RunView
  row: JournalRow | undefined
  /** False in a replay: decisions cannot be made. */
  isHead: boolean
  seqOf(block: Block): number | undefined
  onSeekSeq(seq: number): void
}

export function MomentView({ runId, view, row, isHead, seqOf, onSeekSeq }: MomentViewProps) {
  const words = useWords(runsWords)
  const states = useWords(runWords)
  const list = useRef<VirtualListHandle>(null)
  const { state } = view
  const blocks = state.blocks.filter((block) => block.type !== 'text' || block.text !== '')
  const current = row === undefined ? -1 : blocks.findLastIndex((block) => blockIdsOf(row).includes(block.id))
  // The question comes before the blocks, the end of the run after them.
  const count = blocks.length + 2
  const newest = isHead || current < 0 ? blocks.length + 1 : current + 1
  const length = blocks.at(-1)?.type === 'text' ? (blocks.at(-1) as { text: string }).text.length : 0
  useEffect(() => list.current?.scrollTo(newest, 'end'), [newest, length, blocks.length])
  return (
    <VirtualList
      ref={list}
      label={words.sideConversation}
      count={count}
      rowHeight={blockHeight}
      keyOf={(index) => {
        const block = blocks[index - 1]
        return index === 0 ? 'question' : block === undefined ? 'end' : `${block.type} ${block.id}`
      }}
      renderRow={(index) => {
        if (index === 0) {
          return (
            <MomentRow seq={1} isCurrent={row?.type === 'run.accepted'} onSeekSeq={onSeekSeq}>
              <p className="moment-question" dir="auto">
                <span className="visually-hidden">{words.asked}: </span>
                {state.input}
              </p>
            </MomentRow>
          )
        }
        const block = blocks[index - 1]
        if (block === undefined) {
          return (
            <div className="moment-end">
              {blocks.length === 0 ? <p className="faint">{words.nothingYet}</p> : null}
              {state.error === undefined ? null : <Problem error={state.error} />}
              {isEnded(view) ? (
                <span className="row row-wrap">
                  <StatusBadge status={state.status} />
                  {state.reason === undefined ? null : (
                    <span className="faint">{states.stoppedBecause(state.reason)}</span>
                  )}
                </span>
              ) : isHead ? null : (
                <p className="faint">{words.replayNote}</p>
              )}
            </div>
          )
        }
        return (
          <MomentRow seq={seqOf(block)} isCurrent={index === current + 1} onSeekSeq={onSeekSeq}>
            <RunBlock
              runId={runId}
              block={block}
              times={block.type === 'tool' ? view.tools[block.id] : undefined}
              canDecide={isHead}
            />
          </MomentRow>
        )
      }}
    />
  )
}

type MomentRowProps = {
  seq: number | undefined
  isCurrent: boolean
  onSeekSeq(seq: number): void
  children: ReactNode
}

function MomentRow({ seq, isCurrent, onSeekSeq, children }: MomentRowProps) {
  const words = useWords(runsWords)
  return (
    <div className="moment-row" data-current={isCurrent}>
      {seq === undefined ? (
        <span />
      ) : (
        <button
          type="button"
          className="moment-seq numbers"
          aria-label={words.showInEvents(seq)}
          title={words.showInEvents(seq)}
          onClick={() => onSeekSeq(seq)}
        >
          {seq}
        </button>
      )}
      <div className="moment-block">{children}</div>
    </div>
  )
}

/** The ids of the blocks that an event changes. */
function blockIdsOf({ data }: JournalRow): string[] {
  const { messageId, reasoningId, callId, interactionId } = data as Partial<Record<string, unknown>>
  return [messageId, reasoningId, callId, interactionId].filter((id): id is string => typeof id === 'string')
}

// One decision in the list: who asks for what, since when, and how long there is time.

import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Interaction } from '@polylog/client'
import { useWords } from '../../i18n/words.ts'
import { Countdown } from '../../ui/countdown.tsx'
import { Icon } from '../../ui/icon.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import { inboxWords } from './words.ts'

type DecisionRowProps = { item: Interaction; href: string; isCurrent: boolean; side?: ReactNode }

export function DecisionRow({ item, href, isCurrent, side }: DecisionRowProps) {
  const words = useWords(inboxWords)
  const isQuestion = item.kind === 'question'
  return (
    <Link href={href} className="split-row" aria-current={isCurrent ? 'true' : undefined}>
      <Icon name={isQuestion ? 'chat' : 'tool'} />
      <span className="split-row-title cut">{titleOf(item, words)}</span>
      <span className="split-row-side">
        {side ?? (item.expiresAtMs === null ? <TimeAgo at={item.createdAtMs} /> : <Countdown at={item.expiresAtMs} />)}
      </span>
      <span className="split-row-note cut" dir="auto">
        {withVisibleControls(item.message)}
      </span>
    </Link>
  )
}

/** The tool that wants to act; a question has none that matters to a person. */
export function titleOf({ kind, toolName }: Interaction, words: { question: string }): string {
  return kind === 'question' ? words.question : (toolName ?? words.question)
}

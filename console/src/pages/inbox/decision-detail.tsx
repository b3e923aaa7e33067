// The chosen decision: what is asked, by which run, and the card that decides it.

import { Link, useLocation } from 'wouter'
import type { Interaction } from '@polylog/client'
import { useShortcuts } from '../../app/shortcuts.ts'
import { useWords } from '../../i18n/words.ts'
import { type Decision, DecisionCard } from '../../run/decision-card.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Keys } from '../../ui/button.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { showToast } from '../../ui/toast.tsx'
import { titleOf } from './decision-row.tsx'
import { inboxWords } from './words.ts'
import './decision-detail.css'

export function DecisionDetail({ item, onDecided }: { item: Interaction; onDecided(): void }) {
  const words = useWords(inboxWords)
  const notices: Record<Decision, string> = {
    approved: words.approvedNotice(item.toolName ?? ''),
    denied: words.deniedNotice(item.toolName ?? ''),
    answered: words.answeredNotice,
  }
  return (
    <article className="decision" aria-label={titleOf(item, words)}>
      <DecisionHead item={item} />
      <DecisionCard
        item={item}
        hasKeys
        onDecided={(decision) => {
          showToast({ tone: 'good', text: notices[decision] })
          onDecided()
        }}
      />
    </article>
  )
}

/** The name of the tool or question, and links to its run and conversation. */
export function DecisionHead({ item, back = '/inbox' }: { item: Interaction; back?: string }) {
  const words = useWords(inboxWords)
  const [, navigate] = useLocation()
  const run = `/runs/${encodeURIComponent(item.runId)}`
  useShortcuts([{ keys: 'o', label: words.openRun, run: () => navigate(run) }])
  return (
    <header className="decision-head">
      <Link href={back} className="split-back row">
        <Icon name="left" />
        {words.back}
      </Link>
      <h2 className="cut">{titleOf(item, words)}</h2>
      <p className="row row-wrap faint">
        <span>
          {words.asked} <TimeAgo at={item.createdAtMs} />
        </span>
        <Link href={run} className="row">
          {words.openRun} <Keys text="O" />
        </Link>
        {item.conversationId === null ? null : (
          <Link href={`/chat/${encodeURIComponent(item.conversationId)}`}>{words.openConversation}</Link>
        )}
      </p>
    </header>
  )
}

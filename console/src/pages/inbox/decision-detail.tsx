// The chosen decision: what is asked, by which run, and the card that decides it.

import { Link } from 'wouter'
import type { Interaction, JsonValue } from '@polylog/client'
import { useWords } from '../../i18n/words.ts'
import { ApprovalCard } from '../../run/approval-card.tsx'
import { QuestionCard } from '../../run/question-card.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Keys } from '../../ui/button.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { showToast } from '../../ui/toast.tsx'
import { titleOf } from './decision-row.tsx'
import { inboxWords } from './words.ts'
import './decision-detail.css'

export function DecisionDetail({ item, onDecided }: { item: Interaction; onDecided(): void }) {
  const words = useWords(inboxWords)
  const decided = (notice: string) => {
    showToast({ tone: 'good', text: notice })
    onDecided()
  }
  return (
    <article className="decision" aria-label={titleOf(item, words)}>
      <DecisionHead item={item} />
      {item.kind === 'question' ? (
        <QuestionCard
          hasKeys
          block={{
            id: item.id,
            prompt: item.message,
            options: listIn(item.payload, 'options'),
            open: true,
            ...(item.expiresAt === null ? {} : { expiresAt: item.expiresAt }),
          }}
          fields={listIn(item.payload, 'fields').filter((name) => typeof name === 'string')}
          onAnswered={() => decided(words.answeredNotice)}
        />
      ) : (
        <div className="decision-card">
          <ApprovalCard
            id={item.id}
            hasKeys
            block={{
              name: item.toolName ?? '',
              message: item.message,
              input: (item.payload ?? {}) as JsonValue,
            }}
            onDecided={(decision) =>
              decided(
                decision === 'approved'
                  ? words.approvedNotice(item.toolName ?? '')
                  : words.deniedNotice(item.toolName ?? ''),
              )
            }
          />
        </div>
      )}
    </article>
  )
}

/** The name of what is asked, and links to where it comes from. */
export function DecisionHead({ item, back = '/inbox' }: { item: Interaction; back?: string }) {
  const words = useWords(inboxWords)
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
        <Link href={`/runs/${encodeURIComponent(item.runId)}`} className="row">
          {words.openRun} <Keys text="O" />
        </Link>
        {item.conversationId === null ? null : (
          <Link href={`/chat/${encodeURIComponent(item.conversationId)}`}>{words.openConversation}</Link>
        )}
      </p>
    </header>
  )
}

/** The arguments of a question hold its options and fields; whoever asks may also have sent something else. */
function listIn(payload: unknown, name: 'options' | 'fields'): JsonValue[] {
  const list =
    typeof payload === 'object' && payload !== null ? (payload as Record<string, JsonValue>)[name] : undefined
  return Array.isArray(list) ? list : []
}

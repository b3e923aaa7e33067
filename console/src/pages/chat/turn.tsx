// One turn of the chat: the question, the run that answers it, and what can be done with the answer.

import { memo, type ReactNode, useEffect, useRef } from 'react'
import { Link } from 'wouter'
import type { Part, StoredMessage } from '@polylog/client'
import { useLocale, useWords } from '../../i18n/words.ts'
import { ConnectionBadge } from '../../run/connection-badge.tsx'
import { RunBlocks } from '../../run/run-blocks.tsx'
import type { FollowedRun } from '../../run/run-follower.ts'
import { answerText, isEnded } from '../../run/run-view.ts'
import { useRun } from '../../run/use-run.ts'
import { runWords } from '../../run/words.ts'
import { announce } from '../../ui/announcements.ts'
import { IconButton } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { durationText } from '../../ui/countdown.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Markdown } from '../../ui/markdown.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { AnswerFeedback } from './answer-feedback.tsx'
import { CutNotice, CutPanel } from './cut-panel.tsx'
import { MessageFiles } from './message-files.tsx'
import type { Turn } from './turns.ts'
import { chatWords } from './words.ts'
import './turn.css'

type TurnProps = {
  turn: Turn
  isLast: boolean
  /** The person has pressed stop, and the server has not answered yet. */
  isStopping: boolean
  onEnd(): void
  onRegenerate(): void
}

export const ChatTurn = memo(function ChatTurn({ turn, ...rest }: TurnProps) {
  return (
    <article className="turn">
      {turn.question === null ? null : <Question text={questionText(turn.question)} parts={turn.question.parts} />}
      {turn.runId === null ? (
        <StoredAnswer messages={turn.messages} />
      ) : (
        <RunAnswer {...rest} turn={turn} runId={turn.runId} />
      )}
    </article>
  )
})

/** The content of a message with files has their names in brackets; the parts have the text alone. */
function questionText({ content, parts }: StoredMessage): string {
  if (parts === undefined) return content
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

export function Question({
  text,
  parts,
  children,
}: {
  text: string
  parts?: readonly Part[] | undefined
  children?: ReactNode
}) {
  const words = useWords(chatWords)
  return (
    <div className="question" role="group" aria-label={words.you}>
      {parts === undefined ? null : <MessageFiles parts={parts} />}
      {text === '' ? null : (
        <div className="question-text" dir="auto">
          {text}
        </div>
      )}
      {children}
    </div>
  )
}

function StoredAnswer({ messages }: { messages: readonly StoredMessage[] }) {
  return (
    <div className="answer">
      {messages
        .filter(({ role }) => role === 'assistant')
        .map(({ id, content }) => (
          <Markdown key={id} text={content} />
        ))}
    </div>
  )
}

function RunAnswer({ turn, runId, isLast, isStopping, onEnd, onRegenerate }: TurnProps & { runId: string }) {
  const words = useWords(chatWords)
  const states = useWords(runWords)
  const { follower, ...followed } = useRun(runId)
  const { view, connection, error } = followed
  const { state } = view
  const ended = isEnded(view)
  const wasEnded = useRef(ended)
  const answer = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (ended && !wasEnded.current) {
      announce(words.answerDone)
      onEnd()
    }
    wasEnded.current = ended
  }, [ended])
  const isAsking = state.status === 'awaiting_input'
  useEffect(() => {
    if (isAsking) announce(words.needsYou)
  }, [isAsking])

  // The journal of an old run may be gone; its messages stay.
  if (connection === 'failed' && error?.status === 404 && turn.messages.length > 0) {
    return <StoredAnswer messages={turn.messages} />
  }
  const isEmpty = state.blocks.every((block) => block.type === 'text' && block.text === '')
  return (
    <div ref={answer} className="answer" role="group" tabIndex={-1} aria-label={words.assistant} aria-busy={!ended}>
      {isEmpty && !ended && connection !== 'failed' ? (
        <div className="answer-waiting soft">
          <Spinner label={words.working} />
          {state.status === 'queued' && state.start !== null ? words.startsSoon : words.working}
        </div>
      ) : null}
      <RunBlocks runId={runId} view={view} />
      {state.error === undefined ? null : <Problem error={state.error} />}
      {state.status === 'cancelled' ? (
        <p className="answer-note faint">
          <Icon name="stop" /> {state.reason === undefined ? states.cancelled : states.stoppedBecause(state.reason)}
        </p>
      ) : null}
      {isStopping && !ended ? (
        <p className="answer-note soft" role="status">
          <Spinner label={states.stopping} /> {states.stopping}
        </p>
      ) : null}
      {connection === 'failed' && error !== null ? <Problem error={error} /> : null}
      {connection === 'cut' ? <CutPanel runId={runId} follower={follower} /> : null}
      <CutNotice followed={followed} />
      <AnswerFoot
        turn={turn}
        runId={runId}
        followed={followed}
        isLast={isLast}
        onRegenerate={() => {
          // The button goes away, and the next answer will be here.
          answer.current?.focus({ preventScroll: true })
          onRegenerate()
        }}
        onCut={() => follower.cut()}
      />
    </div>
  )
}

type AnswerFootProps = {
  turn: Turn
  runId: string
  followed: FollowedRun
  isLast: boolean
  onRegenerate(): void
  onCut(): void
}

function AnswerFoot({ turn, runId, followed, isLast, onRegenerate, onCut }: AnswerFootProps) {
  const words = useWords(chatWords)
  const locale = useLocale()
  const { view, connection, recovered } = followed
  const { state, endedAt } = view
  if (!isEnded(view)) {
    return (
      <footer className="answer-foot">
        <ConnectionBadge connection={connection} recovered={recovered} />
        {connection === 'live' || connection === 'caught-up' ? (
          <button type="button" className="answer-cut" onClick={onCut}>
            <Icon name="plug" size={14} />
            {words.cut}
          </button>
        ) : null}
        <RunLink runId={runId} />
      </footer>
    )
  }
  const tokens = (state.usage?.inputTokens ?? 0) + (state.usage?.outputTokens ?? 0)
  const answer = state.blocks.findLast(
    (block) => block.type === 'text' && block.role === 'assistant' && block.state === 'done',
  )
  return (
    <footer className="answer-foot">
      <span className="answer-actions">
        <CopyButton text={() => answerText(view)} label={words.copyAnswer} />
        {isLast ? <IconButton icon="refresh" small label={words.regenerate} onClick={onRegenerate} /> : null}
        {answer === undefined ? null : (
          <AnswerFeedback messageId={answer.id} stored={turn.messages.find(({ id }) => id === answer.id)} />
        )}
        <RunLink runId={runId} />
      </span>
      <span className="answer-facts faint numbers cut">
        {[
          state.start?.metadata.model,
          endedAt === undefined || state.start === null ? undefined : durationText(endedAt - state.start.createdAtMs),
          tokens === 0 ? undefined : words.tokens(tokens.toLocaleString(locale)),
        ]
          .filter((fact) => fact !== undefined)
          .join(' · ')}
      </span>
      {connection === 'caught-up' ? <ConnectionBadge connection={connection} recovered={recovered} /> : null}
    </footer>
  )
}

function RunLink({ runId }: { runId: string }) {
  const words = useWords(chatWords)
  return (
    <Link
      className="button icon-button button-quiet button-small"
      href={`/runs/${encodeURIComponent(runId)}`}
      aria-label={words.openRun}
      title={words.openRun}
    >
      <Icon name="run" />
    </Link>
  )
}

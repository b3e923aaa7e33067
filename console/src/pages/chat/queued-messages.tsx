// Messages that wait for their turn, as chips above the field. A chip can be edited in its place, or removed, until its
// run starts.

import { type FormEvent, type KeyboardEvent, type RefObject, useEffect, useRef, useState } from 'react'
import type { StoredMessage } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { problemOf } from '../../api/use-loaded.ts'
import { shellWords } from '../../app/words.ts'
import { useWords } from '../../i18n/words.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { TextArea } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { isByKeyboard, useKeptFocus } from '../../ui/use-kept-focus.ts'
import { chatWords } from './words.ts'
import './queued-messages.css'

/** More lines scroll. */
const editLinesMax = 6

export type QueuedMessage = { runId: string; question: StoredMessage }

type QueuedMessagesProps = {
  queued: readonly QueuedMessage[]
  /** Gets the focus of a chip that goes away. */
  field: RefObject<HTMLElement | null>
  /** A message was changed or removed, or has started meanwhile. */
  onChange(): void
}

export function QueuedMessages({ queued, ...rest }: QueuedMessagesProps) {
  const words = useWords(chatWords)
  if (queued.length === 0) return null
  return (
    <ol className="queued" aria-label={words.queuedList}>
      {queued.map((message) => (
        <li key={message.runId} className="queued-chip">
          <QueuedChip message={message} {...rest} />
        </li>
      ))}
    </ol>
  )
}

type QueuedChipProps = Omit<QueuedMessagesProps, 'queued'> & { message: QueuedMessage }

function QueuedChip({ message: { runId, question }, field, onChange }: QueuedChipProps) {
  const words = useWords(chatWords)
  const shell = useWords(shellWords)
  const api = useApi()
  const [text, setText] = useState<string | null>(null)
  const [isSent, setSent] = useState(false)
  const edit = useRef<HTMLButtonElement>(null)
  const isEditing = text !== null
  const keptFocus = useKeptFocus(isEditing, edit)
  // The cursor of a text area begins before its text.
  useEffect(() => {
    const area = document.activeElement
    if (isEditing && area instanceof HTMLTextAreaElement) area.setSelectionRange(area.value.length, area.value.length)
  }, [isEditing])
  const change = async (request: { method: 'DELETE' } | { method: 'PATCH'; body: { input: string } }) => {
    setSent(true)
    try {
      await api.json(`/v1/agent/runs/${encodeURIComponent(runId)}`, request)
      setText(null)
    } catch (error) {
      // The editor stays, with what was written, unless the message has left the queue.
      const problem = problemOf(error)
      showProblem(problem.status === 409 ? words.queuedGone : words.queuedNotChanged, problem)
    }
    setSent(false)
    onChange()
  }
  const remove = async (toField: boolean) => {
    await change({ method: 'DELETE' })
    if (toField && document.activeElement === document.body) field.current?.focus()
  }
  const save = (event: FormEvent | KeyboardEvent) => {
    event.preventDefault()
    if (!isSent && text !== null && text.trim() !== '') void change({ method: 'PATCH', body: { input: text.trim() } })
  }
  if (text !== null) {
    return (
      <form className="queued-edit" onSubmit={save} {...keptFocus}>
        <div className="grow">
          {/* As in the field below: Enter saves, Shift+Enter starts a new line. */}
          <TextArea
            label={words.message}
            hideLabel
            autoFocus
            rows={Math.min(text.split('\n').length, editLinesMax)}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Escape') setText(null)
              if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) save(event)
            }}
          />
        </div>
        <Button small look="primary" type="submit" disabled={isSent || text.trim() === ''}>
          {shell.save}
        </Button>
        <Button small onClick={() => setText(null)}>
          {shell.cancel}
        </Button>
      </form>
    )
  }
  return (
    <>
      <Icon name="clock" size={14} />
      <bdi className="grow cut">{question.content}</bdi>
      {/* The server does not change a message with files. */}
      {question.parts === undefined ? (
        <IconButton
          ref={edit}
          icon="edit"
          small
          disabled={isSent}
          label={`${words.editQueued}: ${question.content}`}
          onClick={() => setText(question.content)}
        />
      ) : null}
      <IconButton
        icon="close"
        small
        disabled={isSent}
        label={`${words.removeQueued}: ${question.content}`}
        onClick={(event) => void remove(isByKeyboard(event))}
      />
    </>
  )
}

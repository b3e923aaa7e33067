// Messages that wait for their turn, as chips above the field. A chip can be edited in its place, or removed, until its
// run starts.

import { type FormEvent, type RefObject, useRef, useState } from 'react'
import type { StoredMessage } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { problemOf } from '../../api/use-loaded.ts'
import { shellWords } from '../../app/words.ts'
import { useWords } from '../../i18n/words.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { isByKeyboard, useKeptFocus } from '../../ui/use-kept-focus.ts'
import { chatWords } from './words.ts'
import './queued-messages.css'

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
  const keptFocus = useKeptFocus(text !== null, edit)
  const change = async (request: { method: 'DELETE' } | { method: 'PATCH'; body: { input: string } }) => {
    setSent(true)
    try {
      await api.json(`/v1/agent/runs/${encodeURIComponent(runId)}`, request)
    } catch (error) {
      showProblem(words.queuedGone, problemOf(error))
    }
    setSent(false)
    setText(null)
    onChange()
  }
  const remove = async (toField: boolean) => {
    await change({ method: 'DELETE' })
    if (toField && document.activeElement === document.body) field.current?.focus()
  }
  const save = (event: FormEvent) => {
    event.preventDefault()
    if (text !== null && text.trim() !== '') void change({ method: 'PATCH', body: { input: text.trim() } })
  }
  if (text !== null) {
    return (
      <form className="queued-edit" onSubmit={save} {...keptFocus}>
        <div className="grow">
          <TextField
            label={words.message}
            hideLabel
            autoFocus
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => event.key === 'Escape' && setText(null)}
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
      {/* The files of a message stay as they are; its text alone can be changed. */}
      <IconButton
        ref={edit}
        icon="edit"
        small
        disabled={isSent}
        label={`${words.editQueued}: ${question.content}`}
        onClick={() => setText(question.content)}
      />
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

// Like, dislike and comment on an answer. Pressing the same thumb again takes it back.

import { type FormEvent, useId, useState } from 'react'
import type { StoredMessage } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { problemOf } from '../../api/use-loaded.ts'
import { shellWords } from '../../app/words.ts'
import { useWords } from '../../i18n/words.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextArea } from '../../ui/field.tsx'
import { showProblem, showToast } from '../../ui/toast.tsx'
import { chatWords } from './words.ts'

type Reaction = 'like' | 'dislike' | null

export function AnswerFeedback({ messageId, stored }: { messageId: string; stored: StoredMessage | undefined }) {
  const words = useWords(chatWords)
  const api = useApi()
  const [changed, setChanged] = useState<{ reaction: Reaction } | null>(null)
  const [isCommenting, setCommenting] = useState(false)
  const reaction = changed === null ? (stored?.feedback?.reaction ?? null) : changed.reaction
  const react = async (kind: 'like' | 'dislike') => {
    const before = reaction
    setChanged({ reaction: before === kind ? null : kind })
    try {
      const { state } = await api.json<{ state: Reaction }>(`/api/${kind}`, {
        method: 'POST',
        body: { message_id: messageId },
        repeatable: false,
      })
      setChanged({ reaction: state })
    } catch (error) {
      setChanged({ reaction: before })
      showProblem(words.feedbackFailed, problemOf(error))
    }
  }
  return (
    <>
      <IconButton
        icon="thumbUp"
        small
        label={words.like}
        aria-pressed={reaction === 'like'}
        onClick={() => void react('like')}
      />
      <IconButton
        icon="thumbDown"
        small
        label={words.dislike}
        aria-pressed={reaction === 'dislike'}
        onClick={() => void react('dislike')}
      />
      <IconButton icon="comment" small label={words.comment} onClick={() => setCommenting(true)} />
      {isCommenting ? <CommentDialog messageId={messageId} onClose={() => setCommenting(false)} /> : null}
    </>
  )
}

function CommentDialog({ messageId, onClose }: { messageId: string; onClose(): void }) {
  const words = useWords(chatWords)
  const shell = useWords(shellWords)
  const api = useApi()
  const form = useId()
  const [text, setText] = useState('')
  const [isSent, setSent] = useState(false)
  const send = async (event: FormEvent) => {
    event.preventDefault()
    setSent(true)
    try {
      await api.json('/api/text_feedback', {
        method: 'POST',
        body: { message_id: messageId, feedback_msg: text.trim() },
      })
      showToast({ tone: 'good', text: words.commentSent })
      onClose()
    } catch (error) {
      setSent(false)
      showProblem(words.feedbackFailed, problemOf(error))
    }
  }
  return (
    <Dialog
      title={words.commentTitle}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{shell.cancel}</Button>
          <Button look="primary" type="submit" form={form} disabled={isSent || text.trim() === ''}>
            {words.send}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={(event) => void send(event)}>
        <TextArea
          label={words.commentField}
          autoFocus
          maxLength={20_000}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </form>
    </Dialog>
  )
}

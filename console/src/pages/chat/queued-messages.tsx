// Messages that wait for their turn, as chips above the field. A chip can be edited or removed until its run starts.

import type { StoredMessage } from '@polylog/client'
import { useWords } from '../../i18n/words.ts'
import { IconButton } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { chatWords } from './words.ts'
import './queued-messages.css'

export type QueuedMessage = { runId: string; question: StoredMessage }

type QueuedMessagesProps = {
  queued: readonly QueuedMessage[]
  onEdit(message: QueuedMessage): void
  onRemove(message: QueuedMessage): void
}

export function QueuedMessages({ queued, onEdit, onRemove }: QueuedMessagesProps) {
  const words = useWords(chatWords)
  if (queued.length === 0) return null
  return (
    <ol className="queued" aria-label={words.queuedList}>
      {queued.map((message) => (
        <li key={message.runId} className="queued-chip">
          <Icon name="clock" size={14} />
          <bdi className="grow cut">{message.question.content}</bdi>
          <IconButton
            icon="edit"
            small
            label={`${words.editQueued}: ${message.question.content}`}
            onClick={() => onEdit(message)}
          />
          <IconButton
            icon="close"
            small
            label={`${words.removeQueued}: ${message.question.content}`}
            onClick={() => onRemove(message)}
          />
        </li>
      ))}
    </ol>
  )
}

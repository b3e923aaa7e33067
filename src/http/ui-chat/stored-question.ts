// Which stored question a request of useChat means: the one to answer again, or the one that an edited
// message replaces. A client names a message by an id of its own, by the id of a run (the id of an answer
// that was streamed), or by the id of a stored message (if the page loaded the history).

import type { MessageRow } from '../../stores/message-store.ts'
import type { ConversationRow } from '../../stores/conversation-store.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Services } from '../routes.ts'
import type { UiChatBody } from './ui-chat-body.ts'

/** As many as acceptance looks back for a question. */
const rowsMax = 2000

/** Undefined if the request asks something new. Throws if it wants another answer to a question that is not stored. */
export async function questionMeant(
  { conversations }: Pick<Services, 'conversations'>,
  conversation: Pick<ConversationRow, 'id'>,
  { trigger, messageId, messages }: UiChatBody,
): Promise<string | undefined> {
  const again = trigger === 'regenerate-message'
  if (messageId == null && !again) return undefined
  const { rows } = await conversations.messagesInAnyState(conversation, { limit: rowsMax, before: undefined })
  const active = rows.filter(({ state }) => state === 'active')
  const named = messageId == null ? undefined : questionOf(active, messageId)
  if (named !== undefined || !again) return named?.id
  // The client has another id for it, for example because it made its list of messages itself.
  const text = (messages.at(-1)?.parts ?? []).map((part) => (part.type === 'text' ? (part.text ?? '') : '')).join('')
  const questions = active.filter(({ role }) => role === 'user')
  const same = questions.findLast(({ content }) => content === text)
  if (same !== undefined) return same.id
  if (messageId == null) return questions.at(-1)?.id
  throw new AppError(
    'nothing_to_regenerate',
    `The chat has no message ${JSON.stringify(messageId)}, and no question with this text; send the question as a new message.`,
  )
}

/** The message with this id if it is a question, else the question that it answers. */
function questionOf(rows: readonly MessageRow[], id: string): MessageRow | undefined {
  const row =
    rows.find((each) => each.role === 'user' && (each.id === id || each.metadata['clientMessageId'] === id)) ??
    rows.find((each) => each.role !== 'user' && (each.id === id || each.runId === id))
  return row?.role === 'user' ? row : rows.find((each) => each.id === row?.parentId)
}

// Stored messages → the questions and answers that a chat client shows. A run with tool
// calls stores one message per step; here they become one answer with the text as it was
// streamed (a blank line between two steps). Its id is the id of the last step, the same
// that the `done` frame has. Pure.

import { joinMessages } from '../../dialects/message-text.ts'
import type { MessageRow } from '../../stores/message-store.ts'

export type ChatEntry = Pick<MessageRow, 'id' | 'runId' | 'role' | 'content' | 'createdAt'> & {
  /** The ids of all stored messages in this entry. */
  ids: string[]
}

/** A safety limit, far above the length of a real conversation. */
export const messagesMax = 100_000

/** The text of a run's answer, exactly as it was streamed. */
export function answerText(rows: readonly MessageRow[]): string {
  return joinMessages(
    rows.filter((row) => row.role === 'assistant' && row.state === 'active').map((row) => row.content),
  )
}

export function entriesOf(rows: readonly MessageRow[]): ChatEntry[] {
  const entries: ChatEntry[] = []
  const lastRows = new Map<ChatEntry, MessageRow>()
  for (const row of rows) {
    if (row.state !== 'active' || (row.role !== 'user' && row.role !== 'assistant')) continue
    const before = entries.at(-1)
    if (row.role === 'assistant' && row.runId !== null && before?.role === 'assistant' && before.runId === row.runId) {
      before.id = row.id
      before.ids.push(row.id)
      before.content = joinMessages([before.content, row.content])
      before.createdAt = row.createdAt
      lastRows.set(before, row)
    } else {
      const { id, runId, role, content, createdAt } = row
      const entry = { id, ids: [id], runId, role, content, createdAt }
      entries.push(entry)
      lastRows.set(entry, row)
    }
  }
  // An answer without text is one only if it is complete; otherwise its run has only called tools so far.
  return entries.filter((entry) => entry.content !== '' || !hasCalls(lastRows.get(entry)))
}

function hasCalls(row: MessageRow | undefined): boolean {
  return row?.metadata['toolCalls'] !== undefined
}

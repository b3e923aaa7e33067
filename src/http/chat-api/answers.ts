// Messages as the chat's client shows them: a question, an answer. What a run wrote in
// several steps, between its tool calls, is one answer with the text as it was streamed
// (a blank line between two steps); its id is that of the last step, which is the one
// that `done` gives. Pure.

import { joinMessages } from '../../dialects/message-text.ts'
import type { MessageRow } from '../../stores/message-store.ts'

export type Entry = Pick<MessageRow, 'id' | 'runId' | 'role' | 'content' | 'createdAt'> & {
  /** Of all the messages that it is made of. */
  ids: string[]
}

/** More rows than any conversation that a person reads. */
export const messagesMax = 100_000

/** The text of a run, word for word what its stream says. */
export function textOf(rows: readonly MessageRow[]): string {
  return joinMessages(
    rows.filter((row) => row.role === 'assistant' && row.state === 'active').map((row) => row.content),
  )
}

export function entriesOf(rows: readonly MessageRow[]): Entry[] {
  const entries: Entry[] = []
  for (const row of rows) {
    if (row.state !== 'active' || (row.role !== 'user' && row.role !== 'assistant')) continue
    const before = entries.at(-1)
    if (row.role === 'assistant' && row.runId !== null && before?.role === 'assistant' && before.runId === row.runId) {
      before.id = row.id
      before.ids.push(row.id)
      before.content = joinMessages([before.content, row.content])
      before.createdAt = row.createdAt
    } else
      entries.push({
        id: row.id,
        ids: [row.id],
        runId: row.runId,
        role: row.role,
        content: row.content,
        createdAt: row.createdAt,
      })
  }
  // A run that has only called tools so far has said nothing.
  return entries.filter((entry) => entry.role === 'user' || entry.content !== '')
}

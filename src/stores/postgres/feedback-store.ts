// Feedback on messages: at most one reaction per person and message, and any number of
// comments. Deleting a message deletes its feedback by cascade.

import type { FeedbackRow, FeedbackStore, Reaction } from '../feedback-store.ts'
import { type Columns, columnsOf, insertRow, rowReader } from './columns.ts'
import type { Db } from './connection.ts'
import type { PartAccess } from './part-access.ts'

/** Spelled as in the partial index. */
const isReaction = "kind IN ('like', 'dislike')"

const columns: Columns<FeedbackRow> = {
  messageId: 'value',
  owner: 'value',
  kind: 'value',
  text: 'value',
  incorrect: 'flag',
  unhelpful: 'flag',
  inappropriate: 'flag',
  at: 'value',
}
const toFeedback = rowReader<FeedbackRow>(columns)

export function feedbackStore({ read, write }: PartAccess): FeedbackStore {
  return {
    react: (row) =>
      write(async (db) => {
        if (!(await hasMessage(db, row.messageId))) return undefined
        const [before] = await db.all(
          `DELETE FROM feedback WHERE message_id = ? AND owner = ? AND ${isReaction} RETURNING kind`,
          row.messageId,
          row.owner,
        )
        if (before?.['kind'] === row.kind) return { reaction: null }
        await insertRow(db, 'feedback', columnsOf(columns, row))
        return { reaction: row.kind }
      }),
    addComment: (row) =>
      write(async (db) => {
        if (!(await hasMessage(db, row.messageId))) return false
        await insertRow(db, 'feedback', columnsOf(columns, row))
        return true
      }),
    feedbackOn: (messageId, owner) =>
      read(async (db) =>
        (
          await db.all('SELECT * FROM feedback WHERE message_id = ? AND owner = ? ORDER BY position', messageId, owner)
        ).map(toFeedback),
      ),
    feedbackIn: (conversationId, owner) =>
      read(async (db) => {
        const rows = await db.all(
          `SELECT message_id, max(kind) FILTER (WHERE ${isReaction}) AS reaction, count(*) FILTER (WHERE kind = 'comment') AS comments
           FROM messages JOIN feedback ON feedback.message_id = messages.id
           WHERE messages.conversation_id = ? AND feedback.owner = ? GROUP BY message_id`,
          conversationId,
          owner,
        )
        return new Map(
          rows.map((row) => [
            row['message_id'] as string,
            { reaction: row['reaction'] as Reaction | null, comments: row['comments'] as number },
          ]),
        )
      }),
  }
}

/** Locks the message, so that two reactions of one person come one after the other. */
async function hasMessage(db: Db, id: string): Promise<boolean> {
  return (await db.get('SELECT id FROM messages WHERE id = ? FOR NO KEY UPDATE', id)) !== undefined
}

// Feedback on messages: at most one reaction per person and message, and any number
// of comments. Deleting a message deletes its feedback by cascade.

import type { DatabaseSync } from 'node:sqlite'
import type { FeedbackRow, FeedbackStore, FeedbackSummary, Reaction } from '../feedback-store.ts'
import type { FeedbackCommands, Handlers } from './commands.ts'
import type { Row } from './connection.ts'
import type { PartAccess } from './part-access.ts'

/** Must be spelled exactly as in the partial index, or SQLite does not use the index. */
const isReaction = "kind IN ('like', 'dislike')"

function toFeedback(row: Row): FeedbackRow {
  return {
    messageId: row.message_id as string,
    owner: row.owner as string,
    kind: row.kind as FeedbackRow['kind'],
    text: row.text as string | null,
    incorrect: row.incorrect === 1,
    unhelpful: row.unhelpful === 1,
    inappropriate: row.inappropriate === 1,
    at: row.at as number,
  }
}

export function feedbackStore({ db, read, write }: PartAccess): FeedbackStore {
  const reader = feedbackReader(db)
  return {
    react: async (row) => (await write('react', row)) ?? undefined,
    addComment: (row) => write('addComment', row),
    feedbackOn: (messageId, owner) => read(() => reader.on(messageId, owner)),
    feedbackIn: (conversationId, owner) => read(() => reader.inConversation(conversationId, owner)),
  }
}

function feedbackReader(db: DatabaseSync) {
  const ofMessage = db.prepare('SELECT * FROM feedback WHERE message_id = ? AND owner = ? ORDER BY position')
  const summaries = db.prepare(
    `SELECT message_id, max(CASE WHEN ${isReaction} THEN kind END) AS reaction, sum(kind = 'comment') AS comments
     FROM messages CROSS JOIN feedback ON feedback.message_id = messages.id
     WHERE messages.conversation_id = ? AND feedback.owner = ? GROUP BY message_id`,
  )

  return {
    on: (messageId: string, owner: string): FeedbackRow[] => ofMessage.all(messageId, owner).map(toFeedback),
    inConversation(conversationId: string, owner: string): Map<string, FeedbackSummary> {
      return new Map(
        summaries
          .all(conversationId, owner)
          .map((row) => [
            row.message_id as string,
            { reaction: row.reaction as Reaction | null, comments: row.comments as number },
          ]),
      )
    },
  }
}

export function feedbackHandlers(db: DatabaseSync): Handlers<FeedbackCommands> {
  const message = db.prepare('SELECT 1 FROM messages WHERE id = ?')
  const take = db.prepare(`DELETE FROM feedback WHERE message_id = ? AND owner = ? AND ${isReaction} RETURNING kind`)
  const insert = db.prepare(
    `INSERT INTO feedback (message_id, owner, kind, text, incorrect, unhelpful, inappropriate, at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  )

  function add(row: FeedbackRow): void {
    const flag = (value: boolean) => (value ? 1 : 0)
    insert.run(
      row.messageId,
      row.owner,
      row.kind,
      row.text,
      flag(row.incorrect),
      flag(row.unhelpful),
      flag(row.inappropriate),
      row.at,
    )
  }

  return {
    react(row) {
      if (message.get(row.messageId) === undefined) return null
      const before = take.get(row.messageId, row.owner)?.kind
      if (before === row.kind) return { reaction: null }
      add(row)
      return { reaction: row.kind }
    },
    addComment(row) {
      if (message.get(row.messageId) === undefined) return false
      add(row)
      return true
    },
  }
}

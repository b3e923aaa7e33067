// The activity of contacts, read from the indexes of conversations, events and to-dos. One
// short query for each contact and kind is faster than one large query over all of them,
// because each stops at its bound.

import {
  activityRowsMax,
  activityTextChars,
  type ContactActivity,
  type ContactActivityStore,
} from '../contact-activity-store.ts'
import type { ContactTodoStatus } from '../contact-store.ts'
import type { PartAccess } from './part-access.ts'

export function contactActivityStore({ db, read }: PartAccess): ContactActivityStore {
  const conversations = db.prepare(
    `SELECT id, substr(title, 1, ${activityTextChars}) AS title, coalesce(last_message_at, created_at) AS at
     FROM conversations WHERE owner = ? AND contact_id = ? ORDER BY activity DESC, id DESC LIMIT ${activityRowsMax}`,
  )
  // The expressions in ORDER BY are spelled exactly as in the indexes.
  const events = db.prepare(
    `SELECT id, substr(title, 1, ${activityTextChars}) AS title, event_date, created_at
     FROM contact_events WHERE owner = ? AND contact_id = ?
     ORDER BY coalesce(event_date, created_at) DESC, position DESC LIMIT ${activityRowsMax}`,
  )
  const todos = db.prepare(
    `SELECT id, substr(content, 1, ${activityTextChars}) AS content, status, due_at
     FROM contact_todos WHERE owner = ? AND contact_id = ? AND status = 'pending'
     ORDER BY coalesce(due_at, 9007199254740991), position LIMIT ${activityRowsMax}`,
  )

  function activityOf(owner: string, contactId: string): ContactActivity {
    return {
      contactId,
      conversations: conversations.all(owner, contactId).map((row) => ({
        id: row['id'] as string,
        title: row['title'] as string | null,
        at: row['at'] as number,
      })),
      events: events.all(owner, contactId).map((row) => ({
        id: row['id'] as string,
        title: row['title'] as string,
        eventDate: row['event_date'] as number | null,
        createdAt: row['created_at'] as number,
      })),
      todos: todos.all(owner, contactId).map((row) => ({
        id: row['id'] as string,
        content: row['content'] as string,
        status: row['status'] as ContactTodoStatus,
        dueAt: row['due_at'] as number | null,
      })),
    }
  }

  return {
    contactActivity: (owner, contactIds) => read(() => contactIds.map((id) => activityOf(owner, id))),
  }
}

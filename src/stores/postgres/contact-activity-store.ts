// The activity of contacts, read from the indexes of conversations, events and to-dos. One short
// query for each contact and kind, because each stops at its bound.

import {
  activityRowsMax,
  activityTextChars,
  type ContactActivity,
  type ContactActivityStore,
} from '../contact-activity-store.ts'
import type { ContactTodoStatus } from '../contact-store.ts'
import type { Db } from './connection.ts'
import type { PartAccess } from './part-access.ts'

export function contactActivityStore({ read }: PartAccess): ContactActivityStore {
  return {
    contactActivity: (owner, contactIds) =>
      read(async (db) => {
        const activity = []
        for (const id of contactIds) activity.push(await activityOf(db, owner, id))
        return activity
      }),
  }
}

async function activityOf(db: Db, owner: string, contactId: string): Promise<ContactActivity> {
  const conversations = await db.all(
    `SELECT id, left(title, ${activityTextChars}) AS title, coalesce(last_message_at, created_at) AS at
     FROM conversations WHERE owner = ? AND contact_id = ? ORDER BY activity DESC, id DESC LIMIT ${activityRowsMax}`,
    owner,
    contactId,
  )
  const events = await db.all(
    `SELECT id, left(title, ${activityTextChars}) AS title, event_date, created_at
     FROM contact_events WHERE owner = ? AND contact_id = ?
     ORDER BY coalesce(event_date, created_at) DESC, position DESC LIMIT ${activityRowsMax}`,
    owner,
    contactId,
  )
  const todos = await db.all(
    `SELECT id, left(content, ${activityTextChars}) AS content, status, due_at
     FROM contact_todos WHERE owner = ? AND contact_id = ? AND status = 'pending'
     ORDER BY due_at NULLS LAST, position LIMIT ${activityRowsMax}`,
    owner,
    contactId,
  )
  return {
    contactId,
    conversations: conversations.map((row) => ({
      id: row['id'] as string,
      title: row['title'] as string | null,
      at: row['at'] as number,
    })),
    events: events.map((row) => ({
      id: row['id'] as string,
      title: row['title'] as string,
      eventDate: row['event_date'] as number | null,
      createdAt: row['created_at'] as number,
    })),
    todos: todos.map((row) => ({
      id: row['id'] as string,
      content: row['content'] as string,
      status: row['status'] as ContactTodoStatus,
      dueAt: row['due_at'] as number | null,
    })),
  }
}

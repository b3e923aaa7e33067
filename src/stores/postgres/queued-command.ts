// Changes a run that waits for its turn: its input, or that it is withdrawn.

import type { QueuedChange, RunRow } from '../run-store.ts'
import type { Db } from './connection.ts'
import { touchConversation } from './conversation-store.ts'
import { insertJournal, journalRows } from './journal-table.ts'
import { setMessageContent, setMessageStates } from './message-store.ts'
import { readRun } from './run-rows.ts'
import { requestCancel, setLastSeq } from './run-table.ts'

export async function changeQueued(db: Db, change: QueuedChange): Promise<RunRow | undefined> {
  const { runId, afterSeq, events, message, cancel, at } = change
  const run = await readRun(db, runId)
  if (run === undefined) return undefined
  // In the order of all writes: the conversation, then the run.
  if (run.conversationId !== null) {
    await db.get('SELECT id FROM conversations WHERE id = ? FOR NO KEY UPDATE', run.conversationId)
  }
  const queued = await db.get(
    `SELECT id FROM runs WHERE id = ? AND status = 'queued' AND held = 0 AND lease_owner IS NULL AND cancel_at IS NULL AND last_seq = ?
     FOR NO KEY UPDATE`,
    runId,
    afterSeq,
  )
  if (queued === undefined) return undefined
  await insertJournal(db, runId, journalRows(runId, afterSeq, events))
  await setLastSeq(db, runId, afterSeq + events.length)
  if (message?.content !== undefined) await setMessageContent(db, message.id, message.content)
  if (message?.state !== undefined) await setMessageStates(db, [{ id: message.id, state: message.state }])
  if (run.conversationId !== null) await touchConversation(db, run.conversationId, at)
  return cancel === undefined ? await readRun(db, runId) : await requestCancel(db, runId, cancel)
}

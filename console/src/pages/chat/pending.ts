// Messages that were sent and are not in the loaded conversation yet. They are drawn at once, and go when the
// conversation has them.

import type { FileInfo } from '@polylog/client'
import { session } from '../../api/session.ts'
import { createStore } from '../../app/store.ts'

export type PendingMessage = {
  id: number
  /** Null until the server has named the new conversation. */
  conversationId: string | null
  text: string
  files: readonly FileInfo[]
  /** Null until the server has stored the run. */
  runId: string | null
  /** The run and its conversation, to wait for; null if the message could not be sent. */
  started: Promise<{ runId: string; conversationId: string } | null>
}

export const pendingMessages = createStore<readonly PendingMessage[]>([])
let count = 0

// Another user must not see them.
session.subscribe(() => pendingMessages.set([]))

export function addPending(message: Omit<PendingMessage, 'id' | 'runId'>): number {
  count += 1
  const id = count
  pendingMessages.set((old) => [...old, { ...message, id, runId: null }])
  return id
}

export function changePending(id: number, changes: Partial<PendingMessage>): void {
  pendingMessages.set((old) => old.map((message) => (message.id === id ? { ...message, ...changes } : message)))
}

export function removePending(isGone: (message: PendingMessage) => boolean): void {
  pendingMessages.set((old) => (old.some(isGone) ? old.filter((message) => !isGone(message)) : old))
}

// The messages of a conversation → turns: a question, and the run that answers it. A run that answers a question again
// takes the place of the run before it.

import type { RunInfo, StoredMessage } from '@polylog/client'

export type Turn = {
  key: string
  question: StoredMessage | null
  /** Null for messages that were imported and belong to no run. */
  runId: string | null
  /** Everything after the question, for runs whose journal is no longer kept. */
  messages: StoredMessage[]
}

/** `open` are the runs that have not ended, oldest first. */
export function turnsOf(messages: readonly StoredMessage[], open: readonly RunInfo[]): Turn[] {
  const turns: Turn[] = []
  const known = new Set<string>()
  for (const message of messages) {
    if (message.role === 'system') continue
    const runId = typeof message.metadata['runId'] === 'string' ? message.metadata['runId'] : null
    if (runId !== null) known.add(runId)
    const last = turns.at(-1)
    if (message.role === 'user' || last === undefined) {
      const isQuestion = message.role === 'user'
      turns.push({
        key: message.id,
        question: isQuestion ? message : null,
        runId,
        messages: isQuestion ? [] : [message],
      })
      continue
    }
    last.messages.push(message)
    last.runId = runId ?? last.runId
  }
  const last = turns.at(-1)
  const again = open.find(({ runId }) => !known.has(runId))
  if (last !== undefined && again !== undefined) last.runId = again.runId
  return turns
}

/** Runs that wait for an earlier run of the conversation. */
export function queuedRuns(open: readonly RunInfo[]): RunInfo[] {
  return open.filter(({ status }, index) => status === 'queued' && index > 0)
}

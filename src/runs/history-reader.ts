// Reads the part of a conversation that a model is given: back to the message where the last cut or
// summary left off. Any process reads the same rows, so any process builds the same prompt.

import type { EventData } from '../journal/event.ts'
import { estimateTokens } from '../kit/token-estimate.ts'
import type { MessageRow, MessageStore } from '../stores/message-store.ts'
import type { RunStore } from '../stores/run-store.ts'
import { type ContextMark, readContextMark } from './context-mark.ts'
import { standaloneHistory } from './standalone-chat.ts'

/** Messages that are too old to be read as a whole; a cut has to name them. */
export type UnreadMessages = { messages: number; tokens: number; fromMessageId: string; throughMessageId: string }

export type ConversationHistory = {
  /** Ascending. */
  rows: MessageRow[]
  /** True if earlier runs left out messages before `rows`. */
  isCut: boolean
  /** What stands for the messages before `rows`. */
  summary: { messageId: string; text: string } | undefined
  /** Messages between the summary (or the beginning) and `rows`. */
  unread: UnreadMessages | undefined
}

export type HistoryBounds = { pageRows: number; rowsMax: number; tokensMax: number }

/** `rowsMax`: a window of a million tokens holds more messages than a request should have. */
export const historyBounds = { pageRows: 200, rowsMax: 2000 } as const

export async function readConversationHistory(
  store: Pick<MessageStore, 'historyBefore' | 'readMessage'> & Pick<RunStore, 'readBlob'>,
  accepted: EventData<'run.accepted'>,
  runId: string,
  bounds: HistoryBounds,
): Promise<ConversationHistory> {
  const { conversationId, userMessageId, spec } = accepted
  if (conversationId === null) {
    return {
      rows: await standaloneHistory(runId, accepted, store),
      isCut: false,
      summary: undefined,
      unread: undefined,
    }
  }
  // They are active until the new answer is complete.
  const replaced = new Set(spec.supersedes)
  const newestFirst: MessageRow[] = []
  let mark: ContextMark | undefined
  let reachedMark = false
  let unread: UnreadMessages | undefined
  let tokens = 0
  let before: string | undefined
  while (!reachedMark) {
    const page = await store.historyBefore(conversationId, runId, bounds.pageRows, before)
    for (const row of page.toReversed()) {
      if (replaced.has(row.id)) continue
      if (row.role === 'system') {
        // The newest mark counts: each one includes those before it.
        mark ??= readContextMark(row)
        continue
      }
      const rowTokens = tokensOf(row)
      if (newestFirst.length < bounds.rowsMax && tokens <= bounds.tokensMax) newestFirst.push(row)
      else unread = addUnread(unread, row.id, rowTokens)
      tokens += rowTokens
      reachedMark = row.id === mark?.keptFrom
      if (reachedMark) break
    }
    if (page.length < bounds.pageRows) break
    before = page[0]?.id
  }
  const rows = newestFirst.reverse()
  // When a question is answered again, the history already holds it.
  const asked = rows.findIndex((row) => row.id === userMessageId)
  const summary = reachedMark && mark?.summaryId !== undefined ? await store.readMessage(mark.summaryId) : undefined
  return {
    rows: asked === -1 ? rows : rows.slice(0, asked),
    isCut: reachedMark,
    summary: summary === undefined ? undefined : { messageId: summary.id, text: summary.content },
    unread,
  }
}

function tokensOf({ content, metadata }: MessageRow): number {
  return (
    4 +
    estimateTokens(content) +
    (Array.isArray(metadata.toolCalls) ? estimateTokens(JSON.stringify(metadata.toolCalls)) : 0)
  )
}

/** `id` is older than all messages in `unread`. */
function addUnread(unread: UnreadMessages | undefined, id: string, tokens: number): UnreadMessages {
  return {
    messages: (unread?.messages ?? 0) + 1,
    tokens: (unread?.tokens ?? 0) + tokens,
    fromMessageId: id,
    throughMessageId: unread?.throughMessageId ?? id,
  }
}

// Messages of conversations. Runs write them together with their events (see
// `RunWrite`); this part reads them and changes their state.

import type { JsonValue } from '../journal/event.ts'
import type { Part } from '../journal/part.ts'
import type { RowPage } from './row-page.ts'

/**
 * `superseded`: not in the history now; the answer of a comparison may become active again. `abandoned`: never in the history, for
 * example text that broke off, or an answer that did not fit its schema.
 */
export type MessageState = 'active' | 'superseded' | 'abandoned'

export type MessageRow = {
  id: string
  conversationId: string
  runId: string | null
  parentId: string | null
  /** `system`: a hidden row about the context (a cut or a summary), which only prompts use. */
  role: 'system' | 'user' | 'assistant' | 'tool'
  /** The text; a file is a short name in brackets (`textOfParts`). */
  content: string
  /** Present if the message has a part that is not text. */
  parts?: Part[]
  state: MessageState
  toolCallId: string | null
  metadata: Record<string, JsonValue>
  createdAt: number
}

export type MessageStateChange = { id: string; state: MessageState }

export interface MessageStore {
  readMessage(id: string): Promise<MessageRow | undefined>
  /** The first `chars` characters of these messages, by id; unknown ids are left out. */
  messageBeginnings(ids: readonly string[], chars: number): Promise<ReadonlyMap<string, string>>
  /**
   * The newest `limit` messages before the cursor, ascending: in the order of their turns and, within a turn, of writing (not of
   * `createdAt`, because the clock may be set). Only `active` ones, and neither hidden rows nor
   * steps that only called tools (those are for the model only). An answer without text is shown.
   */
  listMessages(
    conversationId: string,
    page: { limit: number; before?: { id: string } | { createdAt: number } },
  ): Promise<RowPage<MessageRow>>
  /**
   * Messages in any state, also steps that only called tools, in the order of their turns; the newest `limit` of them,
   * ascending. Hidden rows only if `runId` is given.
   */
  allMessages(conversationId: string, filter: { limit: number; runId?: string }): Promise<MessageRow[]>
  /** As `allMessages`, a page at a time: the newest ones before the message `before`, ascending. */
  pageOfAllMessages(conversationId: string, page: { limit: number; before?: string }): Promise<RowPage<MessageRow>>
  /** All of them or none; unknown ids are skipped. */
  setMessageStates(states: MessageStateChange[]): Promise<void>
  /**
   * The history that a model is shown: active messages of turns before that of `beforeRunId` (and messages without a run),
   * in the order of their turns, the newest `limit` of them, with hidden rows. With `beforeMessageId`, only messages before that
   * one. A run that did not succeed contributes its user message and its finished messages.
   */
  historyBefore(
    conversationId: string,
    beforeRunId: string,
    limit: number,
    beforeMessageId?: string,
  ): Promise<MessageRow[]>
}

// Conversations and their messages, for every wire. Each method takes the owner (or the
// caller) and gives what is theirs; what belongs to another user does not exist. Methods
// that take a row rely on a row that this service gave.

import { AppError } from '../errors/app-error.ts'
import { type Caller, owns } from '../kit/caller.ts'
import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import { conversationNotFound, findConversation, ownConversation } from '../runs/conversation-names.ts'
import type { RunService } from '../runs/run-service.ts'
import type { ConversationRow, ConversationStore, NewConversation } from '../stores/conversation-store.ts'
import type { MessageRow, MessageStore } from '../stores/message-store.ts'
import type { RowPage } from '../stores/row-page.ts'
import type { RunRow, RunStore } from '../stores/run-store.ts'

export type ConversationParts = {
  store: ConversationStore & MessageStore & Pick<RunStore, 'openRuns'>
  runs: Pick<RunService, 'cancel'>
  clock: Clock
  ids: Ids
  /** Called before a conversation is deleted, when none of its runs is under way: removes what lies beside the database. */
  beforeDelete?: (id: string) => Promise<void>
}

/** `before`: a name or id of the last conversation of the page before. */
export type ConversationPage = { limit: number; before: string | undefined }

/** The name that stands for "no name" if the caller never started a conversation without one. */
const defaultName = 'default'

export class ConversationService {
  private readonly parts: ConversationParts

  constructor(parts: ConversationParts) {
    this.parts = parts
  }

  async create(owner: string, title: string | null): Promise<NewConversation> {
    const now = this.parts.clock.now()
    const row: NewConversation = { id: this.parts.ids(), owner, title, createdAt: now, updatedAt: now }
    await this.parts.store.createConversation(row)
    return row
  }

  /** By a name that the owner's client chose, or by an id. Throws `conversation_not_found`. */
  async get(owner: string, name: string): Promise<ConversationRow> {
    return await ownConversation(this.parts.store, owner, name)
  }

  async find(owner: string, name: string): Promise<ConversationRow | undefined> {
    return await findConversation(this.parts.store, owner, name)
  }

  /** The newest one that the owner started without a name. */
  async findUnnamed(owner: string): Promise<ConversationRow | undefined> {
    return (await this.parts.store.newestUnnamedConversation(owner)) ?? (await this.find(owner, defaultName))
  }

  /** For lists: the id to filter by, undefined if no name is given, null if nothing can match. */
  async idFilter(owner: string, name: string | undefined): Promise<string | null | undefined> {
    if (name === undefined) return undefined
    return (await this.find(owner, name))?.id ?? null
  }

  /** Last used first. */
  async list(owner: string, page: ConversationPage): Promise<RowPage<ConversationRow>> {
    return await this.parts.store.listConversations(owner, await this.pageFrom(owner, page))
  }

  /** The one with the newest message first. */
  async listByLastMessage(owner: string, page: ConversationPage): Promise<RowPage<ConversationRow>> {
    return await this.parts.store.listConversationsByLastMessage(owner, await this.pageFrom(owner, page))
  }

  /** Of the conversations whose id begins with `prefix`: how many there are, and in how many a run has not ended. */
  async count(prefix: string): Promise<{ total: number; active: number }> {
    return await this.parts.store.countConversations(prefix)
  }

  async rename(owner: string, name: string, title: string | null): Promise<ConversationRow> {
    const { id } = await this.get(owner, name)
    const renamed = await this.parts.store.renameConversation(id, title, this.parts.clock.now())
    if (renamed === undefined) throw conversationNotFound(name)
    return renamed
  }

  /** With everything in it. Runs that are under way are cancelled first. */
  async delete({ id, owner }: Pick<ConversationRow, 'id' | 'owner'>): Promise<void> {
    const open = await this.openRuns({ id })
    await Promise.all(open.map((run) => this.parts.runs.cancel(owner, run.id, 'the conversation was deleted')))
    await this.parts.beforeDelete?.(id)
    await this.parts.store.deleteConversation(id)
  }

  /** The runs that are under way, oldest first. */
  async openRuns({ id }: Pick<ConversationRow, 'id'>): Promise<RunRow[]> {
    return await this.parts.store.openRuns(id)
  }

  /** The newest messages that clients are shown, ascending. */
  async messages(
    { id }: Pick<ConversationRow, 'id'>,
    { limit, before }: { limit: number; before: { id: string } | { createdAt: number } | undefined },
  ): Promise<RowPage<MessageRow>> {
    return await this.parts.store.listMessages(id, { limit, ...(before === undefined ? {} : { before }) })
  }

  /** The newest messages in any state, ascending; `before` is the id of a message. */
  async messagesInAnyState(
    { id }: Pick<ConversationRow, 'id'>,
    { limit, before }: { limit: number; before: string | undefined },
  ): Promise<RowPage<MessageRow>> {
    return await this.parts.store.pageOfAllMessages(id, { limit, ...(before === undefined ? {} : { before }) })
  }

  /** The messages that a run wrote, in any state. None if it has no conversation. */
  async messagesOfRun({ id, conversationId }: RunRow, limit: number): Promise<MessageRow[]> {
    if (conversationId === null) return []
    return await this.parts.store.allMessages(conversationId, { runId: id, limit })
  }

  async hasMessage({ id }: Pick<ConversationRow, 'id'>, messageId: string): Promise<boolean> {
    return (await this.parts.store.readMessage(messageId))?.conversationId === id
  }

  /** The message that a caller addresses by its id, with the owner of its conversation. Throws `message_not_found`. */
  async message(caller: Caller, id: string): Promise<MessageRow & { owner: string }> {
    const row = await this.parts.store.readMessage(id)
    const conversation = row === undefined ? undefined : await this.parts.store.readConversation(row.conversationId)
    if (row === undefined || conversation === undefined || !owns(caller, conversation)) {
      throw new AppError('message_not_found', `There is no message ${JSON.stringify(id)}.`)
    }
    return { ...row, owner: conversation.owner }
  }

  private async pageFrom(owner: string, { limit, before }: ConversationPage) {
    return before === undefined ? { limit } : { limit, before: { id: (await this.get(owner, before)).id } }
  }
}

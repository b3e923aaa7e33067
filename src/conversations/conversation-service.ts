// Conversations and their messages, for every wire. Each method takes the owner (or the
// caller) and only returns that user's data; a conversation of another user is reported as
// not found. Methods that take a row do not check its owner: the row must come from this
// service.

import { AppError } from '../errors/app-error.ts'
import { defined } from '../kit/defined.ts'
import { type Caller, owns } from '../kit/caller.ts'
import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import { namedConversationId } from '../kit/conversation-id.ts'
import {
  conversationNotFound,
  findConversation,
  lookUpConversation,
  ownConversation,
} from '../runs/conversation-names.ts'
import type { RunService } from '../runs/run-service.ts'
import type {
  ConversationChanges,
  ConversationRow,
  ConversationStore,
  NewConversation,
} from '../stores/conversation-store.ts'
import type { MessageRow, MessageStore } from '../stores/message-store.ts'
import type { RowPage } from '../stores/row-page.ts'
import type { RunRow, RunStore } from '../stores/run-store.ts'

export type ConversationDependencies = {
  store: ConversationStore & MessageStore & Pick<RunStore, 'openRuns'>
  runs: Pick<RunService, 'cancel'>
  clock: Clock
  ids: Ids
  /** Called before a conversation is deleted, when its runs have been cancelled; removes its files outside the database. */
  beforeDelete?: (id: string) => Promise<void>
}

/** `before`: the name or id of the last conversation on the previous page. */
export type ConversationPage = { limit: number; before: string | undefined }

/** The name that is tried if the caller has no unnamed conversation. */
const defaultName = 'default'

export class ConversationService {
  private readonly dependencies: ConversationDependencies

  constructor(dependencies: ConversationDependencies) {
    this.dependencies = dependencies
  }

  /** Throws `contact_not_found` if the owner has no contact `contactId`. */
  async create(owner: string, title: string | null, contactId: string | null = null): Promise<ConversationRow> {
    const now = this.dependencies.clock.now()
    const row: NewConversation = {
      id: this.dependencies.ids(),
      owner,
      title,
      contactId,
      createdAt: now,
      updatedAt: now,
    }
    await this.dependencies.store.createConversation(row)
    return { ...row, contactId, summary: null, lastMessageAt: null, archivedAt: null }
  }

  /** The owner's conversation of this name, which is created if there is none. Throws `conversation_not_found` for the id of another user's. */
  async findOrCreate(owner: string, name: string): Promise<{ row: ConversationRow; created: boolean }> {
    const { store, clock, ids } = this.dependencies
    for (let attempt = 1; ; attempt += 1) {
      const found = await lookUpConversation(store, owner, name)
      if (found === 'foreign') throw conversationNotFound(name)
      if (found !== 'free') return { row: found, created: false }
      const now = clock.now()
      const id = namedConversationId(ids(), name)
      const row: NewConversation = { id, owner, title: null, createdAt: now, updatedAt: now, name }
      try {
        await store.createConversation(row)
        return { row: await this.get(owner, name), created: true }
      } catch (error) {
        // Another request took the name at the same time; it exists now.
        if (!(error instanceof AppError) || error.code !== 'accept_stale' || attempt > 1) throw error
      }
    }
  }

  /** Finds by a name that the owner's client chose, or by id. Throws `conversation_not_found`. */
  async get(owner: string, name: string): Promise<ConversationRow> {
    return await ownConversation(this.dependencies.store, owner, name)
  }

  async find(owner: string, name: string): Promise<ConversationRow | undefined> {
    return await findConversation(this.dependencies.store, owner, name)
  }

  /** The newest conversation that the owner started without a name. */
  async findUnnamed(owner: string): Promise<ConversationRow | undefined> {
    return (await this.dependencies.store.newestUnnamedConversation(owner)) ?? (await this.find(owner, defaultName))
  }

  /** For lists: the id to filter by, undefined if no name is given, null if nothing can match. */
  async idFilter(owner: string, name: string | undefined): Promise<string | null | undefined> {
    if (name === undefined) return undefined
    return (await this.find(owner, name))?.id ?? null
  }

  /** Most recently used first; with `search`, only those whose title or summary contains this text. */
  async list(
    owner: string,
    { search, ...page }: ConversationPage & { search?: string },
  ): Promise<RowPage<ConversationRow>> {
    const from = await this.pageFrom(owner, page)
    return await this.dependencies.store.listConversations(owner, { ...from, ...defined({ search }) })
  }

  /** Sorted by newest message first. */
  async listByLastMessage(owner: string, page: ConversationPage): Promise<RowPage<ConversationRow>> {
    return await this.dependencies.store.listConversationsByLastMessage(owner, await this.pageFrom(owner, page))
  }

  /** Counts the conversations whose id begins with `prefix`, and how many of them have an open run. */
  async count(prefix: string): Promise<{ total: number; active: number }> {
    return await this.dependencies.store.countConversations(prefix)
  }

  /** Throws `contact_not_found` if the owner has no contact `contactId`. */
  async update(owner: string, name: string, changes: ConversationChanges): Promise<ConversationRow> {
    const { id } = await this.get(owner, name)
    const updated = await this.dependencies.store.updateConversation(id, changes, this.dependencies.clock.now())
    if (updated === undefined) throw conversationNotFound(name)
    return updated
  }

  /** Deletes the conversation with everything in it, after cancelling its open runs. */
  async delete({ id, owner }: Pick<ConversationRow, 'id' | 'owner'>): Promise<void> {
    const open = await this.openRuns({ id })
    await Promise.all(open.map((run) => this.dependencies.runs.cancel(owner, run.id, 'the conversation was deleted')))
    await this.dependencies.beforeDelete?.(id)
    await this.dependencies.store.deleteConversation(id)
  }

  /** The runs that have not ended, oldest first. */
  async openRuns({ id }: Pick<ConversationRow, 'id'>): Promise<RunRow[]> {
    return await this.dependencies.store.openRuns(id)
  }

  /** The newest messages that clients are shown, ascending. */
  async messages(
    { id }: Pick<ConversationRow, 'id'>,
    { limit, before }: { limit: number; before: { id: string } | { createdAt: number } | undefined },
  ): Promise<RowPage<MessageRow>> {
    return await this.dependencies.store.listMessages(id, { limit, ...defined({ before }) })
  }

  /** The newest messages in any state, ascending; `before` is the id of a message. */
  async messagesInAnyState(
    { id }: Pick<ConversationRow, 'id'>,
    { limit, before }: { limit: number; before: string | undefined },
  ): Promise<RowPage<MessageRow>> {
    return await this.dependencies.store.pageOfAllMessages(id, { limit, ...defined({ before }) })
  }

  /** The messages that a run wrote, in any state. None if it has no conversation. */
  async messagesOfRun({ id, conversationId }: RunRow, limit: number): Promise<MessageRow[]> {
    if (conversationId === null) return []
    const rows = await this.dependencies.store.allMessages(conversationId, { runId: id, limit })
    return rows.filter(({ role }) => role !== 'system')
  }

  async hasMessage({ id }: Pick<ConversationRow, 'id'>, messageId: string): Promise<boolean> {
    return (await this.dependencies.store.readMessage(messageId))?.conversationId === id
  }

  /** The message that a caller addresses by its id, with the owner of its conversation. Throws `message_not_found`. */
  async message(caller: Caller, id: string): Promise<MessageRow & { owner: string }> {
    const row = await this.dependencies.store.readMessage(id)
    const conversation =
      row === undefined ? undefined : await this.dependencies.store.readConversation(row.conversationId)
    if (row === undefined || conversation === undefined || !owns(caller, conversation)) {
      throw new AppError('message_not_found', `There is no message ${JSON.stringify(id)}.`)
    }
    return { ...row, owner: conversation.owner }
  }

  private async pageFrom(owner: string, { limit, before }: ConversationPage) {
    return before === undefined ? { limit } : { limit, before: { id: (await this.get(owner, before)).id } }
  }
}

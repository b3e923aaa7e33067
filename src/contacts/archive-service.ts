// Archives of conversations: an agent extracts contacts, events, facts and to-dos from a
// conversation, a person reviews them, and only then they are written. Each method returns
// only what the caller owns; anything else is reported as not found.
//
//   archive ─▶ ready_for_review ─┬─ apply ──▶ applied    (contacts and records are written)
//                 ▲ change │     └─ discard ▶ discarded  (nothing is written)
//                 └────────┘

import type { ConversationService } from '../conversations/conversation-service.ts'
import { AppError } from '../errors/app-error.ts'
import { type Caller, owns } from '../kit/caller.ts'
import type { Clock } from '../kit/clock.ts'
import { shownConversationId } from '../kit/conversation-id.ts'
import { cutText } from '../kit/cut-text.ts'
import type { Ids } from '../kit/ids.ts'
import type { ArchiveEntries, ArchivePayload, ArchiveRow, ArchiveStore } from '../stores/archive-store.ts'
import { type AgentOptions, agentRequest, type AgentRunner } from './agent-runner.ts'
import { archiveLimits, checkRefs, payloadOf } from './archive-payload.ts'
import { contactLimits } from './contact-limits.ts'

export type ArchiveDependencies = {
  store: ArchiveStore
  conversations: Pick<ConversationService, 'get'>
  agents: AgentRunner
  clock: Clock
  ids: Ids
}

/** How often a write is tried again because the archive was changed at the same time. */
const triesMax = 8

export class ArchiveService {
  private readonly dependencies: ArchiveDependencies

  constructor(dependencies: ArchiveDependencies) {
    this.dependencies = dependencies
  }

  /**
   * Runs the agent on the conversation, or takes its stored result, and stores the archive. The same result gives the same
   * archive, unless that was discarded. `signal` as in `AgentRunner`.
   */
  async archive(caller: Caller, name: string, options: AgentOptions, signal?: AbortSignal): Promise<ArchiveRow> {
    const { store, conversations, agents, clock, ids } = this.dependencies
    const conversation = await conversations.get(caller.userId, name)
    const scope = { conversationId: shownConversationId(conversation.id) }
    const request = agentRequest('archive_extract', caller, scope, options)
    const { data, runId, snapshotId } = await agents.run(caller, request, null, signal)
    const { summary, payload, computed } = data
    const now = clock.now()
    try {
      return await store.createArchive({
        id: ids(),
        owner: conversation.owner,
        conversationId: conversation.id,
        runId,
        snapshotId,
        status: 'ready_for_review',
        revision: 0,
        summary: typeof summary === 'string' ? (cutText(summary, archiveLimits.summaryChars)[0] ?? '') : '',
        computed: computed === true,
        payload: payloadOf(payload, conversation.contactId),
        createdAt: now,
        updatedAt: now,
        appliedAt: null,
        discardedAt: null,
      })
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'archive_entry_invalid') throw error
      // The model is wrong, not the request.
      throw new AppError(
        'output_validation_failed',
        `${error.message} Archive the conversation again with forceRefresh.`,
        {
          details: { errors: error.details?.['errors'], runId },
        },
      )
    }
  }

  /** The archive of the conversation that was made last. Throws `conversation_archive_not_found` if there is none. */
  async newest(owner: string, name: string): Promise<ArchiveRow> {
    const { id } = await this.dependencies.conversations.get(owner, name)
    const row = await this.dependencies.store.newestArchive(id)
    if (row !== undefined) return row
    throw new AppError(
      'conversation_archive_not_found',
      `The conversation ${JSON.stringify(name)} has no archive. Make one with POST.`,
    )
  }

  /** Throws `conversation_archive_not_found`. */
  async get(caller: Caller, id: string): Promise<ArchiveRow> {
    const row = await this.dependencies.store.readArchive(id)
    if (row === undefined || !owns(caller, row)) throw archiveNotFound(id)
    return row
  }

  /** Replaces the lists that are given. Throws `archive_closed` if the archive was applied or discarded. */
  async change(caller: Caller, id: string, lists: Partial<ArchiveEntries>): Promise<ArchiveRow> {
    const { store, clock } = this.dependencies
    return await this.retried(caller, id, async (row) => {
      if (row.status !== 'ready_for_review') throw closed(row, 'changed')
      const payload: ArchivePayload = { ...row.payload, ...lists }
      checkRefs(payload)
      const changed = await store.changeArchive({ id, revision: row.revision, payload, at: clock.now() })
      return changed?.revision === row.revision + 1 ? changed : undefined
    })
  }

  /** Applying an archive again returns it as it is. Throws `archive_closed` if it was discarded. */
  async apply(caller: Caller, id: string): Promise<ArchiveRow> {
    const { store, clock, ids } = this.dependencies
    return await this.retried(caller, id, async (row) => {
      if (row.status === 'applied') return row
      if (row.status === 'discarded') throw closed(row, 'applied')
      const { payload } = row
      const withId = <Entry extends { recordId: string | null }>(entry: Entry) => ({ ...entry, recordId: ids() })
      const result = await store.applyArchive({
        id,
        revision: row.revision,
        payload: {
          ...payload,
          events: payload.events.map(withId),
          facts: payload.facts.map(withId),
          todos: payload.todos.map(withId),
        },
        newContactIds: payload.contacts.map(() => ids()),
        at: clock.now(),
        contactsMax: contactLimits.contacts,
      })
      return result?.status === 'applied' ? result : undefined
    })
  }

  /** Discarding an archive again returns it as it is. Throws `archive_closed` if it was applied. */
  async discard(caller: Caller, id: string): Promise<ArchiveRow> {
    await this.get(caller, id)
    const row = await this.dependencies.store.discardArchive(id, this.dependencies.clock.now())
    if (row === undefined) throw archiveNotFound(id)
    if (row.status === 'applied') throw closed(row, 'discarded')
    return row
  }

  /** Reads the archive and tries `write`, which returns undefined if the archive has changed since it was read. */
  private async retried(
    caller: Caller,
    id: string,
    write: (row: ArchiveRow) => Promise<ArchiveRow | undefined>,
  ): Promise<ArchiveRow> {
    for (let attempt = 1; attempt <= triesMax; attempt++) {
      const row = await write(await this.get(caller, id))
      if (row !== undefined) return row
    }
    throw new AppError('store_busy', 'The archive is changed by others all the time. Try again.')
  }
}

function archiveNotFound(id: string): AppError {
  return new AppError('conversation_archive_not_found', `There is no archive ${JSON.stringify(id)}.`)
}

function closed({ status }: ArchiveRow, wanted: string): AppError {
  return new AppError(
    'archive_closed',
    `The archive was ${status}, so it cannot be ${wanted}. Archive the conversation again for a new one.`,
    { details: { status } },
  )
}

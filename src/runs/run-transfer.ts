// Moves ended runs between servers as documents, with all their ids, so that every wire sends the same bytes for them.
// Importing a run that is here already changes nothing if it is the same, and is refused if it is another.

import { AppError } from '../errors/app-error.ts'
import { isTerminal, type RunEvent } from '../journal/event.ts'
import { eventPages } from '../journal/event-pages.ts'
import { defined } from '../kit/defined.ts'
import type { FileRow } from '../stores/file-store.ts'
import type { RunRow } from '../stores/run-store.ts'
import type { Store } from '../stores/store.ts'
import {
  documentFormat,
  documentInteraction,
  documentMessage,
  documentVersion,
  isSameRun,
  nameOfConversation,
  portableEvent,
  readRunDocument,
  referredBlobs,
  referredFiles,
  type RunDocument,
} from './run-document.ts'

/** A run has as many messages as it has steps and calls. */
const messagesMax = 20_000

export type RunTransferDependencies = {
  store: Store
  /** Whether the run is an arm of a comparison that waits for its vote. */
  isUndecided(runId: string): Promise<boolean>
  /** The most characters of a document, and the most bytes of the files of one user. */
  limits: { documentChars: number; ownerFileBytes: number }
}

export type ImportOutcome = { outcome: 'imported' | 'unchanged'; runId: string; conversationId: string | null }

export class RunTransfer {
  private readonly dependencies: RunTransferDependencies

  constructor(dependencies: RunTransferDependencies) {
    this.dependencies = dependencies
  }

  /** `run` must be the caller's. Throws `export_refused` if it has not ended, or cannot be moved. */
  async export(run: RunRow): Promise<RunDocument> {
    if (!isTerminal(run.status) || run.endedAt === null) {
      throw new AppError('export_refused', 'The run has not ended. Wait for its end, or cancel it.')
    }
    if (await this.dependencies.isUndecided(run.id)) {
      throw new AppError('export_refused', 'The run is one of two answers that wait for a vote. Vote first.')
    }
    return await this.documentOf(run, run.owner)
  }

  /** Throws `import_invalid`, or `import_conflict` if one of its ids is taken by something else. */
  async import(owner: string, given: unknown): Promise<ImportOutcome> {
    const { store } = this.dependencies
    const document = await readRunDocument(given, owner)
    const { run, conversation, events } = document
    const result = { runId: run.id, conversationId: conversation?.id ?? null }
    const known = await store.readRun(run.id)
    if (known !== undefined) {
      if (known.owner !== owner || !isTerminal(known.status)) throw taken('run', run.id)
      if (!(await isSameRun(await this.documentOf(known, owner), document))) throw taken('run', run.id)
      return { outcome: 'unchanged', ...result }
    }
    const present = conversation === null ? undefined : await store.readConversation(conversation.id)
    if (conversation !== null) await this.checkConversation(owner, conversation.id, present)
    await this.checkIds(document)
    const files = referredFiles(document)
    await store.importRun(
      {
        run: {
          id: run.id,
          owner,
          family: run.family,
          agentId: run.agentId,
          conversationId: result.conversationId,
          createdAt: run.createdAt,
        },
        conversation:
          conversation === null
            ? null
            : {
                expect: present === undefined ? 'absent' : 'present',
                title: present === undefined ? conversation.title : null,
                name: nameOfConversation(conversation.id),
              },
        expectBehind: null,
        messages: document.messages.map(({ parts, ...row }) => ({
          ...row,
          ...defined({ parts }),
          runId: run.id,
          conversationId: result.conversationId ?? '',
        })),
        events,
        files,
        blobs: document.blobs,
        idempotency: null,
        queueMax: Number.MAX_SAFE_INTEGER,
        claim: null,
      },
      {
        run: {
          status: run.status,
          attempt: run.attempt,
          endedAt: run.endedAt,
          error: run.error,
          wakeAt: null,
          ...(run.startedAt === null ? {} : { startedAt: run.startedAt }),
          ...(run.engine === null ? {} : { engine: run.engine }),
          ...(run.usage === null ? {} : { usage: run.usage }),
        },
        newInteractions: document.interactions.map((row) => ({
          ...row,
          runId: run.id,
          owner,
          conversationId: result.conversationId,
          reply: null,
        })),
        ...(conversation === null ? {} : { touchConversationAt: run.endedAt }),
      },
    )
    return { outcome: 'imported', ...result }
  }

  /** Stores a file under its own id, for documents that refer to it. The same file again is harmless. */
  async importFile(row: FileRow, bytes: Uint8Array): Promise<'imported' | 'unchanged'> {
    const { store, limits } = this.dependencies
    const known = await store.readFile(row.id)
    if (known !== undefined) {
      if (known.owner !== row.owner || known.sha256 !== row.sha256) throw taken('file', row.id)
      return 'unchanged'
    }
    const stored = await store.putFile(row, bytes, limits.ownerFileBytes)
    if (stored.id !== row.id) {
      throw new AppError('import_conflict', `You have the same file under another id, ${stored.id}. Delete it first.`)
    }
    return 'imported'
  }

  private async documentOf(run: RunRow, owner: string): Promise<RunDocument> {
    const { store, limits } = this.dependencies
    const events: RunEvent[] = []
    let chars = 0
    const add = (more: number) => {
      chars += more
      if (chars <= limits.documentChars) return
      throw new AppError('export_too_large', `The document would have more than ${limits.documentChars} characters.`)
    }
    for await (const page of eventPages(store, run.id)) {
      if (page.skipped > 0) throw new AppError('export_refused', 'Some events of the run can no longer be read.')
      for (const event of page.events) events.push(portableEvent(event, owner))
      add(JSON.stringify(page.events).length)
    }
    const [accepted] = events
    const spec = accepted?.type === 'run.accepted' ? accepted.data.spec : undefined
    if (spec === undefined || spec.job !== undefined || spec.oneShot !== undefined) {
      throw new AppError(
        'export_refused',
        'Runs of jobs and of one-shot agents cannot be exported; fetch their results.',
      )
    }
    const blobs: RunDocument['blobs'] = []
    for (const id of referredBlobs(events)) {
      const blob = await store.readBlob(id)
      if (blob?.runId !== run.id) continue
      add(blob.body.length)
      blobs.push({ id, body: blob.body })
    }
    const { conversationId } = run
    const conversation = conversationId === null ? undefined : await store.readConversation(conversationId)
    const messages =
      conversationId === null ? [] : await store.allMessages(conversationId, { limit: messagesMax, runId: run.id })
    const shown = messages.filter(({ role }) => role !== 'system').map(documentMessage)
    add(JSON.stringify(shown).length)
    return {
      format: documentFormat,
      version: documentVersion,
      conversation: conversation === undefined ? null : { id: conversation.id, title: conversation.title },
      run: {
        id: run.id,
        family: run.family,
        agentId: run.agentId,
        status: run.status as RunDocument['run']['status'],
        attempt: run.attempt,
        createdAt: run.createdAt,
        startedAt: run.startedAt,
        endedAt: run.endedAt ?? 0,
        error: run.error,
        engine: run.engine,
        usage: run.usage,
      },
      messages: shown,
      interactions: (await store.interactionsOf(run.id)).map(documentInteraction),
      blobs,
      events,
    }
  }

  private async checkConversation(owner: string, id: string, present: { owner: string } | undefined): Promise<void> {
    const { store } = this.dependencies
    if (present !== undefined && present.owner !== owner) throw taken('conversation', id)
    const name = nameOfConversation(id)
    const named = name === null ? undefined : await store.findConversationByName(owner, name)
    if (named !== undefined && named.id !== id) {
      throw new AppError('import_conflict', `You have another conversation that is called ${JSON.stringify(name)}.`)
    }
    if ((await store.openRuns(id)).length > 0) {
      throw new AppError(
        'conversation_busy',
        'A run of the conversation has not ended. Wait for its end, or cancel it.',
      )
    }
  }

  /** Ids are chosen by the document, and must not be those of other things. */
  private async checkIds({ run, messages, interactions, blobs }: RunDocument): Promise<void> {
    const { store } = this.dependencies
    for (const { id } of messages) if ((await store.readMessage(id)) !== undefined) throw taken('message', id)
    for (const { id } of interactions) if ((await store.readInteraction(id)) !== undefined) throw taken('question', id)
    for (const { id } of blobs) {
      const known = await store.readBlob(id)
      if (known !== undefined && known.runId !== run.id) throw taken('output', id)
    }
  }
}

function taken(what: string, id: string): AppError {
  return new AppError('import_conflict', `There is another ${what} with the id ${id} here, so nothing was imported.`)
}

// The messages between the main thread and the writer thread. A batch of commands is
// one flat array of strings and numbers, because that is the cheapest value to copy
// between threads and copying it cannot fail.

import { AppError, type ErrorExtras } from '../../errors/app-error.ts'
import type { ErrorCode } from '../../errors/codes.ts'
import type { ArchiveApply, ArchivePayload, ArchiveRow } from '../archive-store.ts'
import type { ComparisonOutcome, ComparisonRow, ComparisonVote } from '../comparison-store.ts'
import type {
  ContactFields,
  ContactImport,
  ContactImportOutcome,
  ContactRecordKey,
  ContactRecordKind,
  ContactRecordRows,
  ContactRow,
} from '../contact-store.ts'
import type { ConversationChanges, ConversationRow, NewConversation } from '../conversation-store.ts'
import type { FeedbackRow, Reaction } from '../feedback-store.ts'
import type { FileRow } from '../file-store.ts'
import type { Decision, InteractionRow } from '../interaction-store.ts'
import type { ApiKeyRow, NewApiKey } from '../key-store.ts'
import type { MessageStateChange } from '../message-store.ts'
import type { NodeBeat } from '../node-store.ts'
import type { NoteRow } from '../note-store.ts'
import type {
  AcceptExtraRows,
  AcceptInput,
  AcceptResult,
  AnsweredRequest,
  CancelRequest,
  ClaimedRun,
  HeldStart,
  QueuedChange,
  RunEnding,
  RunRow,
  RunWrite,
} from '../run-store.ts'
import type { FileVersionRow, TodoItem } from '../workspace-store.ts'

/** The result of a command that was refused and stored none of its events. */
export type NothingStored = { outcome: 'existing' }
export const nothingStored: NothingStored = { outcome: 'existing' }

/**
 * The events of one append, encoded on the main thread. `id` is the id of their row in the journal tail, unless an earlier append of the
 * run is in the same transaction: then they are in its row. The ids of a run only grow.
 */
export type EncodedEvents = { id: number; lastSeq: number; body: string }

/** The input (`takes`) and the result (`gives`) of each command. */
type CommandTable = Record<string, { takes: unknown; gives: unknown }>

/** A lease that runs out at a time of the store's clock. `leaseNow` is the time now, by which other leases are judged. */
export type Lease = { node: string; leaseUntil: number; leaseNow: number; slots?: number }

type AcceptCommand = Omit<AcceptInput, 'events' | 'claim' | 'start'> & {
  claim: Lease | null
  attempt: number
  journal: EncodedEvents | null
  /** Only if the run is claimed. `body` holds the events after those of `journal`. */
  start?: { at: number; engine: string; lastSeq: number; body: string }
}

/** `now` is compared with `wakeAt`. */
type ClaimCommand = Lease & { now: number; limit: number; offers: readonly string[] }

export type RunCommands = {
  accept: { takes: AcceptCommand; gives: AcceptResult }
  acceptAll: { takes: { inputs: AcceptCommand[]; extraRows: AcceptExtraRows }; gives: AcceptResult[] }
  importRun: { takes: { input: AcceptCommand; ending: RunEnding }; gives: null }
  startHeld: {
    takes: Omit<HeldStart, 'events' | 'claim'> & { claim: Lease | null; journal: EncodedEvents | null }
    gives: RunRow
  }
  changeQueued: {
    takes: Omit<QueuedChange, 'events'> & { journal: EncodedEvents | null }
    gives: RunRow | NothingStored
  }
  append: { takes: Omit<RunWrite, 'events' | 'durable'> & { journal: EncodedEvents | null }; gives: null }
  claim: { takes: ClaimCommand; gives: ClaimedRun[] }
  unplaceableRuns: { takes: { now: number; leaseNow: number; limit: number }; gives: RunRow[] }
  claimUnplaceable: { takes: { runId: string; now: number; lease: Lease }; gives: RunRow | null }
  renewLeases: { takes: Lease & { runIds: string[] }; gives: RunRow[] }
  requestCancel: { takes: { runId: string; cancel: CancelRequest }; gives: RunRow | null }
  bindIdempotencyKey: { takes: AnsweredRequest; gives: null }
  putBlob: { takes: { id: string; runId: string; body: string }; gives: null }
  expireRuns: { takes: { endedBefore: number; limit: number }; gives: number }
  removeRun: { takes: { runId: string }; gives: boolean }
  removeEndedRuns: {
    takes: { owner: string; families: string[]; limit: number }
    gives: { removed: number; cached: number }
  }
}

export type ConversationCommands = {
  createConversation: { takes: NewConversation; gives: null }
  updateConversation: {
    takes: { id: string; changes: ConversationChanges; at: number }
    gives: ConversationRow | null
  }
  deleteConversation: { takes: { id: string }; gives: boolean }
}

export type MessageCommands = {
  setMessageStates: { takes: MessageStateChange[]; gives: null }
}

export type InteractionCommands = {
  decide: { takes: { id: string; decision: Decision }; gives: { decided: boolean; row: InteractionRow } | null }
}

export type FeedbackCommands = {
  react: { takes: FeedbackRow & { kind: Reaction }; gives: { reaction: Reaction | null } | null }
  addComment: { takes: FeedbackRow; gives: boolean }
}

export type ComparisonCommands = {
  createComparison: { takes: { row: ComparisonRow; messageStates: MessageStateChange[] }; gives: ComparisonRow }
  settleComparison: { takes: { id: string } & ComparisonOutcome; gives: boolean }
  voteComparison: { takes: { id: string; vote: ComparisonVote }; gives: { voted: boolean; row: ComparisonRow } | null }
}

export type WorkspaceCommands = {
  saveFileVersion: { takes: FileVersionRow; gives: null }
  saveTodos: { takes: { scope: string; todos: TodoItem[]; at: number }; gives: null }
}

export type NodeCommands = {
  beatNode: { takes: NodeBeat & { seenAt: number }; gives: null }
  removeNode: { takes: { id: string }; gives: null }
}

export type KeyCommands = {
  addKey: { takes: NewApiKey; gives: null }
  revokeKey: { takes: { id: string; at: number }; gives: ApiKeyRow | null }
  recordKeyUse: { takes: { ids: string[]; at: number }; gives: null }
}

export type NoteCommands = {
  addNote: { takes: NoteRow; gives: null }
}

export type FileCommands = {
  /** `body` is in base64. Creates the content with its first chunk. */
  putFileChunk: {
    takes: {
      owner: string
      sha256: string
      size: number
      number: number
      body: string
      at: number
      ownerBytesMax: number
    }
    gives: null
  }
  /** Null if chunks of the content are missing. */
  putFile: { takes: FileRow; gives: FileRow | null }
  deleteFile: { takes: { owner: string; id: string }; gives: 'deleted' | 'missing' | 'in_use' }
  expireFiles: { takes: { before: number; limit: number }; gives: number }
}

export type SnapshotCommands = {
  expireSnapshots: { takes: { expiredBefore: number; limit: number }; gives: number }
}

export type ContactCommands = {
  createContact: { takes: { row: ContactRow; max: number }; gives: null }
  updateContact: {
    takes: { owner: string; id: string; changes: Partial<ContactFields>; at: number }
    gives: ContactRow | null
  }
  deleteContact: { takes: { owner: string; id: string }; gives: 'deleted' | 'missing' | 'has_conversations' }
  importContacts: {
    takes: { owner: string; entries: readonly ContactImport[]; at: number; max: number }
    gives: ContactImportOutcome[]
  }
}

type AnyContactRecord = ContactRecordRows[ContactRecordKind]

export type ContactRecordCommands = {
  addContactRecord: { takes: { kind: ContactRecordKind; row: AnyContactRecord }; gives: null }
  updateContactRecord: {
    takes: { kind: ContactRecordKind; key: ContactRecordKey; changes: Partial<AnyContactRecord>; at: number }
    gives: AnyContactRecord | null
  }
  deleteContactRecord: { takes: { kind: ContactRecordKind; key: ContactRecordKey }; gives: boolean }
}

export type ArchiveCommands = {
  createArchive: { takes: ArchiveRow; gives: ArchiveRow }
  changeArchive: {
    takes: { id: string; revision: number; payload: ArchivePayload; at: number }
    gives: ArchiveRow | null
  }
  applyArchive: { takes: ArchiveApply; gives: ArchiveRow | null }
  discardArchive: { takes: { id: string; at: number }; gives: ArchiveRow | null }
}

export type FeedCommands = {
  expireFeed: { takes: { keep: number; limit: number }; gives: number }
}

/** Every command of the writer, by the part of the store that it belongs to. */
export type Commands = RunCommands &
  ConversationCommands &
  MessageCommands &
  InteractionCommands &
  FeedbackCommands &
  ComparisonCommands &
  WorkspaceCommands &
  KeyCommands &
  NoteCommands &
  NodeCommands &
  FileCommands &
  SnapshotCommands &
  ContactCommands &
  ContactRecordCommands &
  ArchiveCommands &
  FeedCommands & { check: { takes: null; gives: null } }

export type CommandName = keyof Commands

/** One function for each command of a table. They run in the writer thread, inside the transaction of the batch. */
export type Handlers<Table extends CommandTable = Commands> = {
  [Name in keyof Table]: (input: Table[Name]['takes']) => Table[Name]['gives']
}

/**
 * Marks an append that changes no row: the path of every delta. It is followed by
 * runId, epoch, afterSeq, journal id, lastSeq, body. Any other command is its name
 * followed by its input as JSON, the number of long texts in it, and these texts:
 * inside the JSON they would be escaped, copied and parsed once more.
 */
export const deltaMark = '.'
/** How many values such an append has. */
export const deltaLength = 7

const longTextChars = 16 * 1024
/** Prefix of the placeholder for a text that was moved out of the JSON. A text that itself starts with it is moved out too. */
const textMark = '\u0001'
/** The placeholder for the events of a command that has no other text beside its JSON. */
const bodyMark = `${textMark}events`

/** The JSON of a command, and the long texts that it refers to. */
export function packCommand(input: unknown): { json: string; texts: string[] } {
  // Fast path: nearly all commands are short appends, and their rows repeat only text that is in their events. The events are
  // JSON already, so they are never part of the JSON of the command.
  const journal = (input as { journal?: EncodedEvents | null } | null)?.journal
  if (journal != null && journal.body.length < longTextChars) {
    const json = JSON.stringify({ ...(input as object), journal: { ...journal, body: bodyMark } })
    return { json, texts: [journal.body] }
  }
  const texts: string[] = []
  const json = JSON.stringify(input, (_key, value: unknown) => {
    if (typeof value !== 'string' || (value.length < longTextChars && !value.startsWith(textMark))) return value
    texts.push(value)
    return `${textMark}${texts.length - 1}`
  })
  return { json, texts }
}

export function unpackCommand(json: string, texts: readonly string[]): unknown {
  if (texts.length === 0) return JSON.parse(json)
  if (texts.length === 1) {
    const input = JSON.parse(json) as { journal?: { body: string } | null }
    if (input.journal?.body === bodyMark) {
      input.journal.body = texts[0] as string
      return input
    }
  }
  return JSON.parse(json, (_key, value: unknown) =>
    typeof value === 'string' && value.startsWith(textMark) ? texts[Number(value.slice(textMark.length))] : value,
  )
}

/** `values` is the sequence of commands, encoded as described at `deltaMark`. */
export type CommandBatch = {
  durable: boolean
  values: (string | number)[]
  /**
   * Executed before `values`: commands that were acknowledged from the log, as ranges of its records after `after`, up to `number`
   * (log-record.ts). They are in memory that both threads share, and do not change before the reply. Absent if there are none.
   */
  logged?: { after: number; number: number; records: readonly Uint8Array[] }
  /** If an earlier batch is on its way that has commands of the log: the number up to which the database then has the log. */
  needsLog?: number
}

/** Which log belongs to the database, and how much of it the database has. */
export type LogState = {
  lineage: number
  /** The database has the commands up to this number. */
  applied: number
}

export type Failure = {
  code: ErrorCode
  message: string
  retryable: boolean
  details: Record<string, unknown> | undefined
  cause: string | undefined
}

/**
 * The rows of the journal tail that hold the events of several appends: [runId, id, firstSeq, lastSeq, runId, …]. Other rows have the id
 * of their append.
 */
export type MergedRows = (string | number)[]

/** `index` counts the commands of the batch from 0. A command in neither list succeeded with the result null. */
export type BatchReply = {
  type: 'done'
  failures: [index: number, failure: Failure][]
  results: [index: number, value: unknown][]
  /** Runs whose events up to `lastSeq` were folded: read them from the journal table, not from the tail. */
  folded: [runId: string, lastSeq: number][]
  /** Absent if there are none. Rows in it may have been folded, too. */
  merged?: MergedRows
}

export type WriterMessage =
  | { type: 'ready'; log: LogState }
  | { type: 'refused'; failure: Failure }
  /** `isSpent`: closing failed, and the thread must not be used again. */
  | { type: 'closed'; isSpent: boolean }
  /** The whole batch was rolled back. `applied`: the commands that were acknowledged from the log were then executed alone. */
  | { type: 'failed'; failure: Failure; applied?: BatchReply }
  /** Closing failed after the last batch, so no command is waiting for this error. */
  | { type: 'trouble'; failure: Failure }
  | BatchReply

/** `open`: the path of the database file. */
export type WriterRequest = { open: string } | CommandBatch | 'close'

export function toFailure(error: AppError): Failure {
  const { cause } = error
  return {
    code: error.code,
    message: error.message,
    retryable: error.retryable,
    // The round trip through JSON drops values that cannot be copied to the other thread.
    details: error.details === undefined ? undefined : JSON.parse(JSON.stringify(error.details)),
    cause: cause === undefined ? undefined : cause instanceof Error ? cause.message : String(cause),
  }
}

export function fromFailure(failure: Failure): AppError {
  const extras: ErrorExtras = { retryable: failure.retryable }
  if (failure.details !== undefined) extras.details = failure.details
  if (failure.cause !== undefined) extras.cause = new Error(failure.cause)
  return new AppError(failure.code, failure.message, extras)
}

// What the main thread and the writer thread say to each other. Commands travel
// as one flat array of strings and numbers: that is the cheapest thing to copy
// between threads, and it cannot fail to be copied.

import { AppError, type ErrorExtras } from '../../errors/app-error.ts'
import type { ErrorCode } from '../../errors/codes.ts'
import type { ComparisonOutcome, ComparisonRow, ComparisonVote } from '../comparison-store.ts'
import type { ConversationRow, NewConversation } from '../conversation-store.ts'
import type { FeedbackRow, Reaction } from '../feedback-store.ts'
import type { Decision, InteractionRow } from '../interaction-store.ts'
import type { MessageStateChange } from '../message-store.ts'
import type { NoteRow } from '../note-store.ts'
import type {
  AcceptBeside,
  AcceptInput,
  AcceptResult,
  CancelRequest,
  ClaimRequest,
  HeldStart,
  RunRow,
  RunWrite,
} from '../run-store.ts'
import type { FileVersionRow, TodoItem } from '../workspace-store.ts'

/** The events of one append, encoded on the main thread. `id` is that of the row in the tail, and grows. */
export type JournalPart = { id: number; lastSeq: number; body: string }

/** What each command takes, and what it gives. */
type CommandTable = Record<string, { takes: unknown; gives: unknown }>

type AcceptCommand = Omit<AcceptInput, 'events'> & { attempt: number; journal: JournalPart | null }

export type RunCommands = {
  accept: { takes: AcceptCommand; gives: AcceptResult }
  acceptAll: { takes: { inputs: AcceptCommand[]; beside: AcceptBeside }; gives: AcceptResult[] }
  startHeld: { takes: Omit<HeldStart, 'events'> & { journal: JournalPart | null }; gives: RunRow }
  append: { takes: Omit<RunWrite, 'events' | 'durable'> & { journal: JournalPart | null }; gives: null }
  claim: { takes: ClaimRequest; gives: RunRow[] }
  renewLeases: { takes: { node: string; leaseUntil: number; runIds: string[] }; gives: RunRow[] }
  requestCancel: { takes: { runId: string; cancel: CancelRequest }; gives: RunRow | null }
  putBlob: { takes: { id: string; runId: string; body: string }; gives: null }
  expireRuns: { takes: { endedBefore: number; limit: number }; gives: number }
  removeEndedRuns: {
    takes: { owner: string; families: string[]; limit: number }
    gives: { removed: number; cached: number }
  }
}

export type ConversationCommands = {
  createConversation: { takes: NewConversation; gives: null }
  renameConversation: { takes: { id: string; title: string | null; at: number }; gives: ConversationRow | null }
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

export type NoteCommands = {
  addNote: { takes: NoteRow; gives: null }
}

/** Every command of the writer, by the part of the store that it belongs to. */
export type Commands = RunCommands &
  ConversationCommands &
  MessageCommands &
  InteractionCommands &
  FeedbackCommands &
  ComparisonCommands &
  WorkspaceCommands &
  NoteCommands & { check: { takes: null; gives: null } }

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

const longTextChars = 16 * 1024
/** Begins the place of a text that was taken out of the JSON. A text that really begins so is taken out, too. */
const textMark = '\u0001'

/** The JSON of a command, and the long texts that it refers to. */
export function packCommand(input: unknown): { json: string; texts: string[] } {
  const texts: string[] = []
  // Nearly all commands are short appends, whose rows hold no text that their events do not hold.
  const body = (input as { journal?: JournalPart | null } | null)?.journal?.body
  if (body !== undefined && body.length < longTextChars) return { json: JSON.stringify(input), texts }
  const json = JSON.stringify(input, (_key, value: unknown) => {
    if (typeof value !== 'string' || (value.length < longTextChars && !value.startsWith(textMark))) return value
    texts.push(value)
    return `${textMark}${texts.length - 1}`
  })
  return { json, texts }
}

export function unpackCommand(json: string, texts: readonly string[]): unknown {
  if (texts.length === 0) return JSON.parse(json)
  return JSON.parse(json, (_key, value: unknown) =>
    typeof value === 'string' && value.startsWith(textMark) ? texts[Number(value.slice(textMark.length))] : value,
  )
}

export type Batch = { durable: boolean; values: (string | number)[] }

export type Failure = {
  code: ErrorCode
  message: string
  retryable: boolean
  details: Record<string, unknown> | undefined
  cause: string | undefined
}

/** Commands are counted from 0 within their batch; those that are not mentioned succeeded and gave nothing. */
export type BatchReply = {
  type: 'done'
  failures: [index: number, failure: Failure][]
  results: [index: number, value: unknown][]
  /** Runs whose events up to `lastSeq` are no longer read from the tail. */
  folded: [runId: string, lastSeq: number][]
}

export type WriterMessage =
  | { type: 'ready' }
  | { type: 'refused'; failure: Failure }
  | { type: 'closed' }
  /** The whole batch was rolled back. */
  | { type: 'failed'; failure: Failure }
  /** Upkeep that nobody waits for went wrong. */
  | { type: 'trouble'; failure: Failure }
  | BatchReply

export type WriterRequest = Batch | 'close'

export function toFailure(error: AppError): Failure {
  const { cause } = error
  return {
    code: error.code,
    message: error.message,
    retryable: error.retryable,
    // Through JSON, so that it can always be copied to the other thread.
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

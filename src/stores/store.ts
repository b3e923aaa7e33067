// What any store promises. One contract suite (test/contracts/store-contract.ts)
// runs against every implementation.
//
// The store keeps rows and compares; it decides nothing. Every write that depends
// on what was read says what it expects (`epoch`, `afterSeq`, `expect…`), and is
// refused as a whole when that is no longer so; the caller reads again. That is
// all the concurrency control there is, and it is the same on one file and on a
// database shared by many nodes.
//
// Promises of every method that writes: all of it or nothing; committed when the
// promise resolves; synced to disk when `durable` was asked for (or always, where
// the method does not ask). Errors are AppErrors; anything the database says that
// is not listed becomes `store_unavailable`, or `store_damaged` if the file is corrupt.

import type { JsonValue, RunEvent, RunStatus } from '../journal/event.ts'
import type { EventReader } from '../journal/event-pages.ts'
import type { ErrorValue } from '../errors/app-error.ts'

export type RunRow = {
  id: string
  owner: string
  family: string
  agentId: string
  conversationId: string | null
  /** The skill of a job; null for other runs, and until an upload has brought the skill. */
  skillId: string | null
  status: RunStatus
  attempt: number
  /** Grows with every claim. Every append carries it and is refused when it is stale. */
  epoch: number
  /** The node that works on the run, or null. */
  leaseOwner: string | null
  leaseUntil: number | null
  /** When a parked or held run wants to be claimed: its next deadline, or 0 (at once) after a decision or a cancel request. */
  wakeAt: number | null
  lastSeq: number
  cancel: CancelRequest | null
  createdAt: number
  startedAt: number | null
  endedAt: number | null
  error: ErrorValue | null
}

export type CancelRequest = { by: string; reason: string | null; at: number }

export type ConversationRow = {
  id: string
  owner: string
  title: string | null
  createdAt: number
  updatedAt: number
  /** When its last question or answer was written, leaving out what broke off; null if it has none. */
  lastMessageAt: number | null
}

export type NewConversation = Omit<ConversationRow, 'lastMessageAt'>

export type MessageState = 'active' | 'superseded' | 'abandoned'

export type MessageRow = {
  id: string
  conversationId: string
  runId: string | null
  parentId: string | null
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string
  state: MessageState
  toolCallId: string | null
  metadata: Record<string, JsonValue>
  createdAt: number
}

export type InteractionStatus = 'pending' | 'confirmed' | 'rejected' | 'replied' | 'auto_decided' | 'expired' | 'closed'

/** One question to a person. The row is what other connections and nodes decide on; the journal tells the story. */
export type InteractionRow = {
  id: string
  number: number
  runId: string
  owner: string
  conversationId: string | null
  kind: 'confirmation' | 'question' | 'client_tool'
  callId: string | null
  toolName: string | null
  prompt: string
  /** What was shown; a decision applies to exactly this, or to the edit that came with it. */
  input: JsonValue
  outcome: 'unknown' | null
  status: InteractionStatus
  /** Arguments as edited while confirming, or the reply to a question. */
  response: JsonValue | null
  reason: string | null
  decidedBy: string | null
  decidedAt: number | null
  /** Filled in when the confirmed call has run. */
  result: JsonValue | null
  error: ErrorValue | null
  executedAt: number | null
  deadlineAt: number | null
  atDeadline: 'expire' | 'auto_decide' | null
  /** How the reply that decided it can be known again; null where it came without a key. */
  reply: ReplyKey | null
  createdAt: number
  updatedAt: number
}

export type ReplyKey = { key: string; fingerprint: string }

export type Decision = {
  status: 'confirmed' | 'rejected' | 'replied' | 'auto_decided' | 'expired'
  by: string
  at: number
  response?: JsonValue
  reason?: string
  reply?: ReplyKey
}

export type AcceptInput = {
  run: {
    id: string
    owner: string
    family: string
    agentId: string
    conversationId: string | null
    skillId?: string
    createdAt: number
  }
  /**
   * `absent`: inserts the conversation. `present`: it must exist and belong to the run's owner.
   * When that is not so, `accept_stale`: read again.
   */
  conversation: {
    expect: 'absent' | 'present'
    title: string | null
    /** The owner's name for it, bound to it; `accept_stale` if it names another conversation of the owner. */
    name: string | null
    /** A second name: bound if the owner uses it for no conversation yet. */
    alias?: string
    /** The request that creates it named no conversation. */
    unnamed?: true
  } | null
  /**
   * The newest run of the conversation that had not ended when the caller looked; `accept_stale` when another has come or this one has ended.
   * With `joinTurnOf` the runs of that turn and of later ones do not count: it is what stands before the turn.
   */
  expectBehind: string | null
  /**
   * A run of the same conversation and owner that has not ended (else `accept_stale`): this run takes part in its turn. It does not
   * wait for that run, sees the same history, and whoever comes later waits for both.
   */
  joinTurnOf?: string
  /** Inserted in this order. */
  messages: MessageRow[]
  /** The first events, numbered from 1. */
  events: RunEvent[]
  /** Unique per owner and route. A key that is taken gives outcome `existing`, or `idempotency_key_reused` with another fingerprint. */
  idempotency: { key: string; route: string; fingerprint: string } | null
  /** How many runs may be queued and unclaimed (a run waiting for a person does not count); one more is `queue_full`. */
  queueMax: number
  /** Claims the run at once when nothing stands before it in its conversation. */
  claim: { node: string; leaseUntil: number } | null
  /** Requests the cancel of the conversation's unfinished runs of earlier turns, as `requestCancel` would, with this accept or not at all. */
  cancelEarlier?: CancelRequest
  /** Something that the run needs has not come yet: it is not queued for anybody (and never `queue_full`) until `startHeld`. */
  hold?: true
  /** How many runs may be held, of this owner and of all; one more is `jobs_awaiting_upload`. Without it there is no bound. */
  heldMax?: { owner: number; all: number }
  /** A held run that has not started by then is claimable, so that its owner can end it. Absent: it waits for ever. */
  holdUntil?: number
  /** If a run of the owner succeeded with this key, that one is the answer (`reused`), and nothing is accepted. */
  reuse?: { cacheKey: string }
}

/** What lets a held run start. */
export type HeldStart = {
  runId: string
  /** `run_fenced` unless it is the run's last seq. */
  afterSeq: number
  events: RunEvent[]
  /** The skill that came with it. */
  skillId?: string
  /** What came with it. */
  blobs: { id: string; body: string }[]
  queueMax: number
  claim: { node: string; leaseUntil: number } | null
}

/** Rows that come into being together with the runs of an `acceptAll`. */
export type AcceptBeside = { comparison?: ComparisonRow }

/** `reused`: the run answered an equal request before; it was found by `reuse`, or by the key of a request that was. */
export type AcceptResult = { outcome: 'accepted' | 'existing'; run: RunRow; reused?: true }

export type RunWrite = {
  runId: string
  /** `run_fenced` unless it is the row's epoch. */
  epoch: number
  /** `run_fenced` unless it is the run's last seq. */
  afterSeq: number
  /** Numbered afterSeq+1, afterSeq+2, … May be empty: then only rows change. */
  events: RunEvent[]
  /** Synced to disk before the promise resolves. */
  durable: boolean
  /** Fields of the run row that change with these events. `release` gives up the lease. */
  run?: {
    status?: RunStatus
    attempt?: number
    startedAt?: number
    endedAt?: number
    error?: ErrorValue | null
    wakeAt?: number | null
    release?: boolean
    /** Under which later equal requests find this run. */
    cacheKey?: string
  }
  messages?: MessageRow[]
  messageStates?: { id: string; state: MessageState }[]
  newInteractions?: InteractionRow[]
  /** After the fact: what a confirmed call gave, or that a pending one was closed with its run. */
  interactionUpdates?: {
    id: string
    /** Only where the row is still pending. */
    closePending?: boolean
    result?: JsonValue | null
    error?: ErrorValue | null
    executedAt?: number
    at: number
  }[]
  /** Sets updated_at of the run's conversation. */
  touchConversationAt?: number
  /** Removes the run's blobs whose ids begin like this. */
  dropBlobs?: string
}

/** One page of a list. `more`: there are rows beyond it, left out because of the limit or because the page has enough text. */
export type RowPage<Row> = { rows: Row[]; more: boolean }

export type ClaimRequest = {
  node: string
  /** What `wakeAt` is compared with. */
  now: number
  /** What `leaseUntil` of others is compared with; `now` if absent. Leases are measured with a clock that never steps. */
  leaseNow?: number
  leaseUntil: number
  /** How many runs that need a slot may be taken. Runs whose cancel was requested are taken beyond it. */
  limit: number
}

export type RunFilter = {
  owner: string
  conversationId?: string
  status?: RunStatus[]
  family?: string
  skillId?: string
  /** Runs accepted before this one. */
  before?: string
  limit: number
}

export type Reaction = 'like' | 'dislike'

/** What somebody said about a message. At most one reaction a person and message; comments without a bound. */
export type FeedbackRow = {
  messageId: string
  owner: string
  kind: Reaction | 'comment'
  text: string | null
  incorrect: boolean
  unhelpful: boolean
  inappropriate: boolean
  at: number
}

export type FeedbackSummary = { reaction: Reaction | null; comments: number }

export type Preference = 'a' | 'b' | 'tie' | 'both_bad'

/** Two answers to one question. Sides (`a` is shown first) are not configurations: which is which is `firstSideIsConfigA`. */
export type ComparisonRow = {
  id: string
  conversationId: string
  owner: string
  userMessageId: string
  /** Null where the answer came without a run. A run may be gone before its comparison. */
  runA: string | null
  runB: string | null
  /** The answers; null until both are known. */
  messageA: string | null
  messageB: string | null
  configA: string
  configB: string
  firstSideIsConfigA: boolean
  /** False while it is only a pair that the server noticed: no vote is asked, and nothing is hidden. */
  offered: boolean
  /** `pending`: an answer is under way. `ready`: a vote may come. `failed`: there will be none. */
  state: 'pending' | 'ready' | 'failed'
  preference: Preference | null
  preferenceAt: number | null
  /** Votes that were replaced by later ones, oldest first. */
  revisions: { preference: Preference; at: number }[]
  createdAt: number
}

export type ComparisonVote = {
  preference: Preference
  at: number
  /** How many votes the caller saw on it, replaced ones included; another number is refused. */
  expectVotes: number
  /** Which messages are the history from now on. */
  messageStates: { id: string; state: MessageState }[]
}

/** How many votes of one kind there are. */
export type VoteCount = Pick<ComparisonRow, 'configA' | 'configB' | 'firstSideIsConfigA'> & {
  preference: Preference
  count: number
}

/** A file as a session knows it: what it read last, or wrote. */
export type FileVersionRow = {
  /** The conversation, or the run where there is none. */
  scope: string
  /** Named from the workspace. */
  path: string
  /** SHA-256 of the content that the session knows, or was about to write. */
  hash: string
  /** Set where the session writes: the call's idempotency key, and what the file was before (null: not there). */
  write: { key: string; before: string | null; replacements: number } | null
  at: number
}

/** One line of a to-do list. */
export type TodoItem = {
  id: string
  title: string
  status: 'pending' | 'in_progress' | 'completed'
  assignee?: string
  notes?: string
}

export type NoteRow = { id: string; owner: string; text: string; createdAt: number }

export interface Store extends EventReader {
  // Runs
  accept(input: AcceptInput): Promise<AcceptResult>
  /** Several accepts in their order, all or none; a later one may join the turn of an earlier one. */
  acceptAll(inputs: AcceptInput[], beside?: AcceptBeside): Promise<AcceptResult[]>
  /**
   * Lets a held run start, once: `run_fenced` if it was started, cancelled, claimed or ended before, `queue_full` as for an accept; then
   * nothing has changed.
   */
  startHeld(start: HeldStart): Promise<RunRow>
  /** One run's next events, with the rows that are folds of them. */
  append(write: RunWrite): Promise<void>
  /**
   * Takes runs that nobody works on: queued ones whose turn it is in their conversation (no run of an earlier turn in it
   * is unfinished), interrupted ones (running, without a live lease), parked and held ones whose `wakeAt` has come, and
   * all unfinished ones whose cancel was requested. Oldest first. Each gets a new epoch.
   */
  claim(request: ClaimRequest): Promise<RunRow[]>
  /**
   * Extends the leases of these runs, as far as `node` still holds them. Returns the rows that it holds, so that it learns of
   * cancel requests and, by what is missing, of lost leases.
   */
  renewLeases(node: string, leaseUntil: number, runIds: readonly string[]): Promise<RunRow[]>
  /** Records the wish, once (the first counts), and wakes the run. Undefined when there is no such run; an ended run is returned as it is. */
  requestCancel(runId: string, cancel: CancelRequest): Promise<RunRow | undefined>
  readRun(runId: string): Promise<RunRow | undefined>
  /** Newest first. */
  listRuns(filter: RunFilter): Promise<RowPage<RunRow>>
  /** Unfinished runs of a conversation, oldest first. */
  openRuns(conversationId: string): Promise<RunRow[]>
  findIdempotent(owner: string, route: string, key: string): Promise<{ runId: string; fingerprint: string } | undefined>
  /** The newest run of the owner that succeeded under this cache key. */
  findCached(owner: string, cacheKey: string): Promise<string | undefined>
  /** The earliest `wakeAt` of a parked or held run. */
  nextWakeAt(): Promise<number | null>
  countRuns(): Promise<Partial<Record<RunStatus, number>>>

  // Interactions
  readInteraction(id: string): Promise<InteractionRow | undefined>
  /** Newest first. */
  listInteractions(filter: {
    owner: string
    runId?: string
    conversationId?: string
    status?: InteractionStatus[]
    kind?: InteractionRow['kind']
    /** True: only those whose call ran and gave an error. False: only the others. */
    failed?: boolean
    /** Only those that were asked before this one. */
    before?: string
    limit: number
  }): Promise<RowPage<InteractionRow>>
  interactionsOf(runId: string): Promise<InteractionRow[]>
  /**
   * Pending → decided, once: only while the row is pending and (unless the decision is `expired` or `auto_decided`) its deadline lies
   * after `decision.at`. Wakes the run: it is claimable from then on until it is claimed, also when its owner parks it later. Returns the row as it is afterwards and whether this call decided it.
   */
  decide(id: string, decision: Decision): Promise<{ decided: boolean; row: InteractionRow } | undefined>

  // Conversations and messages
  createConversation(row: NewConversation): Promise<void>
  readConversation(id: string): Promise<ConversationRow | undefined>
  /** By a name that this owner's clients chose; see `AcceptInput.conversation`. */
  findConversationByName(owner: string, name: string): Promise<ConversationRow | undefined>
  /** The one that was created as `unnamed` last. */
  newestUnnamedConversation(owner: string): Promise<ConversationRow | undefined>
  /** Last used first: in the order of what happened, not of `updatedAt`, since the clock may be set. */
  listConversations(owner: string, page: { limit: number; before?: { id: string } }): Promise<RowPage<ConversationRow>>
  /** The one with the newest message first (one without any counts as new when it was made). */
  listConversationsByLastMessage(
    owner: string,
    page: { limit: number; before?: { id: string } },
  ): Promise<RowPage<ConversationRow>>
  /** Of the conversations whose id begins with `prefix`: how many there are, and in how many a run has not ended. */
  countConversations(prefix: string): Promise<{ total: number; active: number }>
  renameConversation(id: string, title: string | null, at: number): Promise<ConversationRow | undefined>
  /** With its messages, their feedback, runs, events, interactions and blobs. Refused with `conversation_busy` while a run in it has not ended. */
  deleteConversation(id: string): Promise<boolean>
  /**
   * The newest `limit` messages before the cursor, ascending, in the order of their turns and, within one, of writing (not of
   * `createdAt`, since the clock may be set). Only `active` ones, and no assistant rows without text (those exist for the model only).
   */
  listMessages(
    conversationId: string,
    page: { limit: number; before?: { id: string } | { createdAt: number } },
  ): Promise<RowPage<MessageRow>>
  readMessage(id: string): Promise<MessageRow | undefined>
  /** As `allMessages`, a page at a time: the newest ones before the message `before`, ascending. */
  pageOfAllMessages(conversationId: string, page: { limit: number; before?: string }): Promise<RowPage<MessageRow>>
  /** Messages in any state, also assistant rows without text, in the order of their turns; the newest `limit` of them, ascending. */
  allMessages(conversationId: string, filter: { limit: number; runId?: string }): Promise<MessageRow[]>
  /** All of them or none; ids that nobody has are left out. */
  setMessageStates(states: { id: string; state: MessageState }[]): Promise<void>
  /**
   * What a model may be told of earlier turns: active messages of turns before that of `beforeRunId` (and messages without a run),
   * in the order of their turns, the newest `limit` of them. Runs that did not succeed contribute their user message
   * and their finished messages.
   */
  historyBefore(conversationId: string, beforeRunId: string, limit: number): Promise<MessageRow[]>

  // Feedback on messages; gone with its message.
  /**
   * The same reaction again takes it back, another one replaces it. Returns what stands afterwards, undefined where there is no
   * such message.
   */
  react(feedback: FeedbackRow & { kind: Reaction }): Promise<{ reaction: Reaction | null } | undefined>
  /** False where there is no such message. */
  addComment(feedback: FeedbackRow & { kind: 'comment' }): Promise<boolean>
  /** Everything that `owner` said about a message, oldest first. */
  feedbackOn(messageId: string, owner: string): Promise<FeedbackRow[]>
  /** What `owner` said about the messages of a conversation, by message; messages without feedback are not in it. */
  feedbackIn(conversationId: string, owner: string): Promise<Map<string, FeedbackSummary>>

  // Comparisons; gone with their conversation.
  /**
   * Returns the row that stands: where there is one on the same two answers already, that one, and nothing is changed. Takes the
   * place of a pair of the same runs that was not offered.
   */
  createComparison(row: ComparisonRow, messageStates: { id: string; state: MessageState }[]): Promise<ComparisonRow>
  readComparison(id: string): Promise<ComparisonRow | undefined>
  /** The one that a run is an arm of; the newest where there are several. */
  findComparisonByRun(runId: string): Promise<ComparisonRow | undefined>
  /** Newest first, only offered ones. `unvoted`: only those that nobody voted on. */
  listComparisons(filter: {
    owner: string
    conversationId?: string
    unvoted?: boolean
    state?: ComparisonRow['state'][]
    limit: number
  }): Promise<ComparisonRow[]>
  /** Those of anybody whose answers are under way, oldest first. */
  pendingComparisons(limit: number): Promise<ComparisonRow[]>
  /** Pending → ready or failed, once. False where it was settled before, or is gone. */
  settleComparison(
    id: string,
    outcome: {
      state: 'ready' | 'failed'
      messageA: string | null
      messageB: string | null
      messageStates: { id: string; state: MessageState }[]
    },
  ): Promise<boolean>
  /** Only while it is ready and has as many votes as the caller saw. Returns the row as it is afterwards and whether this vote counted. */
  voteComparison(id: string, vote: ComparisonVote): Promise<{ voted: boolean; row: ComparisonRow } | undefined>
  /** Votes by configurations, sides and preference: of one owner, or of all. Replaced votes do not count. */
  countVotes(owner: string | null): Promise<VoteCount[]>

  // Large tool outputs, beside the journal; gone with their run.
  putBlob(id: string, runId: string, body: string): Promise<void>
  /** How many blobs of a run have ids that begin so. */
  countBlobs(runId: string, prefix: string): Promise<number>
  readBlob(id: string): Promise<{ runId: string; body: string } | undefined>

  // What a session knows of its files, and its to-do list; gone with their conversation or run.
  readFileVersion(scope: string, path: string): Promise<FileVersionRow | undefined>
  /** Replaces what was known of the file. */
  saveFileVersion(row: FileVersionRow): Promise<void>
  /** Empty where there is none. */
  readTodos(scope: string): Promise<TodoItem[]>
  /** Replaces the whole list. */
  saveTodos(scope: string, todos: TodoItem[], at: number): Promise<void>

  // Notes of a user
  addNote(note: NoteRow): Promise<void>
  searchNotes(owner: string, query: string, limit: number): Promise<NoteRow[]>

  /** Removes runs that ended before `endedBefore` (events, interactions, blobs, idempotency keys); messages stay. Returns how many went. */
  expireRuns(endedBefore: number, limit: number): Promise<number>
  /** Removes at most `limit` ended runs of an owner in these families, oldest first; `cached` of them had a cache key. */
  removeEndedRuns(request: {
    owner: string
    families: string[]
    limit: number
  }): Promise<{ removed: number; cached: number }>

  /** A cheap question to the database: is it there and writable? Throws `store_unavailable`. */
  check(): Promise<void>
  close(): Promise<void>
}

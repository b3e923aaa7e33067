// Runs and their journals: acceptance, claims and leases, appends, reads, and what
// belongs to a run (idempotency keys, cache keys, blobs). The rows of other parts that
// are folds of a journal (messages, interactions) are written by the same append as
// their events, so `AcceptInput` and `RunWrite` carry them.

import type { ErrorValue } from '../errors/app-error.ts'
import type { RunEvent, RunStatus } from '../journal/event.ts'
import type { EventReader } from '../journal/event-pages.ts'
import type { UsageTotals } from '../journal/usage.ts'
import type { ComparisonRow } from './comparison-store.ts'
import type { InteractionRow, InteractionUpdate } from './interaction-store.ts'
import type { MessageRow, MessageStateChange } from './message-store.ts'
import type { RowPage } from './row-page.ts'
import type { NewSnapshot, SnapshotKey } from './snapshot-store.ts'
import type { StepUsage } from './usage-store.ts'

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
  /** The fencing token: grows with every claim. Every append carries it and is refused if it is stale. */
  epoch: number
  /** The node that works on the run, or null. */
  leaseOwner: string | null
  leaseUntil: number | null
  /** When a parked or held run becomes claimable: its next deadline, or 0 (at once) after a decision or a cancel request. */
  wakeAt: number | null
  lastSeq: number
  cancel: CancelRequest | null
  createdAt: number
  startedAt: number | null
  endedAt: number | null
  error: ErrorValue | null
  /** The engine that executes the run. Null until it has started. */
  engine: string | null
  /** Null until a step has ended. */
  usage: UsageTotals | null
  /** What a node must offer to execute the run; see `runs/placement.ts`. Empty for most runs. */
  needs: string[]
}

export type CancelRequest = { by: string; reason: string | null; at: number }

/**
 * The lease with which a run is claimed: the node, and for how long from now. Whether a lease has run out is judged by the
 * clock of the store alone, so that the clocks of nodes need not agree.
 */
export type LeaseRequest = {
  node: string
  leaseMs: number
  /** How many runs may have a live lease over all nodes, not counting runs that were claimed to be cancelled. Absent: no limit. */
  slots?: number
}

export type AcceptInput = {
  run: {
    id: string
    owner: string
    family: string
    agentId: string
    conversationId: string | null
    skillId?: string
    needs?: string[]
    createdAt: number
  }
  /**
   * `absent`: inserts the conversation. `present`: it must exist and belong to the run's owner.
   * If that is not so, `accept_stale`: read again.
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
   * The newest unfinished run of the conversation when the caller looked; `accept_stale` if another has come or this one has ended.
   * With `joinTurnOf`, only runs of turns before the joined one count.
   */
  expectBehind: string | null
  /**
   * An unfinished run of the same conversation and owner (else `accept_stale`): this run takes part in its turn. It does not
   * wait for that run, sees the same history, and later runs wait for both.
   */
  joinTurnOf?: string
  /** Inserted in this order. */
  messages: MessageRow[]
  /** The files that the events refer to. Unlike those of `messages`, they are not checked; missing ones are skipped. */
  files?: string[]
  /** The first events, numbered from 1. */
  events: RunEvent[]
  /** Unique per owner and route. A key that is taken gives outcome `existing`, or `idempotency_key_reused` with another fingerprint. */
  idempotency: { key: string; route: string; fingerprint: string } | null
  /** How many runs may be queued and unclaimed (a run waiting for a person does not count); one more is `queue_full`. */
  queueMax: number
  /** Claims the run at once if no unfinished run stands before it in its conversation, and if a slot is free. The node must offer what the run needs. */
  claim: LeaseRequest | null
  /** Stored in addition if the run is claimed: it is running at once. The events follow `events`. */
  start?: { events: RunEvent[]; at: number; engine: string }
  /** Requests the cancel of the conversation's unfinished runs of earlier turns, as `requestCancel` would, with this accept or not at all. */
  cancelEarlier?: CancelRequest
  /** Holds the run until `startHeld`, because its upload has not arrived yet. A held run is not queued, so it is never `queue_full`. */
  held?: {
    /** The deadline: a run that has not started by then becomes claimable, so that its lease owner can end it. Absent: none. */
    until?: number
    /** How many runs may be held, of this owner and of all owners; one more is `jobs_awaiting_upload`. Absent: no limit. */
    max?: { owner: number; all: number }
  }
  /** If a run of the owner succeeded with this key, that run is the answer (`reused`), and nothing is accepted. */
  reuse?: { cacheKey: string }
  /**
   * If an open run of the owner has the same key and no cancel request, that run is the result (`shared`), and nothing is
   * accepted. The key is valid until the run ends. `unlessSnapshot`: fails with `accept_stale` if there is such a snapshot,
   * because the run that wrote it ended after the caller had looked for it.
   */
  share?: { key: string; unlessSnapshot?: SnapshotKey }
  /** Large texts of the run, stored together with it. */
  blobs?: { id: string; body: string }[]
}

/** Lets a held run start. */
export type HeldStart = {
  runId: string
  /** `run_fenced` unless it is the run's last seq. */
  afterSeq: number
  events: RunEvent[]
  /** The skill that was uploaded. */
  skillId?: string
  /** The files that were uploaded. */
  blobs: { id: string; body: string }[]
  queueMax: number
  claim: LeaseRequest | null
}

/** Changes a run that no node has claimed: its input, or that it is withdrawn. */
export type QueuedChange = {
  runId: string
  /** Refused unless it is the run's last seq. */
  afterSeq: number
  /** Numbered from afterSeq+1; may be empty. */
  events: RunEvent[]
  /** The message of the run: its new text, or its new state. */
  message?: { id: string; content?: string; state?: MessageStateChange['state'] }
  cancel?: CancelRequest
  at: number
}

/** Rows that are created together with the runs of an `acceptAll`. */
export type AcceptExtraRows = { comparison?: ComparisonRow }

/** `reused`: the run answered an equal request before; it was found by `reuse`, or by the key of a request that was. */
export type AcceptResult = { outcome: 'accepted' | 'existing'; run: RunRow; reused?: true; shared?: true }

/** A request that was answered with what an earlier run produced. */
export type AnsweredRequest = { owner: string; route: string; key: string; fingerprint: string; runId: string }

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
    /** The key under which later equal requests find this run. */
    cacheKey?: string
    /** The engine that executes the run. */
    engine?: string
    /** Over all steps of the run. */
    usage?: UsageTotals
  }
  messages?: MessageRow[]
  messageStates?: MessageStateChange[]
  /** The files that the events refer to. */
  files?: string[]
  newInteractions?: InteractionRow[]
  interactionUpdates?: InteractionUpdate[]
  /** Sets updated_at of the run's conversation. */
  touchConversationAt?: number
  /** The steps that ended with these events. */
  usage?: StepUsage[]
  /** The result of a one-shot run. */
  snapshot?: NewSnapshot
  /** Gives a conversation a new title and summary, if it still exists. Does not count as using the conversation. */
  describeConversation?: { id: string; title: string; summary: string }
  /** Removes the run's blobs whose ids begin like this. */
  dropBlobs?: string
}

/** `takenFrom`: the node whose lease on the run had run out; absent if the run had no lease. */
export type ClaimedRun = RunRow & { takenFrom?: string }

export type ClaimRequest = LeaseRequest & {
  /** How many runs that need a slot may be taken. Runs whose cancel was requested are taken beyond it. */
  limit: number
  /** What the node offers. Runs that need more are left alone, unless their cancel was requested. Absent: nothing. */
  offers?: readonly string[]
}

export type RunFilter = {
  owner: string
  conversationId?: string
  status?: RunStatus[]
  family?: string
  skillId?: string
  /** Only runs accepted before this one. */
  before?: string
  limit: number
}

/** How an imported run ended, and the rows beside it. */
export type RunEnding = Pick<RunWrite, 'run' | 'newInteractions' | 'touchConversationAt'>

export interface RunStore extends EventReader {
  accept(input: AcceptInput): Promise<AcceptResult>
  /** Several accepts in their order, all or none; a later one may join the turn of an earlier one. */
  acceptAll(inputs: AcceptInput[], extraRows?: AcceptExtraRows): Promise<AcceptResult[]>
  /**
   * Stores a run that ended on another server: accepted with all its events, and ended, in one transaction, so that no node can
   * claim it.
   */
  importRun(input: AcceptInput, ending: RunEnding): Promise<void>
  /**
   * Lets a held run start, once: `run_fenced` if it was started, cancelled, claimed or ended before, `queue_full` as for an accept; then
   * nothing has changed.
   */
  startHeld(start: HeldStart): Promise<RunRow>
  /**
   * Only while the run is queued and neither held, claimed nor to be cancelled; undefined if that is not so, and then nothing has
   * changed. Counts as using the conversation.
   */
  changeQueued(change: QueuedChange): Promise<RunRow | undefined>
  /** One run's next events, with the rows that are folds of them. */
  append(write: RunWrite): Promise<void>
  /**
   * Takes runs without a live lease: queued ones whose turn it is in their conversation (no run of an earlier turn in it
   * is unfinished), interrupted ones (running), parked and held ones whose `wakeAt` has come, and all unfinished ones whose
   * cancel was requested. Oldest first. Each gets a new epoch. Takes no more runs than slots are free over all nodes.
   */
  claim(request: ClaimRequest): Promise<ClaimedRun[]>
  /**
   * The oldest runs without a live lease that could be executed now, except that no live node offers what they need. Runs whose
   * cancel was requested are not among them.
   */
  unplaceableRuns(limit: number): Promise<RunRow[]>
  /** Claims such a run, whatever it needs, so that it can be ended. Undefined if it is no longer one. */
  claimUnplaceable(runId: string, lease: LeaseRequest): Promise<RunRow | undefined>
  /**
   * Extends those leases of these runs that the node still holds. Returns the rows of the runs that it holds, so that it learns of
   * cancel requests and, by what is missing, of lost leases.
   */
  renewLeases(lease: LeaseRequest, runIds: readonly string[]): Promise<RunRow[]>
  /** Records the request, once (the first counts), and wakes the run. Undefined if there is no such run; an ended run is returned as it is. */
  requestCancel(runId: string, cancel: CancelRequest): Promise<RunRow | undefined>

  readRun(runId: string): Promise<RunRow | undefined>
  /** How far the journals of these runs have come. Runs that do not exist are left out. */
  readLastSeqs(runIds: readonly string[]): Promise<Map<string, number>>
  /** Newest first. */
  listRuns(filter: RunFilter): Promise<RowPage<RunRow>>
  /** Unfinished runs of all users, oldest first. */
  listOpenRuns(limit: number): Promise<RunRow[]>
  /** Unfinished runs of a conversation, oldest first. */
  openRuns(conversationId: string): Promise<RunRow[]>
  /** `reused`: the request was answered with what an earlier run had produced. */
  findIdempotent(
    owner: string,
    route: string,
    key: string,
  ): Promise<{ runId: string; fingerprint: string; reused?: true } | undefined>
  /**
   * Binds the idempotency key of a request to the earlier run that answered it. Throws `idempotency_key_reused` if the key was
   * used for another request. Does nothing if the key is bound already, or if the run has been removed.
   */
  bindIdempotencyKey(request: AnsweredRequest): Promise<void>
  /** The newest run of the owner that succeeded under this cache key. */
  findCached(owner: string, cacheKey: string): Promise<string | undefined>
  /**
   * The time from now until a claim of this node may find more: the earliest `wakeAt` of a parked or held run, or the earliest end
   * of another node's lease. 0 if one of them has passed. Null if there is none.
   */
  msUntilWake(node: string): Promise<number | null>
  /** How long ago the database began to work after a crash that may have lost deltas. Absent if a crash ends this process too. */
  msSinceCrash?(): Promise<number>
  countRuns(): Promise<Partial<Record<RunStatus, number>>>

  /** Blobs are large texts beside the journal: tool outputs, uploaded files. They are removed together with their run. */
  putBlob(id: string, runId: string, body: string): Promise<void>
  /** How many blobs of a run have ids that begin with `prefix`. */
  countBlobs(runId: string, prefix: string): Promise<number>
  readBlob(id: string): Promise<{ runId: string; body: string } | undefined>

  /** Removes runs that ended before `endedBefore` (events, interactions, blobs, idempotency keys); messages stay. Returns how many. */
  expireRuns(endedBefore: number, limit: number): Promise<number>
  /** Removes one run as `expireRuns` does. False if there is no such run, or if it has not ended. */
  removeRun(runId: string): Promise<boolean>
  /** Removes at most `limit` ended runs of an owner in these families, oldest first; `cached` of them had a cache key. */
  removeEndedRuns(request: {
    owner: string
    families: string[]
    limit: number
  }): Promise<{ removed: number; cached: number }>
}

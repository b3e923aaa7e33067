// The operations on comparisons: start, read, vote, count votes. This service checks the
// owner of every id; a comparison of another user is reported as not found.
//
// It keeps no state in memory. Whether a comparison is ready is read from the rows of its
// two runs, so a restart between the answers and the vote changes nothing.

import { AppError } from '../errors/app-error.ts'
import { asUser, type Caller, owns } from '../kit/caller.ts'
import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import type { ModelConfigs } from '../models/model.ts'
import { ownConversation } from '../runs/conversation-names.ts'
import type { RunLog } from '../runs/run-dependencies.ts'
import type { StartRequest } from '../runs/start-request.ts'
import type { RunService } from '../runs/run-service.ts'
import type { ComparisonFilter, ComparisonRow, Preference } from '../stores/comparison-store.ts'
import type { MessageRow } from '../stores/message-store.ts'
import type { RowPage } from '../stores/row-page.ts'
import type { RunRow } from '../stores/run-store.ts'
import type { Store } from '../stores/store.ts'
import { sideAfterVote, stateOf, voteCounts, votesOn, waitsForVote } from './comparison.ts'
import { Settlement } from './settlement.ts'
import { type VoteMetrics, voteMetrics } from './vote-metrics.ts'

export type ComparisonDependencies = {
  store: Store
  runs: RunService
  configs: ModelConfigs
  clock: Clock
  ids: Ids
  /** Returns a number from 0 up to but not including 1; decides which configuration is side a. */
  random: () => number
  log: RunLog
}

export type CompareRequest = { start: StartRequest; configA: string | undefined; configB: string | undefined }

export type Compared = { comparison: ComparisonRow; runA: RunRow; runB: RunRow; outcome: 'accepted' | 'existing' }

export type CreateRequest = {
  conversationId: string
  userMessageId: string
  messageA: string
  messageB: string
  configA: string
  configB: string
  firstSideIsConfigA: boolean
}

/** `question` is its beginning. */
export type ListedComparison = ComparisonRow & { question: string }

/** The family of the runs that are arms of a comparison. */
export const comparisonFamily = 'comparison'

/** Families whose runs may be arms. The chat API is one because its clients can compare two of its answers. */
const armFamilies: ReadonlySet<string> = new Set([comparisonFamily, 'chat-api'])

/** How often a vote is retried when other votes on the same comparison are stored first. */
const voteTriesMax = 8
const settlePage = 5000
/** How much of a question a list shows. */
const questionCharsShown = 300
/** An upper bound that no real conversation reaches. */
const undecidedMax = 1000

export class ComparisonService {
  private readonly dependencies: ComparisonDependencies
  private readonly settlement: Settlement

  constructor(dependencies: ComparisonDependencies) {
    this.dependencies = dependencies
    this.settlement = new Settlement(dependencies.store)
  }

  /** Starts both runs. They, their input and the comparison are on disk when this resolves. */
  async compare({ start, configA, configB }: CompareRequest): Promise<Compared> {
    const { runs, configs, ids, random, store } = this.dependencies
    const names = { a: configs.get(configA).name, b: configs.get(configB).name }
    const firstSideIsConfigA = random() < 0.5
    const id = ids()
    // Always create the run of side a first: ids grow over time, so their order would reveal the configuration.
    const arm = (config: string, side: 'a' | 'b'): StartRequest => ({
      ...start,
      family: comparisonFamily,
      config,
      ...(side === 'b' ? { variant: 'shadow' } : {}),
      idempotency:
        start.idempotency === null ? null : { ...start.idempotency, route: armRoute(start.idempotency.route, side) },
    })
    const sides = firstSideIsConfigA ? [names.a, names.b] : [names.b, names.a]
    const started = await runs.startTogether([arm(sides[0] as string, 'a'), arm(sides[1] as string, 'b')], (turn) => ({
      comparison: {
        id,
        conversationId: turn.conversationId,
        owner: start.owner,
        userMessageId: turn.userMessageId,
        runA: turn.runIds[0] ?? null,
        runB: turn.runIds[1] ?? null,
        messageA: null,
        messageB: null,
        configA: names.a,
        configB: names.b,
        firstSideIsConfigA,
        offered: true,
        state: 'pending',
        preference: null,
        preferenceAt: null,
        revisions: [],
        createdAt: turn.at,
      },
    }))
    const [a, b] = started
    const comparison = a === undefined ? undefined : await store.findComparisonByRun(a.run.id)
    if (a === undefined || b === undefined || comparison === undefined) {
      throw new AppError('internal_error', 'The comparison cannot be read back.')
    }
    return { comparison, runA: a.run, runB: b.run, outcome: a.outcome }
  }

  /** The comparison that an earlier request with the same idempotency key started. */
  async findStarted(
    owner: string,
    key: { key: string; route: string; fingerprint: string },
  ): Promise<ComparisonRow | undefined> {
    const run = await this.dependencies.runs.findStarted(owner, { ...key, route: armRoute(key.route, 'a') })
    return run === undefined ? undefined : await this.dependencies.store.findComparisonByRun(run.id)
  }

  async get(caller: Caller, id: string): Promise<ComparisonRow> {
    const row = await this.dependencies.store.readComparison(id)
    if (row === undefined || !owns(caller, row)) throw notFound(id)
    return await this.settlement.settled(row)
  }

  /** The two runs of a comparison. Throws `run_not_found` if they have been deleted. */
  async arms(row: ComparisonRow): Promise<{ runA: RunRow; runB: RunRow }> {
    const { runs } = this.dependencies
    if (row.runA === null || row.runB === null) {
      throw new AppError(
        'run_not_found',
        'The answers of this comparison came without runs, so there is nothing to follow.',
      )
    }
    const owner = asUser(row.owner)
    return { runA: await runs.get(owner, row.runA), runB: await runs.get(owner, row.runB) }
  }

  /** The newest comparison of the conversation that waits for a vote. */
  async pending(owner: string, conversationName: string): Promise<ComparisonRow | null> {
    const { store } = this.dependencies
    const conversation = await ownConversation(store, owner, conversationName)
    const filter = { owner, conversationId: conversation.id, unvoted: true, limit: 20 }
    for (const row of await store.listComparisons({ ...filter, state: ['pending'] })) await this.settlement.settled(row)
    return (await store.listComparisons({ ...filter, state: ['ready'], limit: 1 }))[0] ?? null
  }

  /** Newest first, each with the beginning of its question. */
  async list(
    owner: string,
    { limit, ...filter }: Pick<ComparisonFilter, 'before' | 'unvoted' | 'limit'>,
  ): Promise<RowPage<ListedComparison>> {
    const { store } = this.dependencies
    const found = await store.listComparisons({ owner, ...filter, limit: limit + 1 })
    const rows: ComparisonRow[] = []
    for (const row of found.slice(0, limit)) rows.push(await this.settlement.settled(row))
    const questions = await store.messageBeginnings(
      rows.map(({ userMessageId }) => userMessageId),
      questionCharsShown,
    )
    return {
      rows: rows.map((row) => ({ ...row, question: questions.get(row.userMessageId) ?? '' })),
      more: found.length > limit,
    }
  }

  /** Creates a comparison of two existing answers. The first one becomes the answer in the history. */
  async create(owner: string, request: CreateRequest): Promise<ComparisonRow> {
    const { store, ids, clock } = this.dependencies
    const { id: conversationId } = await ownConversation(store, owner, request.conversationId)
    await this.message(conversationId, request.userMessageId, 'user')
    const a = await this.message(conversationId, request.messageA, 'assistant')
    const b = await this.message(conversationId, request.messageB, 'assistant')
    if (a.id === b.id || (a.runId !== null && a.runId === b.runId)) {
      throw new AppError('invalid_request', 'Two different answers are needed for a comparison; these are one.')
    }
    const state = stateOf(await this.settlement.statusOf(a.runId), await this.settlement.statusOf(b.runId))
    if (state === 'failed') {
      throw new AppError('comparison_failed', 'One of the answers failed, so there is nothing to compare.')
    }
    const row: ComparisonRow = {
      id: ids(),
      owner,
      ...request,
      conversationId,
      runA: a.runId,
      runB: b.runId,
      offered: true,
      state,
      preference: null,
      preferenceAt: null,
      revisions: [],
      createdAt: clock.now(),
    }
    return await store.createComparison(row, await this.settlement.historyOf(row, 'a'))
  }

  /** A comparison has one vote. `revise` replaces it, and the replaced vote is kept in `revisions`. */
  async vote(
    caller: Caller,
    id: string,
    preference: Preference,
    revise: boolean,
  ): Promise<{ row: ComparisonRow; changed: boolean }> {
    const { store, clock } = this.dependencies
    for (let attempt = 1; attempt <= voteTriesMax; attempt++) {
      const row = await this.get(caller, id)
      if (!voteCounts(row, preference, revise)) return { row, changed: false }
      const result = await store.voteComparison(id, {
        preference,
        at: clock.now(),
        expectVotes: votesOn(row),
        messageStates: await this.settlement.historyOf(row, sideAfterVote(preference)),
      })
      if (result === undefined) throw notFound(id)
      if (result.voted) return { row: result.row, changed: true }
      // Another vote was stored first. Read again, because it may make this vote invalid.
    }
    throw new AppError('comparison_voted', 'Others keep voting on this comparison. Look at it again.')
  }

  /** Metrics of the votes of one owner, or of all owners if null. */
  async metrics(owner: string | null): Promise<VoteMetrics> {
    return voteMetrics(await this.dependencies.store.countVotes(owner))
  }

  /** True if the run is an arm of a comparison without a vote, so its configuration must be hidden. */
  async isUndecided(runId: string): Promise<boolean> {
    const row = await this.dependencies.store.findComparisonByRun(runId)
    return row !== undefined && waitsForVote(row) && waitsForVote(await this.settlement.settled(row))
  }

  /** All runs of a conversation for which `isUndecided` is true. */
  async undecidedRuns(owner: string, conversationId: string): Promise<ReadonlySet<string>> {
    const filter = { owner, conversationId, unvoted: true, limit: undecidedMax }
    const rows = await this.dependencies.store.listComparisons({ ...filter, state: ['pending', 'ready'] })
    const runIds = new Set<string>()
    for (const row of rows) {
      if (!waitsForVote(await this.settlement.settled(row))) continue
      for (const runId of [row.runA, row.runB]) if (runId !== null) runIds.add(runId)
    }
    return runIds
  }

  /** Must be called for every run that ended; ignores runs that are not arms. */
  async runEnded(family: string, runId: string): Promise<void> {
    if (!armFamilies.has(family)) return
    try {
      const row = await this.dependencies.store.findComparisonByRun(runId)
      if (row !== undefined) await this.settlement.settled(row)
    } catch (error) {
      // Not lost: the next read of the comparison settles it.
      this.dependencies.log.warn({ err: error, runId }, 'a comparison could not be settled')
    }
  }

  /** Settles the comparisons whose runs ended while no server was running. */
  async settleAll(): Promise<void> {
    let before: string | undefined
    for (;;) {
      const rows = await this.dependencies.store.pendingComparisons(settlePage)
      const first = rows[0]?.id
      for (const row of rows) await this.settlement.settled(row)
      // The remaining ones have open runs; `runEnded` settles them later.
      if (rows.length < settlePage || first === before) return
      before = first
    }
  }

  private async message(conversationId: string, id: string, role: MessageRow['role']): Promise<MessageRow> {
    const row = await this.dependencies.store.readMessage(id)
    if (row === undefined || row.conversationId !== conversationId) {
      throw new AppError('message_not_found', `There is no message ${JSON.stringify(id)} in this conversation.`)
    }
    if (row.role !== role) {
      throw new AppError('invalid_request', `The message ${JSON.stringify(id)} is not one of the ${role}.`)
    }
    return row
  }
}

function armRoute(route: string, side: 'a' | 'b'): string {
  return `${route} ${side}`
}

function notFound(id: string): AppError {
  return new AppError('comparison_not_found', `There is no comparison ${JSON.stringify(id)}.`)
}

// The operations on runs that routes use: start, find, list, cancel, answer. Ownership is
// checked here, once for all APIs: a run of another user is reported as not found.

import { Follower } from '../bus/follower.ts'
import { AppError } from '../errors/app-error.ts'
import type { EventData, RunSpec } from '../journal/event.ts'
import { asUser, type Caller, owns } from '../kit/caller.ts'
import { defined } from '../kit/defined.ts'
import type { Decision, InteractionRow } from '../stores/interaction-store.ts'
import type { RowPage } from '../stores/row-page.ts'
import type { AcceptExtraRows, RunRow, RunFilter } from '../stores/run-store.ts'
import { inputMessagesOf, transcriptOf } from './standalone-chat.ts'
import { fingerprint, type PlannedTurn, RunAcceptance, type StartResult } from './run-acceptance.ts'
import { checkReadable } from './prompt-files.ts'
import type { RunDependencies } from './run-dependencies.ts'
import { specFor } from './run-spec.ts'
import type { Scheduler } from './scheduler.ts'
import { StandaloneAcceptance, type StandaloneRequest } from './standalone-acceptance.ts'
import type { EarlierMessage, StartRequest } from './start-request.ts'

/** How long a cancel waits for the end of the run, so that a tool that ignores its signal does not block the caller. */
const cancelWaitMs = 10_000

export class RunService {
  private readonly dependencies: RunDependencies
  private readonly scheduler: Scheduler
  private readonly acceptance: RunAcceptance
  private readonly standalone: StandaloneAcceptance
  private stopped = false

  constructor(dependencies: RunDependencies, scheduler: Scheduler) {
    this.dependencies = dependencies
    this.scheduler = scheduler
    this.standalone = new StandaloneAcceptance(dependencies, scheduler)
    this.acceptance = new RunAcceptance(dependencies, scheduler)
  }

  refuseNewRuns(): void {
    this.stopped = true
  }

  /** The run and its input are on disk when this resolves. */
  async start(request: StartRequest): Promise<StartResult> {
    const [started] = await this.startTogether([request])
    return started as StartResult
  }

  /** Starts several runs that answer one question in parallel; see `RunAcceptance`. */
  async startTogether(
    requests: readonly StartRequest[],
    extraRows?: (turn: PlannedTurn) => AcceptExtraRows,
  ): Promise<StartResult[]> {
    this.refuseWhenStopped()
    return await this.acceptance.startTogether(requests, extraRows)
  }

  /** Starts a chat without a conversation; see `standalone-chat.ts`. */
  async startStandaloneChat(request: StartRequest): Promise<StartResult> {
    const { owner, idempotency } = request
    if (idempotency !== null) {
      // Looked up first, so that a repeated request finds its run even if agents or models changed since.
      const { key, route, body } = idempotency
      const run = await this.findStarted(owner, { key, route, fingerprint: fingerprint(body) })
      if (run !== undefined) return { run, outcome: 'existing' }
    }
    const spec = specFor(request, this.dependencies)
    checkReadable(request.parts, spec, this.dependencies)
    return await this.startStandalone({
      owner,
      family: request.family,
      input: request.input,
      spec,
      held: null,
      createdAt: this.dependencies.clock.now(),
      history: request.earlier,
      idempotency,
      ...defined({ parts: request.parts, continues: request.continues, echo: request.echo }),
    })
  }

  /** The messages of an ended run and those before it, as history for another run; see `standalone-chat.ts`. */
  async transcript(run: RunRow): Promise<EarlierMessage[]> {
    return await transcriptOf(run, this.dependencies.store)
  }

  /** The earlier messages of the run, and its question. */
  async inputMessages(run: RunRow): Promise<EarlierMessage[]> {
    return await inputMessagesOf(run, this.dependencies.store)
  }

  /** Removes a run with its journal, after cancelling it if it is open. Messages of its conversation stay. */
  async remove(run: RunRow): Promise<void> {
    const { run: ended } = await this.cancel(run.owner, run.id, 'the run was deleted')
    if (ended.endedAt === null) {
      throw new AppError('store_busy', 'The run has not ended yet: a tool is still at work. Try again in a moment.')
    }
    await this.dependencies.store.removeRun(run.id)
  }

  /** Starts a run without a conversation. The run may be held until its upload arrives. */
  async startStandalone(request: StandaloneRequest): Promise<StartResult> {
    this.refuseWhenStopped()
    return await this.standalone.accept(request)
  }

  /** Starts a held run whose upload has arrived. */
  async startHeld(
    run: RunRow,
    prepared: EventData<'run.prepared'>,
    blobs: { id: string; body: string }[],
  ): Promise<RunRow> {
    this.refuseWhenStopped()
    return await this.standalone.startHeld(run, prepared, blobs)
  }

  private refuseWhenStopped(): void {
    if (this.stopped) throw new AppError('shutting_down', 'The server is going down. Try again in a moment.')
  }

  /** The run that an idempotency key belongs to. Throws if the key was used with another body. */
  async findStarted(
    owner: string,
    wanted: { key: string; route: string; fingerprint: string },
  ): Promise<RunRow | undefined> {
    return await this.acceptance.findStarted(owner, wanted)
  }

  /** Undefined if there is no such run, or if it does not belong to the caller. */
  async find(caller: Caller, runId: string): Promise<RunRow | undefined> {
    const run = await this.dependencies.store.readRun(runId)
    return run !== undefined && owns(caller, run) ? run : undefined
  }

  /** Like `find`, but throws `run_not_found`. */
  async get(caller: Caller, runId: string): Promise<RunRow> {
    const run = await this.find(caller, runId)
    if (run === undefined) throw new AppError('run_not_found', `There is no run ${JSON.stringify(runId)}.`)
    return run
  }

  /** Newest first. */
  async list(filter: RunFilter): Promise<RowPage<RunRow>> {
    return await this.dependencies.store.listRuns(filter)
  }

  /** The spec of the run, including an uploaded skill. Undefined if the first event can no longer be read. */
  async specOf(run: RunRow): Promise<RunSpec | undefined> {
    const { events } = await this.dependencies.store.readEvents(run.id, 0, 2)
    const accepted = events.find((event) => event.type === 'run.accepted')
    if (accepted === undefined) return undefined
    const prepared = events.find((event) => event.type === 'run.prepared')
    const skill = prepared?.data.skill ?? accepted.data.spec.skill
    return { ...accepted.data.spec, ...defined({ skill }) }
  }

  /** The whole text of a tool output that was too long for the journal. Undefined if the run has no such output. */
  async outputOf(run: RunRow, outputId: string): Promise<string | undefined> {
    const blob = await this.dependencies.store.readBlob(outputId)
    return blob?.runId === run.id ? blob.body : undefined
  }

  /**
   * Resolves when the run has ended, or after `cancelWaitMs` if it has not ended yet. The cancel request is stored in both
   * cases, and no new model or tool work starts. `accepted` is false if the run ended in another way.
   */
  async cancel(owner: string, runId: string, reason: string | null): Promise<{ run: RunRow; accepted: boolean }> {
    const run = await this.get(asUser(owner), runId)
    if (run.endedAt !== null) return { run, accepted: false }
    await this.requestCancel(runId, owner, reason)
    const ended = await this.waitForEnd(run)
    return { run: ended, accepted: ended.endedAt === null || ended.status === 'canceled' }
  }

  /** Cancels these runs. `stopping` are those that have not ended within `cancelWaitMs`; their cancel requests are stored. */
  async stop(open: readonly RunRow[]): Promise<{ stopped: string[]; stopping: string[] }> {
    const results = await Promise.all(open.map(({ owner, id }) => this.cancel(owner, id, null)))
    const idsOf = (hasEnded: boolean) =>
      results.filter(({ run }) => (run.endedAt !== null) === hasEnded).map(({ run }) => run.id)
    return { stopped: idsOf(true), stopping: idsOf(false) }
  }

  /** Cancels a run whose client disconnected. Does nothing during shutdown, because the server closes the connections then. */
  async clientLeft(runId: string, owner: string): Promise<void> {
    if (!this.stopped) await this.requestCancel(runId, owner, 'the client disconnected')
  }

  async requestCancel(runId: string, by: string, reason: string | null): Promise<void> {
    const row = await this.dependencies.store.requestCancel(runId, { by, reason, at: this.dependencies.clock.now() })
    if (row !== undefined && row.endedAt === null) this.scheduler.cancel(row)
  }

  /**
   * Stores a decision on an interaction. The caller must have checked who owns it. Returns false if the decision was not
   * taken: the interaction was decided before, is past its deadline, or was removed.
   */
  async answer(row: InteractionRow, decision: Decision): Promise<boolean> {
    const result = await this.dependencies.store.decide(row.id, decision)
    if (result?.decided === true) this.scheduler.poke(row.runId)
    return result?.decided ?? false
  }

  /** Undefined if there is no such interaction, or if it does not belong to the caller. */
  async findInteraction(caller: Caller, id: string): Promise<InteractionRow | undefined> {
    const row = await this.dependencies.store.readInteraction(id)
    return row !== undefined && owns(caller, row) ? row : undefined
  }

  /** What the run waits for. */
  async openInteractions({ id }: Pick<RunRow, 'id'>): Promise<InteractionRow[]> {
    return (await this.dependencies.store.interactionsOf(id)).filter(({ status }) => status === 'pending')
  }

  private async waitForEnd(run: RunRow): Promise<RunRow> {
    const limit = new AbortController()
    const timer = this.dependencies.clock.after(cancelWaitMs, () => limit.abort())
    try {
      return await this.settled(run, { signal: limit.signal })
    } finally {
      timer.cancel()
    }
  }

  /**
   * Resolves when the run has ended, when `signal` is aborted, or, if `orWaiting` is set, when the run waits for a person.
   * With `afterSeq`, only a wait that began after that event counts: the one before it was decided.
   */
  async settled(
    run: RunRow,
    { signal, orWaiting = false, afterSeq = 0 }: { signal?: AbortSignal; orWaiting?: boolean; afterSeq?: number } = {},
  ): Promise<RunRow> {
    const { store, bus, clock } = this.dependencies
    const follower = new Follower(run.id, orWaiting ? afterSeq : run.lastSeq, store, bus, clock)
    const closeFollower = () => follower.close()
    signal?.addEventListener('abort', closeFollower, { once: true })
    if (signal?.aborted === true) closeFollower()
    try {
      for (;;) {
        const batch = await follower.next()
        if (batch === null) break
        const last = batch.events.findLast((event) => event.type === 'run.state')
        if (orWaiting && last?.data.to === 'waiting_user') {
          // The event may be old, so the row is read to see whether the run still waits.
          const now = await this.dependencies.store.readRun(run.id)
          if (now === undefined || now.status === 'waiting_user') break
        }
      }
    } finally {
      signal?.removeEventListener('abort', closeFollower)
      follower.close()
    }
    return (await this.dependencies.store.readRun(run.id)) ?? run
  }
}

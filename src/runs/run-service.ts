// What callers may do with runs: start, find, list, cancel, answer. Every id is checked
// against its owner here, once for all wires: what belongs to somebody else does
// not exist.

import { Follower } from '../bus/follower.ts'
import { AppError } from '../errors/app-error.ts'
import type { EventData, RunSpec } from '../journal/event.ts'
import { asUser, type Caller, owns } from '../kit/caller.ts'
import type { Decision, InteractionRow } from '../stores/interaction-store.ts'
import type { RowPage } from '../stores/row-page.ts'
import type { AcceptBeside, RunRow, RunFilter } from '../stores/run-store.ts'
import { type PlannedTurn, RunAcceptance, type Started } from './run-acceptance.ts'
import type { RunParts } from './run-parts.ts'
import type { Scheduler } from './scheduler.ts'
import { StandaloneAcceptance, type StandaloneRequest } from './standalone-acceptance.ts'
import type { StartRequest } from './start-request.ts'

/** How long a cancel waits for the end of the run: a tool that does not stop, or a store that hangs, must not hang the caller. */
const cancelWaitMs = 10_000

export class RunService {
  private readonly parts: RunParts
  private readonly scheduler: Scheduler
  private readonly acceptance: RunAcceptance
  private readonly standalone: StandaloneAcceptance
  private stopped = false

  constructor(parts: RunParts, scheduler: Scheduler) {
    this.parts = parts
    this.scheduler = scheduler
    this.standalone = new StandaloneAcceptance(parts, scheduler)
    this.acceptance = new RunAcceptance(parts, scheduler)
  }

  refuseNewRuns(): void {
    this.stopped = true
  }

  /** The run and its input are on disk when this resolves. */
  async start(request: StartRequest): Promise<Started> {
    const [started] = await this.startTogether([request])
    return started as Started
  }

  /** Several runs that answer one question side by side; see `RunAcceptance`. */
  async startTogether(
    requests: readonly StartRequest[],
    beside?: (turn: PlannedTurn) => AcceptBeside,
  ): Promise<Started[]> {
    this.refuseWhenStopped()
    return await this.acceptance.startTogether(requests, beside)
  }

  /** A run without a conversation, which may be held until its upload comes. */
  async startStandalone(request: StandaloneRequest): Promise<Started> {
    this.refuseWhenStopped()
    return await this.standalone.accept(request)
  }

  /** The upload that a held run needs has come. */
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

  /** The run that a key belongs to. Another body under the same key is refused. */
  async findStarted(
    owner: string,
    wanted: { key: string; route: string; fingerprint: string },
  ): Promise<RunRow | undefined> {
    return await this.acceptance.findStarted(owner, wanted)
  }

  /** The run that a caller addresses by its id. Undefined if it is not theirs. */
  async find(caller: Caller, runId: string): Promise<RunRow | undefined> {
    const run = await this.parts.store.readRun(runId)
    return run !== undefined && owns(caller, run) ? run : undefined
  }

  /** The same; throws `run_not_found`. */
  async get(caller: Caller, runId: string): Promise<RunRow> {
    const run = await this.find(caller, runId)
    if (run === undefined) throw new AppError('run_not_found', `There is no run ${JSON.stringify(runId)}.`)
    return run
  }

  /** Newest first. */
  async list(filter: RunFilter): Promise<RowPage<RunRow>> {
    return await this.parts.store.listRuns(filter)
  }

  /** What the run was asked to do, with its uploaded skill. Undefined if its first event can no longer be read. */
  async specOf(run: RunRow): Promise<RunSpec | undefined> {
    const { events } = await this.parts.store.readEvents(run.id, 0, 2)
    const accepted = events.find((event) => event.type === 'run.accepted')
    if (accepted === undefined) return undefined
    const prepared = events.find((event) => event.type === 'run.prepared')
    const skill = prepared?.data.skill ?? accepted.data.spec.skill
    return { ...accepted.data.spec, ...(skill === undefined ? {} : { skill }) }
  }

  /** The whole text of a tool output that was too long for the journal. Undefined if the run has no such output. */
  async outputOf(run: RunRow, outputId: string): Promise<string | undefined> {
    const blob = await this.parts.store.readBlob(outputId)
    return blob?.runId === run.id ? blob.body : undefined
  }

  /**
   * Resolves when the run has ended, or after `cancelWaitMs` while it is still ending: the request is stored then and no new
   * model or tool work starts. `accepted` is false if the run had ended, or ends, in another way.
   */
  async cancel(owner: string, runId: string, reason: string | null): Promise<{ run: RunRow; accepted: boolean }> {
    const run = await this.get(asUser(owner), runId)
    if (run.endedAt !== null) return { run, accepted: false }
    await this.requestCancel(runId, owner, reason)
    const ended = await this.waitForEnd(run)
    return { run: ended, accepted: ended.endedAt === null || ended.status === 'canceled' }
  }

  /** Its client hung up, and that cancels it. While the server goes down connections are closed by us: then it changes nothing. */
  async clientLeft(runId: string, owner: string): Promise<void> {
    if (!this.stopped) await this.requestCancel(runId, owner, 'the client disconnected')
  }

  async requestCancel(runId: string, by: string, reason: string | null): Promise<void> {
    const row = await this.parts.store.requestCancel(runId, { by, reason, at: this.parts.clock.now() })
    if (row !== undefined && row.endedAt === null) this.scheduler.cancel(row)
  }

  /** A decision on any interaction, by whoever may make it. Says whether this one counted. */
  async answer(row: InteractionRow, decision: Decision): Promise<boolean> {
    const result = await this.parts.store.decide(row.id, decision)
    if (result?.decided === true) this.scheduler.poke(row.runId)
    return result?.decided ?? false
  }

  private async waitForEnd(run: RunRow): Promise<RunRow> {
    const limit = new AbortController()
    const timer = this.parts.clock.after(cancelWaitMs, () => limit.abort())
    try {
      return await this.settled(run, { signal: limit.signal })
    } finally {
      timer.cancel()
    }
  }

  /** Resolves when the run has ended, when it waits for a person (where `orWaiting` says so), or when `signal` is aborted. */
  async settled(
    run: RunRow,
    { signal, orWaiting = false }: { signal?: AbortSignal; orWaiting?: boolean } = {},
  ): Promise<RunRow> {
    const { store, bus, clock } = this.parts
    const follower = new Follower(run.id, orWaiting ? 0 : run.lastSeq, store, bus, clock)
    const leave = () => follower.close()
    signal?.addEventListener('abort', leave, { once: true })
    if (signal?.aborted === true) leave()
    try {
      for (;;) {
        const batch = await follower.next()
        if (batch === null) break
        const last = batch.events.findLast((event) => event.type === 'run.state')
        if (orWaiting && last?.data.to === 'waiting_user') {
          // Told of in the past, perhaps: the row knows whether it still waits.
          const now = await this.parts.store.readRun(run.id)
          if (now === undefined || now.status === 'waiting_user') break
        }
      }
    } finally {
      signal?.removeEventListener('abort', leave)
      follower.close()
    }
    return (await this.parts.store.readRun(run.id)) ?? run
  }
}

// Accepts runs without a conversation. Such a run may be held until its upload arrives: every
// reader sees it and it can be cancelled, but it is not claimed. The upload is stored in the
// transaction that makes the run claimable.

import type { EventData, RunEvent, RunSpec } from '../journal/event.ts'
import { checkEvent } from '../journal/event-codec.ts'
import { filesOf } from '../journal/message-parts.ts'
import type { Part } from '../journal/part.ts'
import { defined } from '../kit/defined.ts'
import type { AcceptInput, RunRow } from '../stores/run-store.ts'
import { eventsOf, fingerprint, type StartResult } from './run-acceptance.ts'
import { checkDayBudgets } from './budgets.ts'
import { historyText } from './standalone-chat.ts'
import { immediateStart } from './immediate-start.ts'
import { isOffered, needsOf } from './placement.ts'
import { newRunTrace } from './run-trace.ts'
import type { RunDependencies } from './run-dependencies.ts'
import type { TimedLeaseRequest } from './run-lease.ts'
import type { Scheduler } from './scheduler.ts'
import type { EarlierMessage, StartRequest } from './start-request.ts'

export type StandaloneRequest = {
  owner: string
  family: string
  input: string
  spec: RunSpec
  /** Null if the run needs no upload. `until`: the deadline of the upload. `max`: how many runs may be held, of this owner and of all. */
  held: { until: number; max: { owner: number; all: number } } | null
  /** If a run of the owner succeeded with this key, that run is returned instead of a new one. */
  reuse?: { cacheKey: string }
  /** Equal requests share an open run; see `AcceptInput.share`. */
  share?: AcceptInput['share']
  createdAt: number
  /** The parts of `input`, if one of them is not text. */
  parts?: Part[]
  /** The earlier messages of a chat; see `standalone-chat.ts`. */
  history?: readonly EarlierMessage[]
  /** The model continues from the tool results at the end of `history`. */
  continues?: true
  echo?: StartRequest['echo']
  idempotency: { key: string; route: string; body: unknown } | null
}

/** The files that the run refers to, with those of the earlier messages. */
function filesIn(parts: Part[] | undefined, history: readonly EarlierMessage[]): string[] {
  const earlier = history.flatMap((message) => (message.role === 'user' ? (message.parts ?? []) : []))
  return [...new Set(filesOf([...(parts ?? []), ...earlier]).map(({ fileId }) => fileId))]
}

export class StandaloneAcceptance {
  private readonly dependencies: RunDependencies
  private readonly scheduler: Scheduler

  constructor(dependencies: RunDependencies, scheduler: Scheduler) {
    this.dependencies = dependencies
    this.scheduler = scheduler
  }

  /** The run is on disk when this resolves. Throws `queue_full` or `jobs_awaiting_upload` and then has changed nothing. */
  async accept({
    owner,
    family,
    input,
    spec,
    held,
    reuse,
    share,
    createdAt,
    parts,
    history = [],
    continues,
    echo,
    idempotency,
  }: StandaloneRequest): Promise<StartResult> {
    const { store, ids, limits } = this.dependencies
    try {
      await checkDayBudgets(owner, this.dependencies)
    } catch (error) {
      if (!(await this.isAnswered(owner, idempotency, reuse))) throw error
    }
    const stored = history.length === 0 ? undefined : { id: `history_${ids()}`, body: historyText(history) }
    const accepted: RunEvent = {
      seq: 1,
      at: createdAt,
      attempt: 1,
      ...checkEvent({
        type: 'run.accepted',
        data: {
          owner,
          family,
          conversationId: null,
          userMessageId: null,
          input,
          ...defined({
            parts,
            continuesHistory: continues,
            historyRef: stored?.id,
            echo,
            trace: newRunTrace(this.dependencies),
          }),
          spec,
        },
      }),
    }
    const { agentId, skill } = spec
    const needs = needsOf(spec, this.dependencies)
    const acceptInput: AcceptInput = {
      run: {
        id: ids(),
        owner,
        family,
        agentId,
        conversationId: null,
        createdAt,
        needs,
        ...defined({ skillId: skill?.id }),
      },
      conversation: null,
      expectBehind: null,
      messages: [],
      files: filesIn(parts, history),
      events: [accepted],
      idempotency:
        idempotency === null
          ? null
          : { key: idempotency.key, route: idempotency.route, fingerprint: fingerprint(idempotency.body) },
      queueMax: limits.queueMax,
      claim: null,
      ...defined({ held: held ?? undefined, reuse, share, blobs: stored === undefined ? undefined : [stored] }),
    }
    return await this.withSlot(held === null && isOffered(needs, this.dependencies.placement), async (claim) => {
      if (claim !== null) {
        acceptInput.claim = claim
        acceptInput.start = immediateStart([accepted], spec, history.length === 0, this.dependencies)
      }
      const result = await store.accept(acceptInput)
      if (result.outcome === 'accepted') {
        if (held === null) this.launch(result.run, eventsOf(acceptInput), claim)
        // The scheduler may have to set its timer to the upload deadline of this run.
        else this.scheduler.poke()
      }
      return result
    })
  }

  /** Starts a held run with its upload. Throws `run_fenced` if the run is no longer held, or `queue_full`, and then has changed nothing. */
  async startHeld(
    run: RunRow,
    prepared: EventData<'run.prepared'>,
    blobs: { id: string; body: string }[],
  ): Promise<RunRow> {
    const { store, clock, limits } = this.dependencies
    const known = (await store.readEvents(run.id, 0, 10)).events
    const at = Math.max(clock.now(), run.createdAt)
    const event: RunEvent = {
      seq: run.lastSeq + 1,
      at,
      attempt: 1,
      ...checkEvent({ type: 'run.prepared', data: prepared }),
    }
    return await this.withSlot(isOffered(run.needs, this.dependencies.placement), async (claim) => {
      const start = {
        runId: run.id,
        afterSeq: run.lastSeq,
        events: [event],
        ...defined({ skillId: prepared.skill?.id }),
        blobs,
        queueMax: limits.queueMax,
        claim,
      }
      const started = await store.startHeld(start)
      this.dependencies.bus.publish(run.id, [event])
      this.launch(started, [...known, event], claim)
      return started
    })
  }

  /** Whether a run that exists already answers the request, so that it uses nothing. */
  private async isAnswered(
    owner: string,
    idempotency: StandaloneRequest['idempotency'],
    reuse: StandaloneRequest['reuse'],
  ): Promise<boolean> {
    const { store } = this.dependencies
    if (idempotency !== null && (await store.findIdempotent(owner, idempotency.route, idempotency.key)) !== undefined)
      return true
    return reuse !== undefined && (await store.findCached(owner, reuse.cacheKey)) !== undefined
  }

  private launch(run: RunRow, events: RunEvent[], claim: TimedLeaseRequest | null): void {
    if (claim !== null && run.leaseOwner === claim.node) this.scheduler.adopt(run, events, claim)
    else this.scheduler.poke(run.id)
  }

  /** Reserves a slot while the run is stored, if one is free, so that the run can be claimed in the same transaction. */
  private async withSlot<T>(wanted: boolean, work: (claim: TimedLeaseRequest | null) => Promise<T>): Promise<T> {
    const slot = wanted && this.scheduler.reserve()
    try {
      return await work(slot ? this.scheduler.leaseRequest() : null)
    } finally {
      if (slot) this.scheduler.release()
    }
  }
}

// Accepting runs without a conversation. Such a run may be held: it exists for every reader
// and can be cancelled, but it is not claimed until the upload that it needs has come. What
// the upload brings lets it start, in one commit or not at all.

import type { EventData, RunEvent, RunSpec } from '../journal/event.ts'
import type { AcceptInput, RunRow } from '../stores/run-store.ts'
import { fingerprint, type Started } from './run-acceptance.ts'
import type { RunDependencies } from './run-dependencies.ts'
import type { Scheduler } from './scheduler.ts'

export type StandaloneRequest = {
  owner: string
  family: string
  input: string
  spec: RunSpec
  /** Set if the run is held: when it is given up, and how many may be held of this owner and of all. */
  held: { until: number; max: { owner: number; all: number } } | null
  /** The run of an equal request that succeeded before is given instead of a new one. */
  reuse?: { cacheKey: string }
  createdAt: number
  idempotency: { key: string; route: string; body: unknown } | null
}

export class StandaloneAcceptance {
  private readonly dependencies: RunDependencies
  private readonly scheduler: Scheduler

  constructor(dependencies: RunDependencies, scheduler: Scheduler) {
    this.dependencies = dependencies
    this.scheduler = scheduler
  }

  /** The run is on disk when this resolves. If the queue is full, nothing has changed. */
  async accept({
    owner,
    family,
    input,
    spec,
    held,
    reuse,
    createdAt,
    idempotency,
  }: StandaloneRequest): Promise<Started> {
    const { store, ids, limits } = this.dependencies
    const accepted: RunEvent = {
      seq: 1,
      at: createdAt,
      attempt: 1,
      type: 'run.accepted',
      data: { owner, family, conversationId: null, userMessageId: null, input, spec },
    }
    const { agentId, skill } = spec
    const acceptInput: AcceptInput = {
      run: {
        id: ids(),
        owner,
        family,
        agentId,
        conversationId: null,
        ...(skill === undefined ? {} : { skillId: skill.id }),
        createdAt,
      },
      conversation: null,
      expectBehind: null,
      messages: [],
      events: [accepted],
      idempotency:
        idempotency === null
          ? null
          : { key: idempotency.key, route: idempotency.route, fingerprint: fingerprint(idempotency.body) },
      queueMax: limits.queueMax,
      claim: null,
      ...(held === null ? {} : { held }),
      ...(reuse === undefined ? {} : { reuse }),
    }
    return await this.withSlot(held === null, async (claim) => {
      const result = await store.accept({ ...acceptInput, claim })
      if (result.outcome === 'accepted') {
        if (held === null) this.launch(result.run, acceptInput.events)
        // Its deadline may be the next one that the scheduler has to wake for.
        else this.scheduler.poke()
      }
      return result
    })
  }

  /** Lets a held run start with what was uploaded. Throws `run_fenced` if it is not held any more, and `queue_full`; then nothing has changed. */
  async startHeld(
    run: RunRow,
    prepared: EventData<'run.prepared'>,
    blobs: { id: string; body: string }[],
  ): Promise<RunRow> {
    const { store, clock, limits } = this.dependencies
    const known = (await store.readEvents(run.id, 0, 10)).events
    const at = Math.max(clock.now(), run.createdAt)
    const event: RunEvent = { seq: run.lastSeq + 1, at, attempt: 1, type: 'run.prepared', data: prepared }
    return await this.withSlot(true, async (claim) => {
      const start = {
        runId: run.id,
        afterSeq: run.lastSeq,
        events: [event],
        ...(prepared.skill === undefined ? {} : { skillId: prepared.skill.id }),
        blobs,
        queueMax: limits.queueMax,
        claim,
      }
      const started = await store.startHeld(start)
      this.dependencies.bus.publish(run.id, [event])
      this.launch(started, [...known, event])
      return started
    })
  }

  private launch(run: RunRow, events: RunEvent[]): void {
    if (run.leaseOwner === this.scheduler.node) this.scheduler.adopt(run, events)
    else this.scheduler.poke()
  }

  /** Holds a slot while the run is stored, so that it is claimed at once if one is free. */
  private async withSlot<T>(wanted: boolean, work: (claim: AcceptInput['claim']) => Promise<T>): Promise<T> {
    const slot = wanted && this.scheduler.reserve()
    try {
      return await work(slot ? { node: this.scheduler.node, leaseUntil: this.scheduler.leaseUntil() } : null)
    } finally {
      if (slot) this.scheduler.release()
    }
  }
}

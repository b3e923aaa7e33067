// Accepting jobs: runs without a conversation, which may exist before they can start. A
// held one is a run like any other (it can be read, streamed and cancelled); what an
// upload brings lets it start, in one commit or not at all.

import { chatAgentId } from '../agents/catalogue.ts'
import { AppError } from '../errors/app-error.ts'
import type { EventData, JobSpec, RunEvent, RunSpec, SkillSpec } from '../journal/event.ts'
import type { AcceptInput, RunRow } from '../stores/store.ts'
import { cacheKeyOf, mayReuse } from './job-cache.ts'
import { fingerprint, type Started } from './run-acceptance.ts'
import type { RunParts } from './run-parts.ts'
import type { Scheduler } from './scheduler.ts'

export type JobRequest = {
  owner: string
  family: string
  input: string
  model: string | undefined
  job: JobSpec
  /** Absent where it is still to be uploaded. */
  skill: SkillSpec | undefined
  /** It cannot start before something was uploaded. */
  hold: boolean
  idempotency: { key: string; route: string; body: unknown } | null
}

/** A job that waits for its upload costs a row and a journal, and nobody may ever come for it. */
const heldMax = { owner: 256, all: 2048 }

export class JobAcceptance {
  private readonly parts: RunParts
  private readonly scheduler: Scheduler

  constructor(parts: RunParts, scheduler: Scheduler) {
    this.parts = parts
    this.scheduler = scheduler
  }

  /** The job is on disk when this resolves. Where the queue is full, nothing has changed. */
  async accept(request: JobRequest): Promise<Started> {
    const { store, clock, ids, limits } = this.parts
    const { owner, family, hold } = request
    const runId = ids()
    const at = clock.now()
    const { skill } = request
    const engine = this.parts.engineName
    const model = this.parts.models.resolve(request.model ?? this.parts.catalogue.get(chatAgentId).card.model)
    const uploadUntil = at + limits.uploadTtlMs
    const cacheKey =
      skill === undefined || hold || !mayReuse(request.job)
        ? undefined
        : cacheKeyOf({ skill, engine, model, job: request.job, files: [] })
    const spec: RunSpec = {
      agentId: chatAgentId,
      engine,
      model,
      job: { ...request.job, ...(hold ? { uploadUntil } : {}), ...(cacheKey === undefined ? {} : { cacheKey }) },
      ...(skill === undefined ? {} : { skill }),
    }
    const accepted: RunEvent = {
      seq: 1,
      at,
      attempt: 1,
      type: 'run.accepted',
      data: { owner, family, conversationId: null, userMessageId: null, input: request.input, spec },
    }
    const key = request.idempotency
    const input: AcceptInput = {
      run: {
        id: runId,
        owner,
        family,
        agentId: chatAgentId,
        conversationId: null,
        ...(skill === undefined ? {} : { skillId: skill.id }),
        createdAt: at,
      },
      conversation: null,
      expectBehind: null,
      messages: [],
      events: [accepted],
      idempotency: key === null ? null : { key: key.key, route: key.route, fingerprint: fingerprint(key.body) },
      queueMax: limits.queueMax,
      claim: null,
      ...(hold ? { hold: true, heldMax, holdUntil: uploadUntil } : {}),
      ...(cacheKey === undefined ? {} : { reuse: { cacheKey } }),
    }
    return await this.withSlot(!hold, async (claim) => {
      const result = await store.accept({ ...input, claim })
      if (result.outcome === 'accepted') {
        if (!hold) this.launch(result.run, input.events)
        // Its deadline may be the next one that the scheduler has to wake for.
        else this.scheduler.poke()
      }
      return result
    })
  }

  /** Lets a held job start with what was uploaded. Throws `job_already_started`, and `queue_full` without changing anything. */
  async start(
    run: RunRow,
    prepared: EventData<'run.prepared'>,
    blobs: { id: string; body: string }[],
  ): Promise<RunRow> {
    const { store, clock, limits } = this.parts
    const known = (await store.readEvents(run.id, 0, 10)).events
    const at = Math.max(clock.now(), run.createdAt)
    const event: RunEvent = { seq: run.lastSeq + 1, at, attempt: 1, type: 'run.prepared', data: prepared }
    try {
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
        this.parts.bus.publish(run.id, [event])
        this.launch(started, [...known, event])
        return started
      })
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'run_fenced') throw error
      throw new AppError(
        'job_already_started',
        'This job was started, was cancelled, or waited too long for its upload. Create a new one.',
        {
          cause: error,
        },
      )
    }
  }

  private launch(run: RunRow, events: RunEvent[]): void {
    if (run.leaseOwner === this.scheduler.node) this.scheduler.adopt(run, events)
    else this.scheduler.poke()
  }

  /** Holds a slot while the run is stored, so that it is claimed at once where one is free. */
  private async withSlot<T>(wanted: boolean, work: (claim: AcceptInput['claim']) => Promise<T>): Promise<T> {
    const slot = wanted && this.scheduler.reserve()
    try {
      return await work(slot ? { node: this.scheduler.node, leaseUntil: this.scheduler.leaseUntil() } : null)
    } finally {
      if (slot) this.scheduler.release()
    }
  }
}

// Accepts jobs: builds the spec of the run and the cache key under which its result may be
// reused. A job that needs an upload is held until the upload arrives.

import { modelsOfAgent } from '../agents/agent-model.ts'
import { type Catalogue, chatAgentId } from '../agents/catalogue.ts'
import { AppError } from '../errors/app-error.ts'
import type { EventData, JobSpec, RunSpec, SkillSpec } from '../journal/event.ts'
import type { Clock } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import { resolveChain } from '../journal/model-chain.ts'
import type { Models } from '../models/model.ts'
import type { StartResult } from '../runs/run-acceptance.ts'
import type { RunService } from '../runs/run-service.ts'
import type { RunRow } from '../stores/run-store.ts'
import { cacheKeyOf, mayReuse } from './result-reuse.ts'

export type JobRequest = {
  owner: string
  family: string
  input: string
  model: string | undefined
  job: JobSpec
  /** Undefined if the skill is uploaded later. */
  skill: SkillSpec | undefined
  /** The job must not start before its upload arrives. */
  held: boolean
  idempotency: { key: string; route: string; body: unknown } | null
}

export type JobAcceptanceDependencies = {
  runs: RunService
  clock: Clock
  models: Models
  catalogue: Catalogue
  engineName: string
  uploadTtlMs: number
}

/** Limits for held jobs, of one owner and of all. Each costs a row and a journal, and its upload may never arrive. */
const heldMax = { owner: 256, all: 2048 }

export class JobAcceptance {
  private readonly dependencies: JobAcceptanceDependencies

  constructor(dependencies: JobAcceptanceDependencies) {
    this.dependencies = dependencies
  }

  /** The job is on disk when this resolves. Throws `queue_full` or `jobs_awaiting_upload` and then has changed nothing. */
  async accept({ owner, family, input, model, job, skill, held, idempotency }: JobRequest): Promise<StartResult> {
    const createdAt = this.dependencies.clock.now()
    const uploadUntil = createdAt + this.dependencies.uploadTtlMs
    const engine = this.dependencies.engineName
    const { models, catalogue } = this.dependencies
    const { card } = catalogue.get(chatAgentId)
    const { model: resolved, fallbackModels } =
      model === undefined ? modelsOfAgent(card, models) : resolveChain(model, models)
    const cacheKey =
      skill === undefined || held || !mayReuse(job)
        ? undefined
        : cacheKeyOf({ skill, engine, model: resolved, job, files: [] })
    const spec: RunSpec = {
      agentId: chatAgentId,
      engine,
      model: resolved,
      job: { ...job, ...defined({ uploadUntil: held ? uploadUntil : undefined, cacheKey }) },
      ...defined({ fallbackModels, skill, providerOptions: card.providerOptions }),
    }
    return await this.dependencies.runs.startStandalone({
      owner,
      family,
      input,
      spec,
      held: held ? { until: uploadUntil, max: heldMax } : null,
      ...defined({ reuse: cacheKey === undefined ? undefined : { cacheKey } }),
      createdAt,
      idempotency,
    })
  }

  /** Starts a held job with its upload. Throws `job_already_started` or `queue_full` and then has changed nothing. */
  async startHeld(
    run: RunRow,
    prepared: EventData<'run.prepared'>,
    blobs: { id: string; body: string }[],
  ): Promise<RunRow> {
    try {
      return await this.dependencies.runs.startHeld(run, prepared, blobs)
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'run_fenced') throw error
      throw new AppError(
        'job_already_started',
        'This job was started, was cancelled, or waited too long for its upload. Create a new one.',
        { cause: error },
      )
    }
  }
}

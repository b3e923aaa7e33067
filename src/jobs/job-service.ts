// The operations on jobs that routes use: create, upload, reply, read results. A job is a
// run of one of two families, which share this code: `jobs` run an installed skill, and
// `temp-skill-runs` run an uploaded one.

import { AppError } from '../errors/app-error.ts'
import type { JobSpec, JsonValue, RunStatus, SkillSpec } from '../journal/event.ts'
import type { Caller } from '../kit/caller.ts'
import { defined } from '../kit/defined.ts'
import { readZip } from '../kit/zip-reader.ts'
import { fingerprint, type StartResult } from '../runs/run-acceptance.ts'
import { openSkillPackage } from '../skills/skill-package.ts'
import type { SkillRegistry } from '../skills/skill-registry.ts'
import type { Skill } from '../skills/skill.ts'
import type { InteractionRow } from '../stores/interaction-store.ts'
import type { RowPage } from '../stores/row-page.ts'
import type { RunRow } from '../stores/run-store.ts'
import type { Store } from '../stores/store.ts'
import { agrees } from './consent-words.ts'
import { findEarlierResult } from './earlier-result.ts'
import { JobAcceptance, type JobAcceptanceDependencies } from './job-acceptance.ts'
import { checkEngine, checkInlineInput, checkParameter, checkSupport, type Values, withFiles } from './job-inputs.ts'
import { artifactBlob, artifactsFolder, inputBlob, packageBlobs } from './job-files.ts'
import { jobInput } from './job-prompt.ts'
import { cacheKeyOf, mayReuse, sha256 } from './result-reuse.ts'
import { readRuntimeOptions } from './runtime-options.ts'

export const jobFamilies: JobFamily[] = ['jobs', 'temp-skill-runs']
export type JobFamily = 'jobs' | 'temp-skill-runs'

/** Bounded because the removal of runs and journals blocks the only writer of the store. */
const removedAtOnce = 50

export type JobBody = {
  /** Absent for temporary skills. */
  skillId?: string
  engine: string
  input: Values
  parameter: Values
  model: string | undefined
  runtimeOptions: Values
}

export type Reply = { interactionId: number; response: JsonValue; key: string | undefined }

export type JobDependencies = JobAcceptanceDependencies & { store: Store; skills: SkillRegistry }

export class JobService {
  private readonly dependencies: JobDependencies
  private readonly acceptance: JobAcceptance

  constructor(dependencies: JobDependencies) {
    this.dependencies = dependencies
    this.acceptance = new JobAcceptance(dependencies)
  }

  /** `held`: the job does not start before its upload arrives. */
  async create(
    owner: string,
    family: JobFamily,
    body: JobBody,
    idempotency: { key: string; route: string; body: unknown } | null,
  ): Promise<StartResult & { held: boolean }> {
    const options = readRuntimeOptions(body.runtimeOptions)
    const { engine, input, parameter, model } = body
    let skill: Skill | undefined
    if (family === 'jobs') {
      skill = this.dependencies.skills.get(body.skillId ?? '')
      checkSupport(skill, engine, options.mode, this.dependencies.engineName)
      checkParameter(skill, parameter)
      checkInlineInput(skill, input)
    } else checkEngine(engine, this.dependencies.engineName)
    const held = skill === undefined || skill.fileInputs.some(({ required }) => required)
    const job: JobSpec = {
      source: family === 'jobs' ? 'installed' : 'temp_upload',
      mode: options.mode,
      requireReply: options.requireReply,
      replyTimeoutMs: options.replyTimeoutMs,
      input,
      parameter,
      options: options.given,
    }
    const started = await this.acceptance.accept({
      owner,
      family,
      input: jobInput(input, parameter, []),
      model,
      job,
      skill: skill === undefined ? undefined : toSpec(skill),
      held,
      idempotency,
    })
    return { ...started, held }
  }

  /** A page of jobs, newest first. `before`: the id of the last job of the previous page. */
  async list(
    owner: string,
    family: JobFamily,
    page: { status?: RunStatus[]; skillId?: string; before?: string; limit: number },
  ): Promise<RowPage<RunRow>> {
    return await this.dependencies.runs.list({ owner, family, ...page })
  }

  /** Removes the ended jobs of an owner, a bounded number in each transaction. Unfinished jobs are kept. */
  async removeEnded(owner: string): Promise<{ removed: number; cached: number }> {
    const total = { removed: 0, cached: 0 }
    for (;;) {
      const some = await this.dependencies.store.removeEndedRuns({ owner, families: jobFamilies, limit: removedAtOnce })
      total.removed += some.removed
      total.cached += some.cached
      if (some.removed < removedAtOnce) return total
    }
  }

  /** Undefined if the job does not belong to the caller or to this family. */
  async find(caller: Caller, family: JobFamily, runId: string): Promise<RunRow | undefined> {
    const run = await this.dependencies.runs.find(caller, runId)
    return run?.family === family ? run : undefined
  }

  async get(caller: Caller, family: JobFamily, runId: string): Promise<RunRow> {
    const run = await this.find(caller, family, runId)
    if (run === undefined) {
      throw new AppError('job_not_found', `There is no job ${JSON.stringify(runId)} here.`)
    }
    return run
  }

  /** Throws `job_already_started`. Called before the upload is read, so that the client does not send it for nothing. */
  refuseUnlessQueued(run: RunRow): void {
    if (run.status !== 'queued' || run.leaseOwner !== null) throw alreadyStarted()
  }

  /** Checks the whole upload before storing anything, so that a refused upload can be sent again. */
  async upload(
    run: RunRow,
    archives: { skill?: Buffer; file?: Buffer },
  ): Promise<{ run: RunRow; files: string[]; reused: boolean }> {
    this.refuseUnlessQueued(run)
    const spec = await this.dependencies.runs.specOf(run)
    const job = spec?.job
    if (spec === undefined || job === undefined) {
      throw new AppError('job_unreadable', 'The request of this job can no longer be read. Create the job again.')
    }
    const uploaded = archives.skill === undefined ? undefined : await openSkillPackage(archives.skill)
    const skill = uploaded?.skill ?? this.dependencies.skills.get(spec.skill?.id ?? '')
    if (uploaded !== undefined) {
      checkSupport(skill, this.dependencies.engineName, job.mode, this.dependencies.engineName)
      checkParameter(skill, job.parameter)
      checkInlineInput(skill, job.input)
    }
    const files = archives.file === undefined ? [] : await readZip(archives.file)
    const paths = files.map(({ path }) => path)
    const input = withFiles(skill, job.input, paths)
    const listed = files.map(({ path, body }) => ({ path, size: body.length }))
    const blobs = [
      ...files.map(({ path, body }) => ({ id: inputBlob(run.id, path), body: body.toString('base64') })),
      ...(uploaded?.files ?? []).map(({ path, body }) => ({
        id: packageBlobs(run.id) + path,
        body: body.toString('base64'),
      })),
    ]
    const hashed = files.map(({ path, body }) => ({ path, sha256: sha256(body) }))
    const cacheKey =
      spec.skill !== undefined && mayReuse(job)
        ? cacheKeyOf({ skill: spec.skill, engine: spec.engine, model: spec.model, job, files: hashed })
        : undefined
    const earlier =
      cacheKey === undefined ? undefined : await findEarlierResult(this.dependencies.store, run.owner, cacheKey, run.id)
    const prepared = {
      input: jobInput(input, job.parameter, listed),
      files: listed,
      ...defined({
        skill: uploaded === undefined ? undefined : toSpec(uploaded.skill),
        cacheKey,
        reused: earlier?.reused,
      }),
    }
    const started = await this.acceptance.startHeld(run, prepared, [...blobs, ...(earlier?.blobs ?? [])])
    return { run: started, files: paths, reused: earlier !== undefined }
  }

  /** All interactions of the job, in order. */
  async interactions(run: RunRow): Promise<InteractionRow[]> {
    return await this.dependencies.store.interactionsOf(run.id)
  }

  /** The text of a file that the job saved; `path` begins with `artifactsFolder`. Undefined if there is none. */
  async artifact(run: RunRow, path: string): Promise<string | undefined> {
    return (await this.dependencies.store.readBlob(artifactBlob(run.id, path.slice(artifactsFolder.length))))?.body
  }

  /** The interaction to answer next: the pending one with the lowest number. */
  async pending(run: RunRow): Promise<InteractionRow | undefined> {
    if (run.status !== 'waiting_user') return undefined
    return (await this.interactions(run)).find((row) => row.status === 'pending')
  }

  async refuseUnlessInteractive(run: RunRow): Promise<void> {
    const spec = await this.dependencies.runs.specOf(run)
    // A job whose request is unreadable may have been interactive; its questions stay answerable.
    if (spec === undefined || spec.job?.mode === 'interactive') return
    // Confirmations of tool calls exist in any mode.
    if ((await this.interactions(run)).length > 0) return
    throw new AppError('job_not_interactive', 'This job does not ask anybody anything: it runs in the mode auto.')
  }

  /** Stores a reply. A repeated request with the same key and the same reply succeeds and changes nothing (`replayed`). */
  async reply(run: RunRow, by: string, reply: Reply): Promise<{ replayed: boolean }> {
    await this.refuseUnlessInteractive(run)
    const print = fingerprint([reply.interactionId, reply.response])
    let current = run
    for (;;) {
      const rows = await this.interactions(run)
      const known = reply.key === undefined ? undefined : rows.find((row) => row.reply?.key === reply.key)
      if (known !== undefined) {
        if (known.reply?.fingerprint === print) return { replayed: true }
        throw new AppError(
          'reply_key_reused',
          'This idempotency_key came with another reply before. Use a new key for a new reply.',
        )
      }
      const named = rows.find((row) => row.number === reply.interactionId)
      if (named !== undefined && named.status !== 'pending') {
        const isAnswered = named.status !== 'closed' && named.status !== 'expired' && named.status !== 'auto_decided'
        const why = isAnswered ? 'was answered before' : 'is no longer open, and was not answered'
        throw stale(`Interaction ${reply.interactionId} ${why}.`, current)
      }
      if (current.status !== 'waiting_user') {
        throw new AppError('job_not_waiting', `The job is not waiting for a reply: it is ${current.status}.`, {
          details: { status: current.status },
        })
      }
      const pending = rows.find((row) => row.status === 'pending')
      if (pending === undefined || pending !== named) {
        throw stale(
          pending === undefined
            ? 'Nothing is asked at the moment.'
            : `The job asks ${pending.number}, not ${reply.interactionId}.`,
          current,
        )
      }
      const at = this.dependencies.clock.now()
      if (
        await this.dependencies.runs.answer(pending, {
          ...decisionOf(pending, reply.response),
          by,
          at,
          ...defined({ reply: reply.key === undefined ? undefined : { key: reply.key, fingerprint: print } }),
        })
      ) {
        return { replayed: false }
      }
      // Another reply or the deadline decided first: read the interactions again.
      if (pending.deadlineAt !== null && pending.deadlineAt <= at)
        throw stale('The time for this reply is over.', current)
      current = (await this.dependencies.store.readRun(run.id)) ?? current
    }
  }
}

/** Any reply answers a question. A confirmation needs an unambiguous yes; any other reply rejects it, with its text as the reason. */
function decisionOf(row: InteractionRow, response: JsonValue) {
  if (row.kind !== 'confirmation') return { status: 'replied' as const, response }
  if (agrees(response)) return { status: 'confirmed' as const }
  const reason = typeof response === 'string' ? response : JSON.stringify(response)
  return { status: 'rejected' as const, ...(response === false ? {} : { reason: reason.slice(0, 2000) }) }
}

function toSpec(skill: Skill): SkillSpec {
  return defined({
    id: skill.id,
    name: skill.name,
    version: skill.version,
    text: skill.text,
    outputSchema: skill.schemas.output,
    files: skill.files.length === 0 ? undefined : skill.files,
  })
}

function alreadyStarted(): AppError {
  return new AppError('job_already_started', 'This job was started or has ended before. Create a new one.')
}

function stale(why: string, run: RunRow): AppError {
  return new AppError('interaction_stale', `${why} Read interaction/pending again.`, {
    details: { status: run.status },
  })
}

// /v1/jobs and /v1/temp-skill-runs: the same routes under two prefixes. The only difference
// is the skill: a job names an installed one, a temp-skill run uploads its own.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { JobFamily } from '../../jobs/job-service.ts'
import { defined } from '../../kit/defined.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { callerOf, idParam, type Server, type Services, userIdQuery } from '../routes.ts'
import { refuseResume } from '../start-or-resume.ts'
import { readFiles, UploadBudget, uploadBodyBytes, withUploads } from '../uploads.ts'
import { artifactRoutes } from './artifact-routes.ts'
import { eventRoutes, type RunOf } from './event-routes.ts'
import { jobCleanupRoute, jobListRoute } from './job-list-routes.ts'
import { jobBody, replyBody, tempRunBody, toJobBody } from './job-body.ts'
import { endedState, errorView, jobStatus, pendingView, statusView, toPending, toStatus } from './job-views.ts'
import { skillRoutes } from './skill-routes.ts'

export const jobParams = z.object({ request_id: idParam })
const created = z.object({
  request_id: z.string(),
  cache_hit: z
    .boolean()
    .describe('True if an equal job succeeded before: its result is reused, and no model is called.'),
  status: z.string().nullable().describe('Null if the job waits for its upload and starts after it.'),
})
const uploaded = created.extend({ extracted_files: z.array(z.string()) })
const keyHeader = z.object({ 'idempotency-key': z.string().min(1).max(200).optional() }).loose()

/** The upload budget holds this many uploads of the largest size at the same time, or more smaller ones. */
const concurrentLargestUploads = 4

export async function jobRoutes(server: Server, services: Services): Promise<void> {
  skillRoutes(server, services)
  jobCleanupRoute(server, services)
  const budget = new UploadBudget(concurrentLargestUploads * uploadBodyBytes(uploadLimits(services, 'temp-skill-runs')))
  for (const family of ['jobs', 'temp-skill-runs'] as const) {
    const prefix = `/v1/${family}`
    const runOf = async (request: FastifyRequest): Promise<RunRow> => {
      const id = (request.params as { request_id: string }).request_id
      return await services.jobs.get(callerOf(request, services), family, id)
    }
    createRoute(server, services, family)
    jobListRoute(server, services, family)
    await uploadRoute(server, services, family, runOf, budget)
    statusRoutes(server, services, prefix, runOf)
    interactionRoutes(server, services, prefix, runOf)
    artifactRoutes(server, services, prefix, runOf)
    eventRoutes(server, services, prefix, runOf)
  }
}

function createRoute(server: Server, services: Services, family: JobFamily): void {
  const path = `/v1/${family}`
  const schema = {
    tags: ['Jobs'],
    summary: family === 'jobs' ? 'Run a skill as a job' : 'Create a job whose skill is uploaded for this run only',
    querystring: userIdQuery,
    headers: keyHeader,
    response: { 200: created, 400: errorView, 404: errorView, 409: errorView, 429: errorView },
  }
  const create = async (
    request: FastifyRequest,
    body: z.output<typeof jobBody> | NonNullable<z.output<typeof tempRunBody>>,
  ) => {
    refuseResume(request.headers)
    const key = request.headers['idempotency-key']
    const idempotency = typeof key === 'string' ? { key, route: `POST ${path}`, body: request.body } : null
    const owner = callerOf(request, services).userId
    const {
      run,
      held,
      outcome,
      reused = false,
    } = await services.jobs.create(owner, family, toJobBody(body), idempotency)
    const status = outcome === 'existing' ? run.status : 'queued'
    return {
      request_id: run.id,
      cache_hit: reused,
      status: family === 'jobs' && held && status === 'queued' ? null : status,
    }
  }
  if (family === 'jobs')
    server.post(path, { schema: { ...schema, body: jobBody } }, (request) => create(request, request.body))
  else {
    const empty = { engine: 'local', input: {}, parameter: {}, model: null, runtime_options: {} }
    server.post(path, { schema: { ...schema, body: tempRunBody } }, (request) => create(request, request.body ?? empty))
  }
}

function uploadLimits({ settings }: Pick<Services, 'settings'>, family: JobFamily) {
  return { fileBytes: settings.uploadBytes, filesMax: family === 'jobs' ? 1 : 2 }
}

async function uploadRoute(
  server: Server,
  services: Services,
  family: JobFamily,
  runOf: RunOf,
  budget: UploadBudget,
): Promise<void> {
  const limits = { ...uploadLimits(services, family), budget, clock: services.clock }
  const needed = family === 'jobs' ? 'file' : 'skill_package'
  await withUploads(server, (scope) => {
    // The handler refuses a body that is no form, with a sentence that says what to send.
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined))

    scope.post(
      `/v1/${family}/:request_id/upload`,
      {
        config: { admitsBodyItself: true },
        schema: {
          tags: ['Jobs'],
          summary:
            family === 'jobs'
              ? 'Upload the input files of a job as a zip in the form field `file`, and start the job'
              : 'Upload the skill as a zip in `skill_package` and the input files as a zip in `file`, and start the run',
          params: jobParams,
          querystring: userIdQuery,
          consumes: ['multipart/form-data'],
          response: {
            200: uploaded,
            400: errorView,
            404: errorView,
            413: errorView,
            415: errorView,
            429: errorView,
            503: errorView,
          },
        },
      },
      async (request, reply) => {
        const run = await runOf(request)
        services.jobs.refuseUnlessQueued(run)
        return await readFiles(request, reply, limits, async (files) => {
          const skill = family === 'jobs' ? undefined : files.get('skill_package')?.bytes
          const file = files.get('file')?.bytes
          if ((family === 'jobs' ? file : skill) === undefined) {
            throw new AppError('upload_part_missing', `The form has no file in the field ${needed}.`)
          }
          const started = await services.jobs.upload(run, defined({ skill, file }))
          return { request_id: run.id, cache_hit: started.reused, status: 'queued', extracted_files: started.files }
        })
      },
    )
  })
}

function statusRoutes(server: Server, services: Services, prefix: string, runOf: RunOf): void {
  const { journal, jobs, runs } = services

  server.get(
    `${prefix}/:request_id`,
    {
      schema: {
        tags: ['Jobs'],
        summary: 'The status of a job',
        params: jobParams,
        querystring: userIdQuery,
        response: { 200: statusView, 404: errorView },
      },
    },
    async (request) => {
      const run = await runOf(request)
      return toStatus(run, await jobs.interactions(run), await runs.specOf(run), await endedState(journal, run))
    },
  )

  server.post(
    `${prefix}/:request_id/cancel`,
    {
      schema: {
        tags: ['Jobs'],
        summary: 'Cancel a job in any state',
        params: jobParams,
        querystring: userIdQuery,
        response: {
          200: z.object({
            request_id: z.string(),
            run_id: z.string(),
            status: z.string(),
            accepted: z.boolean(),
            message: z.string(),
          }),
          404: errorView,
        },
      },
    },
    async (request) => {
      const found = await runOf(request)
      const { run, accepted } = await runs.cancel(found.owner, found.id, null)
      const stopped = run.endedAt === null ? 'The cancel is stored; the job is stopping.' : 'The job was cancelled.'
      const message = accepted ? stopped : `The job had ended before: ${run.status}.`
      return { request_id: run.id, run_id: run.id, status: run.status, accepted, message }
    },
  )
}

function interactionRoutes(server: Server, services: Services, prefix: string, runOf: RunOf): void {
  const { jobs, tools } = services

  server.get(
    `${prefix}/:request_id/interaction/pending`,
    {
      schema: {
        tags: ['Jobs'],
        summary: 'The question that the job waits for',
        params: jobParams,
        querystring: userIdQuery,
        response: {
          200: z.object({ request_id: z.string(), status: z.string(), pending: pendingView.nullable() }),
          400: errorView,
          404: errorView,
        },
      },
    },
    async (request) => {
      const run = await runOf(request)
      await jobs.refuseUnlessInteractive(run)
      const pending = await jobs.pending(run)
      const status = jobStatus(run, await jobs.interactions(run))
      return { request_id: run.id, status, pending: pending === undefined ? null : toPending(pending, tools) }
    },
  )

  server.post(
    `${prefix}/:request_id/interaction/reply`,
    {
      schema: {
        tags: ['Jobs'],
        summary: 'Answer the question of the job',
        params: jobParams,
        querystring: userIdQuery,
        body: replyBody,
        response: {
          200: z.object({ request_id: z.string(), status: z.string(), accepted: z.boolean() }),
          400: errorView,
          404: errorView,
          409: errorView,
        },
      },
    },
    async (request) => {
      const run = await runOf(request)
      const { interaction_id: interactionId, response, idempotency_key: key } = request.body
      const { replayed } = await jobs.reply(run, run.owner, { interactionId, response, key: key ?? undefined })
      const [now, rows] = [await runOf(request), await jobs.interactions(run)]
      // A first reply reports the status that it caused, even if the run has moved on since. A repeated reply reports
      // the current status.
      const open = rows.some(
        (row) =>
          row.status === 'pending' &&
          row.createdAt <= (rows.find((one) => one.number === interactionId)?.createdAt ?? 0),
      )
      const status = replayed ? jobStatus(now, rows) : open ? 'waiting_user' : 'queued'
      return { request_id: run.id, status, accepted: true }
    },
  )
}

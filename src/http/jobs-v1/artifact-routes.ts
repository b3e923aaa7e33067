// The output of a job: its result, its artifacts (files), and a zip archive of both.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { artifactsOf } from '../../jobs/job-artifacts.ts'
import { artifactsFolder } from '../../jobs/job-files.ts'
import { readRunState } from '../../journal/event-pages.ts'
import { writeZip } from '../../kit/zip-writer.ts'
import { isTerminal } from '../../journal/event.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { inertTextPolicy } from '../inert-text.ts'
import { idParam, type Server, type Services, userIdQuery } from '../routes.ts'
import type { RunOf } from './event-routes.ts'
import { artifactView, errorView, resultView, toResult } from './job-views.ts'

const params = z.object({ request_id: idParam })

export function artifactRoutes(server: Server, { journal, jobs }: Services, prefix: string, runOf: RunOf): void {
  const resultOf = async (run: RunRow) => {
    if (!isTerminal(run.status))
      throw new AppError('job_result_not_found', `The job has no result yet: it is ${run.status}.`)
    return toResult(run, await readRunState(journal, run.id))
  }

  server.get(
    `${prefix}/:request_id/result`,
    {
      schema: {
        tags: ['Jobs'],
        summary: 'The result of a job; 404 until the job has ended',
        params,
        querystring: userIdQuery,
        response: { 200: z.object({ request_id: z.string(), result: resultView }), 404: errorView },
      },
    },
    async (request) => {
      const run = await runOf(request)
      return { request_id: run.id, result: await resultOf(run) }
    },
  )

  server.get(
    `${prefix}/:request_id/artifacts`,
    {
      schema: {
        tags: ['Jobs'],
        summary: 'The artifacts (files) that a job has stored so far',
        params,
        querystring: userIdQuery,
        response: { 200: z.object({ request_id: z.string(), artifacts: z.array(artifactView) }), 404: errorView },
      },
    },
    async (request) => {
      const run = await runOf(request)
      return { request_id: run.id, artifacts: artifactsOf(await readRunState(journal, run.id)) }
    },
  )

  server.get(
    `${prefix}/:request_id/artifacts/*`,
    {
      schema: {
        tags: ['Jobs'],
        summary: 'One artifact (file) of a job',
        params: z.object({ request_id: idParam, '*': z.string() }),
        querystring: userIdQuery,
        // No schema for 200: the reply is plain text, not JSON.
        response: { 400: errorView, 404: errorView },
      },
    },
    async (request, reply) => {
      const run = await runOf(request)
      const given = request.params['*']
      const path = given.startsWith(artifactsFolder) ? given : artifactsFolder + given
      if (/[\\\0]/.test(path) || path.split('/').some((part) => part === '' || part === '.' || part === '..')) {
        throw new AppError('artifact_path_invalid', 'An artifact has a plain path under artifacts/.')
      }
      const text = await jobs.artifact(run, path)
      if (text === undefined) throw new AppError('artifact_not_found', `The job has no ${path}.`)
      // A model wrote this text, so a browser must download it and never render it as a page of this server.
      return await reply
        .header('content-disposition', 'attachment')
        .header('content-security-policy', inertTextPolicy)
        .type('text/plain; charset=utf-8')
        .send(text as never)
    },
  )

  server.get(
    `${prefix}/:request_id/bundle`,
    {
      schema: {
        tags: ['Jobs'],
        summary: 'The result and artifacts of a job in one zip; 404 until the job has ended',
        params,
        querystring: userIdQuery,
        // No schema for 200: the reply is a zip, not JSON.
        response: { 404: errorView },
      },
    },
    async (request, reply) => {
      const run = await runOf(request)
      const result = await resultOf(run)
      const files = [{ path: 'result.json', body: Buffer.from(`${JSON.stringify(result, null, 2)}\n`) }]
      for (const path of result.artifacts)
        files.push({ path, body: Buffer.from((await jobs.artifact(run, path)) ?? '') })
      return await reply
        .header('content-disposition', `attachment; filename="${run.id}.zip"`)
        .header('content-security-policy', inertTextPolicy)
        .type('application/zip')
        .send(writeZip(files) as never)
    },
  )
}

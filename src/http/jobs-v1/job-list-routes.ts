// GET /v1/jobs and /v1/temp-skill-runs list the caller's jobs in pages. POST /v1/jobs/cleanup
// deletes the caller's jobs that have ended.

import { z } from 'zod'
import { asUser } from '../../kit/caller.ts'
import { defined } from '../../kit/defined.ts'
import { AppError } from '../../errors/app-error.ts'
import type { JobFamily } from '../../jobs/job-service.ts'
import { type RunStatus, runStatuses } from '../../journal/event.ts'
import { linkNext } from '../next-link.ts'
import { callerOf, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'
import { errorView, jobSummary, toSummary } from './job-views.ts'

const pageMax = 100

export function jobListRoute(server: Server, services: Services, family: JobFamily): void {
  const { jobs } = services
  server.get(
    `/v1/${family}`,
    {
      schema: {
        tags: ['Jobs'],
        summary: 'Your jobs, newest first',
        querystring: userIdQuery.extend({
          status: optionalFilter().describe(`One or more of ${runStatuses.join(', ')}; comma-separated.`),
          skill_id: optionalFilter(),
          limit: z.coerce.number().int().min(1).max(pageMax).default(50),
          before: optionalFilter().describe('The `next_before` of the previous page.'),
        }),
        response: {
          200: z.object({
            jobs: z.array(jobSummary),
            next_before: z
              .string()
              .nullable()
              .describe('Send it as `before` to get the next page; null on the last page.'),
          }),
          400: errorView,
        },
      },
    },
    async (request, reply) => {
      const owner = callerOf(request, services).userId
      const { status, skill_id: skillId, limit, before } = request.query
      if (before !== undefined) await refuseUnknownCursor(owner, before)
      const { rows, more } = await jobs.list(owner, family, {
        limit,
        ...defined({ status: status === undefined ? undefined : statusesOf(status), skillId, before }),
      })
      const shown = []
      for (const run of rows) {
        const questions = run.status === 'waiting_user' ? await jobs.interactions(run) : []
        shown.push(toSummary(run, questions))
      }
      const next = more ? (rows.at(-1)?.id ?? null) : null
      if (next !== null) linkNext(request, reply, { before: next })
      return { jobs: shown, next_before: next }
    },
  )

  async function refuseUnknownCursor(owner: string, before: string): Promise<void> {
    if ((await jobs.find(asUser(owner), family, before)) !== undefined) return
    throw new AppError(
      'unknown_cursor',
      'before: there is no such job of yours; send next_before of the page before, or start without it.',
    )
  }
}

function statusesOf(text: string): RunStatus[] {
  return text.split(',').map((word) => {
    const found = runStatuses.find((status) => status === word.trim())
    if (found !== undefined) return found
    throw new AppError(
      'invalid_request',
      `status: ${JSON.stringify(word.trim().slice(0, 60))} is not one of ${runStatuses.join(', ')}.`,
    )
  })
}

export function jobCleanupRoute(server: Server, services: Services): void {
  server.post(
    '/v1/jobs/cleanup',
    {
      schema: {
        tags: ['Jobs'],
        summary: 'Delete your jobs that have ended, with their files and cached results',
        description: 'Covers the jobs of both prefixes. Jobs that are queued, running or waiting are kept.',
        querystring: userIdQuery,
        response: {
          200: z.object({
            runs_deleted: z.number(),
            requests_deleted: z.number(),
            cache_entries_deleted: z.number(),
          }),
        },
      },
    },
    async (request) => {
      const { removed, cached } = await services.jobs.removeEnded(callerOf(request, services).userId)
      return { runs_deleted: removed, requests_deleted: removed, cache_entries_deleted: cached }
    },
  )
}

// A streaming POST either starts a run, or resumes the run of an earlier request if it has
// both that request's Idempotency-Key and a Last-Event-ID. A POST with Last-Event-ID must
// never start a run.

import type { IncomingHttpHeaders } from 'node:http'
import { z } from 'zod'
import { addressSpelling, beginning, type Cursor } from '../dialects/cursor.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { AppError } from '../errors/app-error.ts'
import { fingerprint, type StartResult } from '../runs/run-acceptance.ts'
import type { StartRequest } from '../runs/start-request.ts'
import type { RunRow } from '../stores/run-store.ts'
import { checkCursor, requestedCursor } from './cursor.ts'
import type { Services } from './routes.ts'

export const startHeaders = z
  .object({
    'idempotency-key': z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('A request that repeats the same key and body attaches to the same run.'),
    'last-event-id': z
      .string()
      .optional()
      .describe('Together with Idempotency-Key: resume the stream after this frame.'),
  })
  .loose()

/** `started` is false if the run already existed. */
export type StartedRun = { run: RunRow; started: boolean } & Pick<StartResult, 'standsAlone'>

export type ResumableStart = Pick<StartRequest, 'owner' | 'idempotency' | 'onDisconnect'> & {
  /** Starts the run, or finds the one that answers the request. Not called if the request resumes a stream. */
  begin(): Promise<StartedRun>
}

export function chatStart(services: Pick<Services, 'runs'>, start: StartRequest): ResumableStart {
  return {
    ...start,
    async begin() {
      const { run, outcome, standsAlone } = await services.runs.start(start)
      return { run, started: outcome === 'accepted', ...(standsAlone ? { standsAlone } : {}) }
    },
  }
}

/** The request whose run `findStarted` finds. */
export function startedBy({ key, route, body }: NonNullable<StartRequest['idempotency']>) {
  return { key, route, fingerprint: fingerprint(body) }
}

/** For a POST whose answer is not a stream: there is nothing to resume, and it must not start a run. */
export function refuseResume(headers: IncomingHttpHeaders): void {
  if (!resumes(headers)) return
  throw new AppError(
    'resume_by_post',
    'This answer is not a stream, so it cannot be resumed. Send the request without Last-Event-ID.',
  )
}

function resumes({ 'last-event-id': lastEventId }: IncomingHttpHeaders): boolean {
  return lastEventId !== undefined && lastEventId !== ''
}

/** The run of an earlier request that this one resumes. Undefined if the request is to start a run. */
export async function resumedRun(
  { runs }: Pick<Services, 'runs'>,
  headers: IncomingHttpHeaders,
  { owner, idempotency }: Pick<StartRequest, 'owner' | 'idempotency'>,
): Promise<RunRow | undefined> {
  if (!resumes(headers)) return undefined
  if (idempotency === null) {
    throw new AppError(
      'resume_by_post',
      'A POST cannot resume a stream by itself. Use GET /v1/agent/runs/{runId}/stream with Last-Event-ID, or send the Idempotency-Key of the first request.',
    )
  }
  const run = await runs.findStarted(owner, startedBy(idempotency))
  if (run !== undefined) return run
  throw new AppError(
    'run_not_found',
    'No run was started with this Idempotency-Key or message id; send the request without Last-Event-ID to start one.',
  )
}

/** The result is null if the client already has the whole run. */
export async function startOrResume(
  services: Pick<Services, 'runs' | 'journal'>,
  headers: IncomingHttpHeaders,
  start: ResumableStart,
  dialect: Dialect,
): Promise<(StartedRun & { cursor: Cursor }) | null> {
  const run = await resumedRun(services, headers, start)
  if (run === undefined) return { ...(await start.begin()), cursor: beginning }
  const cursor = requestedCursor(addressSpelling, headers['last-event-id'])
  return (await checkCursor(cursor, run, dialect, services.journal)) ? null : { run, cursor, started: false }
}

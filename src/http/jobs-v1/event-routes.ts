// Routes that read a run of the jobs family: its event stream, event history, invariants
// and log. They are mounted once for each prefix of the family. `runOf` finds the run that
// a request addresses, or throws if the caller may not see it.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { fcmpDialect, snapshotFrame } from '../../dialects/fcmp/fcmp.ts'
import { AppError } from '../../errors/app-error.ts'
import { eventPages } from '../../journal/event-pages.ts'
import { defined } from '../../kit/defined.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { requestedCursor } from '../cursor.ts'
import { invariantsView, toInvariants } from '../invariants-view.ts'
import { linkNext } from '../next-link.ts'
import { idParam, type Server, type Services, userIdQuery } from '../routes.ts'
import { streamRun } from '../stream-run.ts'
import { errorView, jobStatus } from './job-views.ts'
import { fcmpSpelling, checkRunInvariants, locateCursor, readHistory } from './fcmp-reading.ts'
import { logStreams, RunLogFold } from './run-log.ts'

export type RunOf = (request: FastifyRequest) => Promise<RunRow>

/** The most bytes of a log that one reply holds. */
const logBytesMax = 1024 * 1024

const params = z.object({ request_id: idParam })

const envelopeView = z.record(z.string(), z.unknown()).describe('An fcmp/1.0 envelope.')

const historyView = z
  .object({
    request_id: z.string(),
    count: z.number(),
    events: z.array(envelopeView),
    diagnostics: z
      .array(z.object({ code: z.string(), count: z.number(), detail: z.string() }))
      .optional()
      .describe('What was left out of the history, and why; absent if nothing was left out.'),
  })
  .meta({ id: 'JobHistory' })

const seqQuery = z.coerce.number().int().min(0).optional()
const byteQuery = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).default(0)

export function eventRoutes(server: Server, services: Services, prefix: string, runOf: RunOf): void {
  const { journal, jobs } = services
  const tags = ['Jobs']

  /** Logs every event that the FCMP schema rejects: it is a bug in this server, or another program wrote the row. */
  const dialectFor = (request: FastifyRequest) =>
    fcmpDialect({
      ids: 'fcmp',
      onViolation: (violation) => request.log.error({ violation }, 'an event that does not fit FCMP was left out'),
    })

  server.get(
    `${prefix}/:request_id/events`,
    {
      schema: {
        tags,
        summary: 'The events of a run, as a stream',
        description:
          'The first event is snapshot. Then come chat_event events, each with one fcmp/1.0 envelope, and heartbeat events while the run is idle. The stream stays open while the run waits for a person, and closes when the run ends. If both cursor and Last-Event-ID are sent, the larger one is used. If the run has ended and you have all of it, ?cursor= returns the snapshot and closes, and Last-Event-ID returns 204, so that an EventSource stops reconnecting.',
        params,
        querystring: userIdQuery.extend({
          cursor: z
            .string()
            .optional()
            .describe('The seq of the last event you received; send 0 or leave it out to get all events.'),
        }),
        response: {
          204: z.null().describe('The run has ended and Last-Event-ID is its last event.'),
          400: errorView,
          404: errorView,
        },
      },
    },
    async (request, reply) => {
      const run = await runOf(request)
      const lastEventId = request.headers['last-event-id']
      const seq = requestedCursor(fcmpSpelling, lastEventId, request.query.cursor)
      // An EventSource reconnects on its own and stops only when it gets 204.
      const reconnects = seq > 0 && seq === requestedCursor(fcmpSpelling, lastEventId)
      const dialect = dialectFor(request)
      const { cursor, complete } = await locateCursor(journal, run, dialect, seq)
      if (complete && reconnects) return reply.code(204).send(null)
      return await streamRun(services, request, reply, { run, dialect, cursor, opening: await snapshotOf(run, seq) })
    },
  )

  server.get(
    `${prefix}/:request_id/events/history`,
    {
      schema: {
        tags,
        summary: 'The events of a run so far',
        description:
          'The same envelopes as on the stream. The bounds are inclusive. A long history comes in pages: the Link header with rel="next" has the address of the next page. Stored rows that can no longer be read are left out; diagnostics counts them.',
        params,
        querystring: userIdQuery.extend({
          from_seq: seqQuery,
          to_seq: seqQuery,
          from_ts: z.string().optional().describe('ISO 8601; UTC if it has no time zone.'),
          to_ts: z.string().optional().describe('ISO 8601; UTC if it has no time zone.'),
        }),
        response: { 200: historyView, 400: errorView, 404: errorView },
      },
    },
    async (request, reply) => {
      const run = await runOf(request)
      const { from_seq: fromSeq, to_seq: toSeq, from_ts, to_ts } = request.query
      const bounds = { fromSeq, toSeq, fromMs: instantOf('from_ts', from_ts), toMs: instantOf('to_ts', to_ts) }
      const { events, more, diagnostics } = await readHistory(journal, run.id, dialectFor(request), bounds)
      if (more) linkNext(request, reply, { from_seq: Number(events.at(-1)?.seq) + 1 })
      return {
        request_id: run.id,
        count: events.length,
        events,
        ...(diagnostics.length === 0 ? {} : { diagnostics }),
      }
    },
  )

  server.get(
    `${prefix}/:request_id/invariants`,
    {
      schema: {
        tags,
        summary: 'Check the invariants of a run',
        description:
          'Every rule about state transitions, pairing and ordering, whether the run keeps it, and the seq of each event that breaks it.',
        params,
        querystring: userIdQuery,
        response: { 200: invariantsView.extend({ request_id: z.string() }), 404: errorView },
      },
    },
    async (request) => {
      const run = await runOf(request)
      return { request_id: run.id, ...toInvariants(await checkRunInvariants(journal, run.id, dialectFor(request))) }
    },
  )

  server.get(
    `${prefix}/:request_id/logs`,
    {
      schema: {
        tags,
        summary: 'The log of a run so far',
        description:
          'The prompt; stdout: the text of the model and the results of tools; stderr: the errors. Each holds at most the first MiB; if there is more, the Link header with rel="next" points to logs/range.',
        params,
        querystring: userIdQuery,
        response: {
          200: z.object({
            request_id: z.string(),
            prompt: z.string().optional(),
            stdout: z.string().optional(),
            stderr: z.string().optional(),
          }),
          404: errorView,
        },
      },
    },
    async (request, reply) => {
      const run = await runOf(request)
      const log = await readLog(run, 0, logBytesMax)
      const [stdout, stderr] = [log.range('stdout'), log.range('stderr')]
      // One link for each stream that has more bytes.
      for (const { stream, byte_to: end } of [stderr, stdout]) {
        const rest = { stream, byte_from: end, byte_to: log.bytes(stream) }
        if (rest.byte_to > end) linkNext(request, reply, rest, `${prefix}/${run.id}/logs/range`)
      }
      return {
        request_id: run.id,
        ...defined({
          prompt: log.prompt,
          stdout: stdout.chunk === '' ? undefined : stdout.chunk,
          stderr: stderr.chunk === '' ? undefined : stderr.chunk,
        }),
      }
    },
  )

  server.get(
    `${prefix}/:request_id/logs/range`,
    {
      schema: {
        tags,
        summary: 'A byte range of the log of a run',
        description:
          'The bytes from byte_from up to, but not including, byte_to. Both are adjusted to the size of the log and to whole characters; the reply has the adjusted values. A reply holds at most one MiB; if you asked for more, the Link header with rel="next" has the address of the rest. pty is stdout and stderr together, in the order in which they were written.',
        params,
        querystring: userIdQuery.extend({ stream: z.enum(logStreams), byte_from: byteQuery, byte_to: byteQuery }),
        response: {
          200: z.object({
            stream: z.enum(logStreams),
            byte_from: z.number(),
            byte_to: z.number(),
            chunk: z.string(),
          }),
          400: errorView,
          404: errorView,
        },
      },
    },
    async (request, reply) => {
      const { stream, byte_from: from, byte_to: to } = request.query
      const run = await runOf(request)
      if (to > 0 && to < from) {
        throw new AppError('invalid_request', 'byte_to: must not be smaller than byte_from.')
      }
      const log = await readLog(run, from, Math.min(to, from + logBytesMax))
      const range = log.range(stream)
      if (range.byte_to < Math.min(to, log.bytes(stream))) linkNext(request, reply, { byte_from: range.byte_to })
      return range
    },
  )

  /**
   * The snapshot has the same status as `GET` on the job: `queued` if every question is answered. It names the open
   * question with the lowest number.
   */
  async function snapshotOf(run: RunRow, cursor: number): Promise<string> {
    const rows = run.status === 'waiting_user' ? await jobs.interactions(run) : []
    const open = rows.filter(({ status }) => status === 'pending').map(({ number }) => number)
    return snapshotFrame(jobStatus(run, rows), cursor, open.length === 0 ? undefined : Math.min(...open))
  }

  async function readLog(run: RunRow, from: number, to: number): Promise<RunLogFold> {
    const log = new RunLogFold(from, to)
    for await (const page of eventPages(journal, run.id)) for (const event of page.events) log.add(event)
    return log
  }
}

/** ISO 8601 text → epoch milliseconds. A `+` that the client did not percent-encode arrives as a space. */
function instantOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined || text.trim() === '') return undefined
  const iso = text.trim().replace(/ (?=\d\d:?\d\d$)/, '+')
  const match = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$/i.exec(iso)
  const zoned = match !== null && match[1] === undefined && /[T ]/i.test(iso) ? `${iso}Z` : iso
  const instant = match === null ? Number.NaN : Date.parse(zoned.replace(' ', 'T'))
  if (Number.isNaN(instant)) {
    throw new AppError(
      'invalid_request',
      `${name}: ${JSON.stringify(text.slice(0, 60))} is no ISO 8601 time; send one such as 2026-01-31T12:00:00Z.`,
    )
  }
  return instant
}

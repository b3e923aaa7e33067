// GET /v1/agent/runs/:runId/events: the journal of a run as it is stored, page by page; and …/events/stream, the same live,
// with what each wire makes of each event. Every wire is a fold of these events.

import { z } from 'zod'
import { addressSpelling } from '../../dialects/cursor.ts'
import type { Dialect } from '../../dialects/dialect.ts'
import { journalWire } from '../../dialects/journal-wire/journal-wire.ts'
import { shownEvent } from '../../dialects/journal-wire/shown-event.ts'
import { visibleEvents } from '../../dialects/undecided-arm.ts'
import { AppError } from '../../errors/app-error.ts'
import { checkCursor, requestedCursor } from '../cursor.ts'
import { dialectNamed, formatDialects } from '../formats.ts'
import { linkNext } from '../next-link.ts'
import { errorBody, idParam, ownRun, type Server, type Services, userIdQuery } from '../routes.ts'
import { streamRun } from '../stream-run.ts'

const limitMax = 1000
/** Each wire costs as much as a stream of its own. */
const wiresMax = 8

const eventsView = z
  .object({
    runId: z.string(),
    events: z.array(
      z.object({
        seq: z.number(),
        at: z.string(),
        atMs: z.number(),
        attempt: z.number(),
        type: z.string(),
        data: z.unknown(),
      }),
    ),
    next: z.number().describe('Send it as `after` for the next page.'),
    hasMore: z.boolean().describe('False if you have all events that are stored now.'),
    skipped: z.number().describe('How many stored rows of this page could no longer be read.'),
  })
  .meta({ id: 'RunEvents' })

export function eventsRoute(server: Server, services: Services): void {
  server.get(
    '/v1/agent/runs/:runId/events',
    {
      schema: {
        tags: ['Agent'],
        summary: 'The journal of a run: its events as they are stored',
        description:
          'Up to 1000 events or about 1 MiB a page. Left out are the system prompt of a configuration, the handles of remote agents and the state of providers; and, while the run is an arm of an undecided comparison, everything that identifies it.',
        params: z.object({ runId: idParam }),
        querystring: userIdQuery.extend({
          after: z.coerce.number().int().min(0).default(0).describe('Only events after this seq.'),
          limit: z.coerce.number().int().min(1).max(limitMax).default(limitMax),
        }),
        response: { 200: eventsView, 400: errorBody, 404: errorBody },
      },
    },
    async (request, reply) => {
      const run = await ownRun(request, services, request.params.runId)
      const { after, limit } = request.query
      const undecided = await services.comparisons.isUndecided(run.id)
      const { events, nextAfter, atHead, skipped } = await services.journal.readEvents(run.id, after, limit)
      if (!atHead) linkNext(request, reply, { after: nextAfter })
      return {
        runId: run.id,
        events: visibleEvents(events, undecided).map(shownEvent),
        next: nextAfter,
        hasMore: !atHead,
        skipped,
      }
    },
  )
  server.get(
    '/v1/agent/runs/:runId/events/stream',
    {
      schema: {
        tags: ['Agent'],
        summary: 'The journal of a run, live, and each event in other wire formats',
        description:
          'One message for each event, as in the list of events. `wires` has the exact bytes that each format of `formats` sends for this event; `ends` names the formats whose streams end with it. 204 if the run has ended and nothing follows the cursor.',
        params: z.object({ runId: idParam }),
        querystring: userIdQuery.extend({
          formats: z
            .string()
            .max(500)
            .optional()
            .describe(`Up to ${wiresMax} of ${Object.keys(formatDialects).join(', ')}; comma-separated.`),
          after: z.string().optional().describe('The id of the last message you received; 0 for all.'),
        }),
        response: {
          204: z.null().describe('The run has ended and you have all of it.'),
          400: errorBody,
          404: errorBody,
        },
      },
    },
    async (request, reply) => {
      const dialect = journalWire(wiresOf(request.query.formats))
      const cursor = requestedCursor(addressSpelling, request.headers['last-event-id'], request.query.after)
      const run = await ownRun(request, services, request.params.runId)
      if (await checkCursor(cursor, run, dialect, services.journal)) return reply.code(204).send(null)
      return await streamRun(services, request, reply, { run, dialect, cursor })
    },
  )
}

function wiresOf(formats = ''): Record<string, Dialect> {
  const names = [...new Set(formats.split(',').map((name) => name.trim()))].filter((name) => name !== '')
  if (names.length > wiresMax) {
    throw new AppError('invalid_request', `formats: At most ${wiresMax} formats fit into one stream.`)
  }
  return Object.fromEntries(names.map((name) => [name, dialectNamed(name)]))
}

// GET /v1/agent/runs/:runId/events: the journal of a run as it is stored, page by page. Every
// wire is a fold of these events.

import { z } from 'zod'
import { visibleEvents } from '../../dialects/undecided-arm.ts'
import type { RunEvent } from '../../journal/event.ts'
import { isoTime } from '../../kit/clock.ts'
import { linkNext } from '../next-link.ts'
import { errorBody, idParam, ownRun, type Server, type Services, userIdQuery } from '../routes.ts'

const limitMax = 1000

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
        events: visibleEvents(events, undecided).map(shown),
        next: nextAfter,
        hasMore: !atHead,
        skipped,
      }
    },
  )
}

function shown(event: RunEvent) {
  const { seq, at, attempt, type } = event
  return { seq, at: isoTime(at), atMs: at, attempt, type, data: withoutInternals(event) }
}

/** What belongs to the operator or to another server, and not to the user. */
function withoutInternals(event: RunEvent): unknown {
  switch (event.type) {
    case 'run.accepted': {
      const { systemPrompt: _prompt, ...spec } = event.data.spec
      return { ...event.data, spec }
    }
    case 'engine.handle':
      return { engine: event.data.engine }
    case 'step.done': {
      const { provider: _state, ...data } = event.data
      return data
    }
    default:
      return event.data
  }
}

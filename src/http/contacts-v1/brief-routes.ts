// /v1/contacts/:contactId/brief: the brief that was generated last, and a new one.

import { z } from 'zod'
import type { ContactBrief } from '../../contacts/brief-service.ts'
import { callerOf, errorBody, type Server, type Services, userIdQuery } from '../routes.ts'
import { ms, time, times } from '../views.ts'
import { requestSignal } from '../request-signal.ts'
import { agentBody, agentOptionsOf } from './agent-body.ts'
import { contactParams } from './record-routes.ts'

const tags = ['Contacts']

const briefView = z
  .object({
    contactId: z.string(),
    content: z.string().describe('Markdown.'),
    citations: z.array(z.unknown()).describe('The records that the brief rests on: source, type, reference.'),
    generatedAt: time,
    generatedAtMs: ms,
    snapshotId: z
      .string()
      .nullable()
      .describe(
        'The stored result; GET /v1/agent/snapshots/{snapshotId}/diff shows what changed since the last brief.',
      ),
    runId: z.string(),
    cached: z.boolean().describe('True if an earlier request produced the brief.'),
    computed: z
      .boolean()
      .describe('True if the brief was computed from the records and not written by a language model.'),
  })
  .meta({ id: 'ContactBrief' })

function toBrief({ generatedAt, ...brief }: ContactBrief): z.infer<typeof briefView> {
  return { ...brief, ...times({ generatedAt }) } as z.infer<typeof briefView>
}

export function briefRoutes(server: Server, services: Services): void {
  const { briefs, streams } = services

  server.get(
    '/v1/contacts/:contactId/brief',
    {
      schema: {
        tags,
        summary: 'The brief of a contact that was generated last; null if there is none',
        params: contactParams,
        querystring: userIdQuery,
        response: { 200: briefView.nullable(), 404: errorBody },
      },
    },
    async (request, reply) => {
      const brief = await briefs.newest(callerOf(request, services).userId, request.params.contactId)
      return reply.send(brief === null ? null : toBrief(brief))
    },
  )

  for (const refresh of [false, true]) {
    server.post(
      `/v1/contacts/:contactId/brief${refresh ? '/refresh' : ''}`,
      {
        schema: {
          tags,
          summary: refresh ? 'Generate the brief of a contact again' : 'Generate the brief of a contact',
          description: refresh
            ? 'The agent runs again, also if nothing has changed; the result is a new snapshot.'
            : 'Answers with the stored brief if the records that it rests on have not changed.',
          params: contactParams,
          querystring: userIdQuery,
          body: agentBody,
          response: {
            200: briefView,
            400: errorBody,
            404: errorBody,
            409: errorBody,
            413: errorBody,
            429: errorBody,
            502: errorBody,
            503: errorBody,
            504: errorBody,
          },
        },
      },
      async (request, reply) => {
        const given = agentOptionsOf(request.body)
        const options = refresh ? { ...given, forceRefresh: true } : given
        const caller = callerOf(request, services)
        const { contactId } = request.params
        return toBrief(await briefs.generate(caller, contactId, options, requestSignal(reply, streams)))
      },
    )
  }
}

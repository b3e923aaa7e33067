// GET /v1/agent/runs/:runId/invariants: checks a run of any family against the rules about
// state transitions, pairing and ordering.

import { z } from 'zod'
import { fcmpDialect } from '../../dialects/fcmp/fcmp.ts'
import { invariantsView, toInvariants } from '../invariants-view.ts'
import { checkRunInvariants } from '../jobs-v1/fcmp-reading.ts'
import { errorBody, idParam, ownRun, type Server, type Services, userIdQuery } from '../routes.ts'

export function invariantsRoute(server: Server, services: Services): void {
  const { journal } = services
  server.get(
    '/v1/agent/runs/:runId/invariants',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Check the invariants of a run',
        description:
          'Every rule about state transitions, pairing and ordering, whether the run keeps it, and the seq of each event that breaks it.',
        params: z.object({ runId: idParam }),
        querystring: userIdQuery,
        response: { 200: invariantsView.extend({ runId: z.string() }), 404: errorBody },
      },
    },
    async (request) => {
      const run = await ownRun(request, services, request.params.runId)
      return { runId: run.id, ...toInvariants(await checkRunInvariants(journal, run.id, fcmpDialect())) }
    },
  )
}

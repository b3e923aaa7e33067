// GET /v1/agent/runs/:runId/invariants: which of the rules on states, pairs and
// order a run keeps, whatever family it came from.

import { z } from 'zod'
import { fcmpDialect } from '../../dialects/fcmp/fcmp.ts'
import { invariantsView, toInvariants } from '../invariants-view.ts'
import { judge } from '../jobs-v1/fcmp-reading.ts'
import { errorBody, idParam, ownRun, type Server, type Services, userIdQuery } from '../routes.ts'

export function invariantsRoute(server: Server, services: Services): void {
  const { journal } = services
  server.get(
    '/v1/agent/runs/:runId/invariants',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Which rules a run keeps',
        description: 'Every rule on states, pairs and order, kept or broken, with the seq of what broke it.',
        params: z.object({ runId: idParam }),
        querystring: userIdQuery,
        response: { 200: invariantsView.extend({ runId: z.string() }), 404: errorBody },
      },
    },
    async (request) => {
      const run = await ownRun(request, services, request.params.runId)
      return { runId: run.id, ...toInvariants(await judge(journal, run.id, fcmpDialect())) }
    },
  )
}

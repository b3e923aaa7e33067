// Messages that wait in the queue of a conversation: change the text of one, or take it out.

import { z } from 'zod'
import { errorBody, idParam, ownRun, type Server, type Services, userIdQuery } from '../routes.ts'
import { runView, toRun } from '../views.ts'

const params = z.object({ runId: idParam })

/** As in a chat request. */
const inputCharsMax = 1_000_000

const withdrawnView = runView.extend({ input: z.string().describe('The text of the message, to edit and send again.') })

export function queuedRunRoutes(server: Server, services: Services): void {
  server.patch(
    '/v1/agent/runs/:runId',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Change the message of a run that is still queued',
        description: 'The run keeps its place. 409 if it has started, was cancelled or has ended.',
        params,
        querystring: userIdQuery,
        body: z.object({
          input: z.string().trim().min(1).max(inputCharsMax).describe('The new text.'),
          userId: z.string().max(200).nullish(),
        }),
        response: { 200: runView, 400: errorBody, 404: errorBody, 409: errorBody },
      },
    },
    async (request) => {
      const run = await ownRun(request, services, request.params.runId)
      return toRun(await services.queuedRuns.revise(run, request.body.input), false)
    },
  )

  server.delete(
    '/v1/agent/runs/:runId',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Take a message out of the queue',
        description:
          'The run is cancelled without having started, and its message is no longer part of the conversation. 409 if the run has started, was cancelled or has ended.',
        params,
        querystring: userIdQuery,
        response: { 200: withdrawnView, 400: errorBody, 404: errorBody, 409: errorBody },
      },
    },
    async (request) => {
      const { run, input } = await services.queuedRuns.withdraw(await ownRun(request, services, request.params.runId))
      return { ...toRun(run, false), input }
    },
  )
}

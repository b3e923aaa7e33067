// POST /v1/agent/runs/:runId/tool-results: takes the results of calls that the client executes.
// The reply comes as soon as the results are stored; the stream of the run goes on by itself.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { ClientToolResult } from '../../runs/client-tool-service.ts'
import { jsonValue } from '../json-value.ts'
import { callerOf, errorBody, idParam, type Server, type Services, userIdQuery } from '../routes.ts'
import { runStatusWord } from '../views.ts'

/** Higher than the number of calls that a model makes in one step. */
const resultsMax = 1000

const resultField = z
  .object({
    toolCallId: idParam,
    output: jsonValue.optional().describe('The result: any JSON value.'),
    error: z.string().optional().describe('Instead of output: why the call failed. The model reads it.'),
  })
  .describe('The result of one call: output or error.')

const toolResultsBody = z.object({
  results: z.array(resultField).min(1).max(resultsMax),
  userId: z.string().max(200).nullish(),
})

const toolResultsView = z
  .object({
    runId: z.string(),
    status: z.string().describe('The status of the run; it goes on when no call waits any more.'),
    accepted: z.array(z.string()).describe('The toolCallId of each result that is stored.'),
    waiting: z.array(z.string()).describe('The toolCallId of each call that still waits for a result.'),
  })
  .meta({ id: 'ToolResults' })

export function toolResultsRoute(server: Server, services: Services): void {
  server.post(
    '/v1/agent/runs/:runId/tool-results',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Send the results of tool calls that your client executed',
        description:
          'For the calls of clientTools. The calls need not all be answered at once. The same result may be sent again; another one for the same call is 409.',
        params: z.object({ runId: idParam }),
        querystring: userIdQuery,
        body: toolResultsBody,
        response: { 200: toolResultsView, 400: errorBody, 404: errorBody, 409: errorBody, 413: errorBody },
      },
    },
    async (request) => {
      const caller = callerOf(request, services)
      const { runId } = request.params
      const results = request.body.results.map(toResult)
      await services.clientTools.resolve(caller, runId, results)
      const run = await services.runs.get(caller, runId)
      const open = await services.clientTools.openOf(run)
      return {
        runId,
        status: runStatusWord(run.status),
        accepted: results.map(({ toolCallId }) => toolCallId),
        waiting: open.map(({ id, callId }) => callId ?? id),
      }
    },
  )
}

function toResult({ toolCallId, output, error }: z.infer<typeof resultField>): ClientToolResult {
  if ((output === undefined) === (error === undefined)) {
    throw new AppError(
      'invalid_request',
      `The result of the call ${JSON.stringify(toolCallId)} must have either output or error.`,
    )
  }
  return error === undefined ? { toolCallId, output: output ?? null } : { toolCallId, error }
}

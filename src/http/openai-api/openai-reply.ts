// What all replies of the OpenAI APIs have: the shape of an error, an id of the request, and whether
// the client should repeat it. The clients repeat a request after 409, 429 and 5xx by themselves and
// without an idempotency key, which would start a second run.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { openAiError } from '../../dialects/openai-chat/openai-error.ts'
import type { AppError } from '../../errors/app-error.ts'
import type { ErrorBody } from '../error-body.ts'
import type { Services } from '../routes.ts'

export function openAiErrorBody({ code, message, details }: AppError): ErrorBody {
  const param = details?.['param']
  return { error: openAiError(code, message, typeof param === 'string' ? param : issuePath(details)) }
}

/** The field that the first issue of an invalid request is about. */
function issuePath(details: AppError['details']): string | null {
  const issues = details?.['issues']
  const [first] = Array.isArray(issues) ? (issues as { path?: unknown }[]) : []
  return typeof first?.path === 'string' ? first.path : null
}

/** Nothing was started when these are sent. */
const repeatable = new Set([429, 503])

/** The hooks of every route of these APIs. */
export function openAiHooks({ ids }: Pick<Services, 'ids'>) {
  return {
    async onSend(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
      reply.header('x-request-id', requestId(ids))
      const { statusCode } = reply
      const isRetried = statusCode === 409 || statusCode >= 500
      if (isRetried && !repeatable.has(statusCode)) reply.header('x-should-retry', 'false')
    },
  }
}

/** For streams, which do not run hooks. */
export function requestId(ids: Services['ids']): string {
  return `req_${ids()}`
}

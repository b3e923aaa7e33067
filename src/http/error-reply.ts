// Turns every error before the first byte of a reply into status, headers and body. The
// kind of the error decides the status; the API family of the URL decides the shape of the
// body. For an unexpected error the client gets a fixed sentence, and only the log has the
// details.

import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { AppError, toAppError } from '../errors/app-error.ts'
import type { ErrorKind } from '../errors/codes.ts'
import { statusOfErrorCode } from '../errors/status.ts'
import { rpcErrorBody } from './a2a-api/rpc-error.ts'
import { namesUser } from './caller.ts'
import { type ErrorBody, plainBody } from './error-body.ts'
import { openAiErrorBody } from './openai-api/openai-reply.ts'
import { bodyTooLarge } from './request-intake.ts'
import { type ValidationContext, type ValidationIssue, describeIssues, summarise } from './validation-sentence.ts'

/** The Retry-After of errors that have no `details.retryAfterSeconds` of their own. */
const defaultRetryAfterSeconds: Partial<Record<ErrorKind, number>> = { limited: 1, unavailable: 5 }

/** Bounds the reply: a list of 10,000 wrong entries has 10,000 issues. */
const issuesMax = 20

export function httpStatusOf(error: AppError): number {
  return statusOfErrorCode(error.code)
}

/** Body shapes by path prefix; the longest matching prefix is used. A family with its own shape adds a row. */
const bodyShapes: readonly { prefix: string; body: (error: AppError) => ErrorBody }[] = [
  { prefix: '/', body: plainBody },
  { prefix: '/a2a', body: (error) => rpcErrorBody(error) },
  { prefix: '/langgraph', body: (error) => ({ ...plainBody(error), detail: error.message }) },
  { prefix: '/v1/jobs', body: detailBody },
  { prefix: '/v1/temp-skill-runs', body: detailBody },
  { prefix: '/v1/chat/completions', body: openAiErrorBody },
  { prefix: '/v1/responses', body: openAiErrorBody },
  { prefix: '/v1/models', body: openAiErrorBody },
  { prefix: '/api', body: (error) => ({ error: capitalCodes[error.kind], message: error.message }) },
  ...[
    'get_chat_response_stream',
    'get_chat_response',
    'trace',
    'load_conversation',
    'list_conversations',
    'new_conversation',
    'delete_conversation',
    'cancel_stream',
    'like',
    'dislike',
    'text_feedback',
    'get_configs',
    'health',
    'ab',
  ].map((name) => ({ prefix: `/api/${name}`, body: sentenceBody })),
]

/** The chat API: `error` is a sentence, and there are no details, so the sentence lists every issue. */
function sentenceBody(error: AppError): ErrorBody {
  const issues = error.details?.['issues']
  const sentences = Array.isArray(issues) ? issues.map((issue: ValidationIssue) => issue.message) : []
  return { error: sentences.length > 1 ? sentences.join(' ') : error.message, code: error.code }
}

/** The job API: the default body, and `detail` with the code in capitals. */
function detailBody(error: AppError): ErrorBody {
  const detail = { ...error.details, code: error.code.toUpperCase(), message: error.message }
  return { ...plainBody(error), detail }
}

const capitalCodes: Record<ErrorKind, string> = {
  invalid: 'BAD_REQUEST',
  unauthenticated: 'UNAUTHORIZED',
  forbidden: 'UNAUTHORIZED',
  not_found: 'NOT_FOUND',
  conflict: 'BAD_REQUEST',
  too_large: 'PAYLOAD_TOO_LARGE',
  limited: 'RATE_LIMITED',
  upstream: 'INTERNAL_ERROR',
  unavailable: 'INTERNAL_ERROR',
  timeout: 'INTERNAL_ERROR',
  bug: 'INTERNAL_ERROR',
}

export function toErrorBody(error: AppError, url: string): ErrorBody {
  const path = url.split(/[?#]/, 1)[0] ?? ''
  let best = bodyShapes[0]
  for (const shape of bodyShapes) {
    const fits = shape.prefix === '/' || path === shape.prefix || path.startsWith(`${shape.prefix}/`)
    if (fits && shape.prefix.length >= (best?.prefix.length ?? 0)) best = shape
  }
  return (best?.body ?? plainBody)(error)
}

/** The headers of an error; they do not depend on the shape of its body. */
export function errorHeaders(error: AppError): Record<string, string> {
  if (error.kind === 'unauthenticated') return { 'www-authenticate': 'Bearer' }
  const known = error.details?.['retryAfterSeconds']
  const seconds = typeof known === 'number' ? Math.max(1, Math.ceil(known)) : defaultRetryAfterSeconds[error.kind]
  return seconds === undefined || defaultRetryAfterSeconds[error.kind] === undefined
    ? {}
    : { 'retry-after': String(seconds) }
}

/** Turns anything thrown by a handler into an AppError. `request` is needed to tell a missing field from a wrong one. */
export function toRequestError(
  thrown: unknown,
  request: Pick<FastifyRequest, 'body' | 'query' | 'params' | 'headers'>,
): AppError {
  if (thrown instanceof AppError) return thrown
  if (isAborted(thrown)) {
    return new AppError('invalid_request', 'The connection was closed before the whole body had come.', {
      cause: thrown,
    })
  }
  if (!isFastifyError(thrown)) return toAppError(thrown)
  if (thrown.validation !== undefined) {
    const context: ValidationContext = thrown.validationContext ?? 'body'
    const value = context === 'querystring' ? request.query : request[context]
    const issues = describeIssues(thrown.validation.slice(0, issuesMax), context, value)
    const message = summarise(issues, thrown.validation.length)
    return new AppError('invalid_request', message, { details: { issues }, cause: thrown })
  }
  switch (thrown.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return bodyTooLarge(thrown)
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
      return new AppError('invalid_json', 'The body is not valid JSON.', { cause: thrown })
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return new AppError(
        'invalid_json',
        'The body is empty; send a JSON value, or leave out the Content-Type header.',
        { cause: thrown },
      )
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new AppError('unsupported_media_type', 'The Content-Type is not accepted here; send application/json.', {
        cause: thrown,
      })
    case 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE':
      return new AppError('unsupported_media_type', 'The request has no Content-Type; send application/json.', {
        cause: thrown,
      })
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new AppError('invalid_request', 'The body does not have the length that Content-Length announced.', {
        cause: thrown,
      })
    case 'FST_ERR_BAD_URL':
      return new AppError(
        'invalid_request',
        'The URL is not valid: a percent sign must be followed by two hexadecimal digits.',
        { cause: thrown },
      )
    case 'FST_ERR_MAX_PARAM_LENGTH':
    case 'FST_STATIC_FORBIDDEN_PATH':
      // No id of this server is that long, and no file has such a name, so the address cannot exist.
      return new AppError('route_not_found', 'There is nothing at this address.', { cause: thrown })
    default:
      return toAppError(thrown)
  }
}

/** The client disconnected while its body was being read. */
function isAborted(thrown: unknown): boolean {
  return thrown instanceof Error && (thrown as { code?: string }).code === 'ECONNRESET' && thrown.message === 'aborted'
}

/** Errors of other libraries may have a status, too (for example a provider's); only Fastify's describe this request. */
function isFastifyError(thrown: unknown): thrown is FastifyError {
  if (!(thrown instanceof Error)) return false
  const { code, validation } = thrown as Partial<FastifyError>
  return (typeof code === 'string' && code.startsWith('FST_')) || Array.isArray(validation)
}

export function replyWithError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = withUserHint(toRequestError(thrown, request), request)
  logError(error, request)
  for (const [name, value] of Object.entries(errorHeaders(error))) {
    if (!reply.hasHeader(name)) reply.header(name, value)
  }
  reply.code(httpStatusOf(error)).header('content-type', 'application/json; charset=utf-8')
  // Serialised here, because the response schema of the route would drop fields of the error.
  return reply.serializer((body: string) => body).send(JSON.stringify(toErrorBody(error, request.url)))
}

const perUserCodes: ReadonlySet<string> = new Set(['conversation_not_found', 'contact_not_found'])

/** Conversations and contacts are looked up per user, so a request without a user has probably forgotten `userId`. */
function withUserHint(error: AppError, request: Partial<Pick<FastifyRequest, 'login' | 'claimed'>>): AppError {
  if (!perUserCodes.has(error.code) || request.login != null) return error
  if (request.claimed === undefined || namesUser(request.claimed)) return error
  const sentence = `${error.message} The request names no user: add ?userId= to say whose it is.`
  return new AppError(error.code, sentence, { ...(error.details && { details: error.details }), cause: error })
}

export function replyNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = request.url.split('?', 1)[0]
  return replyWithError(new AppError('route_not_found', `There is no ${request.method} ${path} here.`), request, reply)
}

function logError(error: AppError, request: FastifyRequest): void {
  const fields = { err: error.cause ?? error, code: error.code }
  if (error.kind === 'bug') request.log.error(fields, 'request failed')
  else if (error.kind === 'upstream' || error.kind === 'unavailable' || error.kind === 'timeout') {
    request.log.warn(fields, 'request failed')
  } else request.log.debug(fields, 'request refused')
}

/** A Fastify option, because errors in the URL happen before any route or error handler. */
export const frameworkErrors = (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
  void replyWithError(error, request, reply)
}

/** A Fastify instance with any logger and type provider. */
type ReplyHost = {
  setErrorHandler(handler: typeof replyWithError): unknown
  setNotFoundHandler(handler: typeof replyNotFound): unknown
}

export function installErrorReplies(server: ReplyHost): void {
  server.setErrorHandler(replyWithError)
  server.setNotFoundHandler(replyNotFound)
}

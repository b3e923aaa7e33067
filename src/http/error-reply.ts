// Failures before the first byte of a stream → status, headers and body, in one
// place. The kind of an error decides its status; the family of the URL decides
// the shape of its body. An error that nobody foresaw shows a fixed sentence;
// the log has everything.

import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { AppError, toAppError } from '../errors/app-error.ts'
import type { ErrorKind } from '../errors/codes.ts'
import { statusOfErrorCode } from '../errors/status.ts'
import { namesUser } from './caller.ts'
import { type Body, plainBody } from './error-body.ts'
import { bodyTooLarge } from './request-intake.ts'
import { type ValidationContext, type ValidationIssue, describeIssues, summarise } from './validation-sentence.ts'

/** Sent where the error does not know better: `details.retryAfterSeconds`. */
const retryAfterSeconds: Partial<Record<ErrorKind, number>> = { limited: 1, unavailable: 5 }

/** A list of 10,000 wrong entries has 10,000 issues; nobody reads more than a few. */
const issuesMax = 20

export function statusOf(error: AppError): number {
  return statusOfErrorCode(error.code)
}

/** Body shapes by the beginning of the path; the longest that fits counts. A family with a shape of its own adds a row. */
const bodyShapes: readonly { prefix: string; body: (error: AppError) => Body }[] = [
  { prefix: '/', body: plainBody },
  { prefix: '/v1/jobs', body: detailBody },
  { prefix: '/v1/temp-skill-runs', body: detailBody },
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

/** The chat API: the sentence itself is the error, and has no details behind it; so it names everything that is wrong. */
function sentenceBody(error: AppError): Body {
  const issues = error.details?.['issues']
  const sentences = Array.isArray(issues) ? issues.map((issue: ValidationIssue) => issue.message) : []
  return { error: sentences.length > 1 ? sentences.join(' ') : error.message, code: error.code }
}

/** The job API: `detail`, with the code in its capitals, beside the words of the whole family. */
function detailBody(error: AppError): Body {
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

export function errorBody(error: AppError, url: string): Body {
  const path = url.split(/[?#]/, 1)[0] ?? ''
  let best = bodyShapes[0]
  for (const shape of bodyShapes) {
    const fits = shape.prefix === '/' || path === shape.prefix || path.startsWith(`${shape.prefix}/`)
    if (fits && shape.prefix.length >= (best?.prefix.length ?? 0)) best = shape
  }
  return (best?.body ?? plainBody)(error)
}

/** Headers that belong to an error, whatever the shape of its body. */
export function errorHeaders(error: AppError): Record<string, string> {
  if (error.kind === 'unauthenticated') return { 'www-authenticate': 'Bearer' }
  const known = error.details?.['retryAfterSeconds']
  const seconds = typeof known === 'number' ? Math.max(1, Math.ceil(known)) : retryAfterSeconds[error.kind]
  return seconds === undefined || retryAfterSeconds[error.kind] === undefined ? {} : { 'retry-after': String(seconds) }
}

/** Anything thrown while a request was handled → an AppError. `request` tells a missing field from a wrong one. */
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
      // No id of ours is that long, so there is no such thing.
      return new AppError('route_not_found', 'There is nothing at this address.', { cause: thrown })
    default:
      return toAppError(thrown)
  }
}

/** The client hung up while its body was read. */
function isAborted(thrown: unknown): boolean {
  return thrown instanceof Error && (thrown as { code?: string }).code === 'ECONNRESET' && thrown.message === 'aborted'
}

/** Errors of other libraries may carry a status too (that of a provider, say); only Fastify's own are about this request. */
function isFastifyError(thrown: unknown): thrown is FastifyError {
  if (!(thrown instanceof Error)) return false
  const { code, validation } = thrown as Partial<FastifyError>
  return (typeof code === 'string' && code.startsWith('FST_')) || Array.isArray(validation)
}

export function replyWithError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = askForUser(toRequestError(thrown, request), request)
  logError(error, request)
  for (const [name, value] of Object.entries(errorHeaders(error))) {
    if (!reply.hasHeader(name)) reply.header(name, value)
  }
  reply.code(statusOf(error)).header('content-type', 'application/json; charset=utf-8')
  // As text: the route's response schema describes its answers, and must not drop fields of an error.
  return reply.serializer((body: string) => body).send(JSON.stringify(errorBody(error, request.url)))
}

/** Conversations are looked for among those of the caller; a request that names nobody has most likely forgotten to. */
function askForUser(error: AppError, request: Partial<Pick<FastifyRequest, 'login' | 'claimed'>>): AppError {
  if (error.code !== 'conversation_not_found' || request.login != null) return error
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

/** Goes into Fastify's options: errors in the URL itself come before any route and any error handler. */
export const frameworkErrors = (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
  void replyWithError(error, request, reply)
}

/** A Fastify instance, whatever its logger and type provider. */
type ReplyHost = {
  setErrorHandler(handler: typeof replyWithError): unknown
  setNotFoundHandler(handler: typeof replyNotFound): unknown
}

export function installErrorReplies(server: ReplyHost): void {
  server.setErrorHandler(replyWithError)
  server.setNotFoundHandler(replyNotFound)
}

// application/json → a value. The one parser of all routes: it refuses what is too deep
// or has too many values before anything is built, and says where a text is not JSON.

import { AppError } from '../errors/app-error.ts'
import { findJsonError } from './json-error.ts'
import { checkJsonSize } from './json-limits.ts'
import type { Server } from './routes.ts'

export function acceptJson(server: Server): void {
  const parse = server.getDefaultJsonParser('error', 'error')
  // Fastify also takes plain text, which no route of ours does: that is 415, not a body of the wrong shape.
  server.removeContentTypeParser(['application/json', 'text/plain'])
  server.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    const text = body as string
    // Clients that always send a content type also send it with an empty body; that is no body.
    if (text === '') {
      done(null, undefined)
      return
    }
    try {
      checkJsonSize(text)
    } catch (error) {
      done(error as Error)
      return
    }
    void parse(request, text, (error, value) => {
      if (error === null) done(null, value)
      else done(invalidJson(text, error))
    })
  })
}

function invalidJson(body: string, cause: Error): AppError {
  // A byte order mark is left out by the parser, too.
  const text = body.startsWith('\uFEFF') ? body.slice(1) : body
  const error = findJsonError(text)
  if (error === null) {
    return new AppError(
      'invalid_json',
      'The body has a field named "__proto__", or "constructor" with "prototype" in it; send it without.',
      { cause },
    )
  }
  const { line, column, offset, expected, found } = error
  return new AppError(
    'invalid_json',
    `The body is not valid JSON: line ${line}, column ${column}: expected ${expected}, found ${found}.`,
    { details: { line, column, offset, expected }, cause },
  )
}

// Parses application/json for all routes. A body that is too deep or has too many values is
// refused before it is parsed. The error for invalid JSON has the line and column.

import { isUtf8 } from 'node:buffer'
import { AppError } from '../errors/app-error.ts'
import { findJsonError } from './json-error.ts'
import { checkJsonSize } from './json-limits.ts'
import type { Server } from './routes.ts'

export function acceptJson(server: Server): void {
  const parse = server.getDefaultJsonParser('error', 'error')
  // Fastify accepts text/plain by default. No route here does, so the reply must be 415.
  server.removeContentTypeParser(['application/json', 'text/plain'])
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    // Decoding would replace what it cannot read, and the message of a user would be stored with these gaps.
    if (!isUtf8(body as Buffer)) {
      done(new AppError('invalid_json', 'The body is not UTF-8, the encoding of JSON; send it in UTF-8.'))
      return
    }
    const text = (body as Buffer).toString()
    // Some clients send the content type even without a body, so an empty body counts as no body.
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
  // The parser ignores a byte order mark, so the position must not count it.
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

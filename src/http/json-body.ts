// Parses application/json for all routes. A body that is too deep or has too many values is
// refused before it is parsed. The error for invalid JSON has the line and column. A number such as
// 1e999 is valid JSON, but is read as infinity and would be written as null, so it is refused.

import { isUtf8 } from 'node:buffer'
import { AppError } from '../errors/app-error.ts'
import { beginningOf } from '../kit/cut-text.ts'
import { findJsonError } from './json-error.ts'
import { checkJsonSize } from './json-limits.ts'
import type { Server } from './routes.ts'

const pathCharsMax = 200

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
      if (error !== null) {
        done(invalidJson(text, error))
        return
      }
      const path = infiniteNumberIn(value)
      if (path === undefined) done(null, value)
      else done(tooLarge(path))
    })
  })
}

/** The path of the first number that is infinite; undefined if there is none. The depth is limited already. */
function infiniteNumberIn(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : ''
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const inner = infiniteNumberIn(value[index])
      if (inner !== undefined) return joined(String(index), inner)
    }
    return undefined
  }
  for (const name in value) {
    const inner = infiniteNumberIn((value as Record<string, unknown>)[name])
    if (inner !== undefined) return joined(name, inner)
  }
  return undefined
}

function joined(name: string, inner: string): string {
  return inner === '' ? name : `${name}.${inner}`
}

function tooLarge(path: string): AppError {
  const where = path === '' ? '' : `${beginningOf(path, pathCharsMax)}: `
  return new AppError('invalid_json', `${where}The number is too large; at most about 1.8e308 is possible.`)
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

// Shared by the routes of the chat API: the owner of a request, and the field types that
// its clients send.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { callerOf, type Services } from '../routes.ts'

const clientIdMissing = 'client_id missing: send client_id in the body or the query, to say whose it is.'

/** The owner: the user of the login, else the client id. Throws `client_id_missing` if the request has neither. */
export function clientOf(request: FastifyRequest, services: Pick<Services, 'settings'>): string {
  const caller = callerOf(request, services)
  // In other families such a request is `anonymous`. The clients of this API always have an id, so it is a mistake.
  if (!caller.named) throw new AppError('client_id_missing', clientIdMissing)
  return caller.userId
}

const clientField = z.string().max(200)

export const clientQuery = z.object({
  client_id: clientField.optional().describe('The id of the client; required if the request has no login.'),
  userId: clientField.optional(),
})

/** Fields of every body in this API. */
export const clientFields = {
  client_id: clientField.nullish().describe('The id of the client; required if the request has no login.'),
  userId: clientField.nullish(),
}

/** Ids are opaque strings. Older clients send numbers. */
export const idField = z.union([z.string().trim().min(1).max(200), z.number().int().nonnegative()]).transform(String)

/** Null and blank text mean "not given". */
export const optionalIdField = z
  .union([z.string().max(200), z.number().int().nonnegative()])
  .nullish()
  .transform((value) => (value == null || String(value).trim() === '' ? undefined : String(value).trim()))

/** Also accepts text, because forms and query strings have no booleans. */
export const optionalFlag = z
  .union([z.boolean(), z.enum(['true', 'false'])])
  .nullish()
  .transform((value) => (value == null ? undefined : value === true || value === 'true'))

export const sentenceBody = z
  .object({ error: z.string(), code: z.string() })
  .meta({ id: 'ChatError', description: 'An error: a sentence for people, and a stable code for programs.' })

// What the routes of the chat API share: whose request it is, and ids as its clients
// write them.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { callerOf, type Services } from '../routes.ts'

const clientIdMissing = 'client_id missing: send client_id in the body or the query, to say whose it is.'

/** Who owns what the request makes or asks for: the login, else the client. */
export function clientOf(request: FastifyRequest, services: Pick<Services, 'settings'>): string {
  const caller = callerOf(request, services)
  // A request that names no user is `anonymous` elsewhere; the clients of this API always have an id.
  if (!caller.named) throw new AppError('client_id_missing', clientIdMissing)
  return caller.userId
}

const clientField = z.string().max(200)

export const clientQuery = z.object({
  client_id: clientField.optional().describe('Whose it is, where nobody is logged in.'),
  userId: clientField.optional(),
})

/** Fields that every body has. */
export const clientFields = {
  client_id: clientField.nullish().describe('Whose it is, where nobody is logged in.'),
  userId: clientField.nullish(),
}

/** Ids are opaque strings; older clients count, and send numbers. */
export const idField = z.union([z.string().trim().min(1).max(200), z.number().int().nonnegative()]).transform(String)

/** Null, and a blank text, mean "not given". */
export const optionalIdField = z
  .union([z.string().max(200), z.number().int().nonnegative()])
  .nullish()
  .transform((value) => (value == null || String(value).trim() === '' ? undefined : String(value).trim()))

/** Browsers' forms and query strings know no booleans. */
export const optionalFlag = z
  .union([z.boolean(), z.enum(['true', 'false'])])
  .nullish()
  .transform((value) => (value == null ? undefined : value === true || value === 'true'))

export const sentenceBody = z
  .object({ error: z.string(), code: z.string() })
  .meta({ id: 'ChatError', description: 'What went wrong: a sentence for people, and a stable code.' })

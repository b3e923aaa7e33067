// For routes that wait for a run and answer with its result as JSON.

import type { FastifyReply } from 'fastify'
import type { Streams } from './stream-reply.ts'

/** Aborted when the client has left or the server shuts down: the result is not awaited any more. */
export function requestSignal(reply: FastifyReply, { ending }: Pick<Streams, 'ending'>): AbortSignal {
  const gone = new AbortController()
  if (reply.raw.destroyed) gone.abort()
  reply.raw.on('close', () => gone.abort())
  return AbortSignal.any([gone.signal, ending])
}

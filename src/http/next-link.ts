// Adds `Link: <…>; rel="next"` to a list that has more pages, so that the body of the list
// needs no extra field. The address is a path without a host, so that it does not depend on
// the name under which clients reach the server, and it keeps all other query parameters.

import type { FastifyReply, FastifyRequest } from 'fastify'

/** `changes` are the query parameters that differ on the next page; `path` is needed only if its path differs. */
export function linkNext(
  request: FastifyRequest,
  reply: FastifyReply,
  changes: Record<string, string | number>,
  path?: string,
): void {
  // The host is a placeholder; only the path and the query are used.
  const url = new URL(request.url, 'http://localhost')
  for (const [name, value] of Object.entries(changes)) url.searchParams.set(name, String(value))
  const link = `<${path ?? url.pathname}${url.search}>; rel="next"`
  const before = reply.getHeader('link')
  reply.header('link', before === undefined ? link : `${link}, ${String(before)}`)
}

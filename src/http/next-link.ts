// `Link: <…>; rel="next"`: how a list says that it was cut, and where it goes on. The
// bodies of lists stay what they are. The address is relative, so that it holds behind
// any proxy, and keeps every other parameter of the query.

import type { FastifyReply, FastifyRequest } from 'fastify'

/** `changes` are the query parameters of the next page; `path` if that is at another address. */
export function linkNext(
  request: FastifyRequest,
  reply: FastifyReply,
  changes: Record<string, string | number>,
  path?: string,
): void {
  // The host is thrown away again: only the path and the query are used.
  const url = new URL(request.url, 'http://localhost')
  for (const [name, value] of Object.entries(changes)) url.searchParams.set(name, String(value))
  const link = `<${path ?? url.pathname}${url.search}>; rel="next"`
  const before = reply.getHeader('link')
  reply.header('link', before === undefined ? link : `${link}, ${String(before)}`)
}

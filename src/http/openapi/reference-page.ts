// The API reference page at /docs. It needs no other host: script and styles come from an
// npm package, and the content security policy forbids all other hosts. The script is
// several megabytes, so it is loaded on the first visit and not at start-up.

import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Server } from '../routes.ts'

const prefix = '/docs'

/** Turns off every feature that would call another host or that this server does not support. */
const configuration = {
  url: '/openapi.json',
  pageTitle: 'Polylog API',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never' as const,
}

export function referencePage(server: Server): void {
  let loaded: Promise<FastifyInstance> | undefined
  const serve = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    loaded ??= loadReference()
    const { statusCode, headers, body } = await (await loaded).inject({ method: 'GET', url: request.url })
    const type = headers['content-type'] ?? 'text/plain'
    if (headers.location !== undefined) return reply.redirect(headers.location, statusCode)
    if (type.startsWith('text/html')) reply.header('content-security-policy', policyFor(body))
    else reply.header('cache-control', 'public, max-age=3600')
    return reply.code(statusCode).header('content-type', type).send(body)
  }
  for (const path of [prefix, `${prefix}/`, `${prefix}/js/scalar.js`]) {
    server.get(path, { schema: { hide: true } }, serve)
  }
}

async function loadReference(): Promise<FastifyInstance> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const pages = Fastify()
  await pages.register(reference, { routePrefix: prefix, configuration })
  return pages
}

/** Allows the inline scripts by their hashes. The page is the same for every visitor, so a nonce would add no security. */
function policyFor(page: string): string {
  const hashes = [...page.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([^]*?)<\/script>/g)].map(
    ([, script = '']) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`,
  )
  return [
    "default-src 'none'",
    `script-src 'self' ${hashes.join(' ')}`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

// The API reference page at /docs. It needs no other host: script and styles come from an
// npm package, and the content security policy forbids all other hosts. The script is
// several megabytes, so it is loaded on the first visit and not at start-up.

import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'
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

type Page = { status: number; headers: Record<string, string>; body: Buffer }

export function referencePage(server: Server): void {
  let reference: Promise<FastifyInstance> | undefined
  for (const path of [prefix, `${prefix}/`, `${prefix}/js/scalar.js`]) {
    // Kept, because anybody may ask for the script as often as they like: a copy for each request would fill the memory.
    let page: Promise<Page> | undefined
    server.get(path, { schema: { hide: true } }, async (_request, reply) => {
      reference ??= loadReference()
      page ??= reference.then((pages) => pageAt(path, pages))
      const { status, headers, body } = await page
      return await reply.code(status).headers(headers).send(body)
    })
  }
}

async function pageAt(path: string, pages: FastifyInstance): Promise<Page> {
  const { statusCode: status, headers, rawPayload: body } = await pages.inject({ method: 'GET', url: path })
  const { location, 'content-type': type = 'text/plain' } = headers
  if (location !== undefined) return { status, headers: { location }, body }
  const more = type.startsWith('text/html')
    ? { 'content-security-policy': policyFor(body.toString()) }
    : { 'cache-control': 'public, max-age=3600' }
  return { status, headers: { 'content-type': type, ...more }, body }
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

// The web console: static files that `scripts/ensure-console.ts` has built. The page itself is public, since it holds no
// data; what it shows comes from the API, with the user's login. Its content security policy allows files and requests of
// this server only, no inline script, and HTML only through the sanitizer of the console.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fastifyStatic from '@fastify/static'
import type { FastifyReply } from 'fastify'
import { replyNotFound, replyWithError } from '../error-reply.ts'
import type { Server } from '../routes.ts'
import { consolePaths } from './console-paths.ts'

/** The same in a clone and in the package. */
const builtFiles = fileURLToPath(new URL('../../../console/dist/', import.meta.url))

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types dompurify',
].join('; ')

const notBuilt =
  'The console is not built. In a clone, npm start builds it; npm run build -- console says why it cannot. The API works without it: see /docs.\n'

export async function consoleRoutes(server: Server, { folder = builtFiles }: { folder?: string } = {}): Promise<void> {
  await server.register(async (scope: Server) => {
    scope.setErrorHandler((error, request, reply) =>
      isRefusal(error) ? replyNotFound(request, reply) : replyWithError(error, request, reply),
    )
    await scope.register(fastifyStatic, {
      root: join(folder, 'assets'),
      prefix: '/assets/',
      schemaHide: true,
      index: false,
      // The name of a file changes with its content.
      immutable: true,
      maxAge: '365d',
      preCompressed: true,
      // The files are small.
      acceptRanges: false,
    })
    pageRoutes(scope, folder)
  })
}

/** An address that is no file, or a condition that no file meets. Without this it would be answered as our own failure. */
function isRefusal(error: unknown): boolean {
  const { statusCode } = error as { statusCode?: unknown }
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500
}

function pageRoutes(server: Server, folder: string): void {
  const page = async (_request: unknown, reply: FastifyReply): Promise<FastifyReply> => {
    reply.header('content-security-policy', policy).header('cache-control', 'no-cache')
    // Looked up at each request, because a build may end after the server has started.
    if (!existsSync(join(folder, 'index.html'))) {
      return reply.code(503).header('content-type', 'text/plain; charset=utf-8').send(notBuilt)
    }
    return reply.sendFile('index.html', folder, { cacheControl: false, acceptRanges: false })
  }
  for (const path of consolePaths) server.get(path, { schema: { hide: true } }, page)
}

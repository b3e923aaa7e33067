// Builds the Fastify server from the services; the caller makes it listen. Everything that
// applies to every request is set up here: authentication, limits, headers, errors.

import Fastify, { type FastifyBaseLogger, LogController, type FastifyRequest, type RouteOptions } from 'fastify'
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import { AppError } from '../errors/app-error.ts'
import { type RequestActivity, withActivity } from '../kit/activity.ts'
import { parseTraceparent, traceparentText } from '../kit/tracer.ts'
import { publicCardPaths } from './a2a-api/a2a-routes.ts'
import type { BrowserGuard } from './browser-guard.ts'
import { type Authenticator, claimsOf } from './caller.ts'
import { consoleAssets, consolePaths } from './console/console-paths.ts'
import { frameworkErrors, installErrorReplies } from './error-reply.ts'
import { callerKey } from './caller-key.ts'
import { FailedLogins } from './failed-logins.ts'
import { answerClientError, createHttpServer, type SocketLimits } from './http-server.ts'
import { acceptJson } from './json-body.ts'
import { type RateCounter, rateLimitStore, RateWindows, rateWindowMs } from './rate-windows.ts'
import { drainBytesMax, drainMs, installIntake } from './request-intake.ts'
import { registerRoutes } from './register-routes.ts'
import { RequestLog } from './request-log.ts'
import { RequestPacer } from './request-pacer.ts'
import type { Server, Services } from './routes.ts'
import { setSecurityHeaders } from './security-headers.ts'
import { type TrustProxy, trustedProxies } from './trust-proxy.ts'
import { UnreadAnswers } from './unread-answers.ts'

export type ServerOptions = {
  services: Services
  authenticator: Authenticator
  log: FastifyBaseLogger
  version: string
  jsonBodyBytes: number
  sockets: SocketLimits & { bodyIdleMs: number }
  rateLimitPerMinute: number
  /** Counts over all nodes; absent if this server is alone. */
  sharedRates?: RateCounter
  corsOrigins: readonly string[]
  trustProxy: TrustProxy
  browserGuard: BrowserGuard
  /** Whether the web console is served. */
  console: boolean
}

/** Served without a login even in `required` mode, because they reveal nothing about any user. */
const publicPaths = new Set([
  '/v1/health',
  '/v1/ready',
  '/api/health',
  '/health',
  '/openapi.json',
  '/docs',
  '/docs/',
  '/docs/js/scalar.js',
  ...publicCardPaths,
  ...consolePaths,
  consoleAssets,
])

export async function buildServer(options: ServerOptions): Promise<Server> {
  const { services, authenticator } = options
  const server: Server = Fastify({
    loggerInstance: options.log,
    childLoggerFactory: (log, bindings, childOptions) =>
      // Nearly always empty, and open streams would keep it.
      new RequestLog(log, bindings, Object.keys(childOptions).length === 0 ? undefined : childOptions),
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: options.jsonBodyBytes,
    trustProxy: trustedProxies(options.trustProxy),
    frameworkErrors,
    serverFactory: (listener) => createHttpServer(listener, options.sockets),
    clientErrorHandler: answerClientError,
    // Close only idle connections: app/lifecycle.ts ends the streams before, and closes connections that remain after.
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 512 },
    // Given here too, because otherwise Fastify loads its own compilers, with ajv, and then does not use them. Its types
    // know only compilers of JSON Schema.
    schemaController: {
      compilersFactory: {
        buildValidator: () => validatorCompiler as never,
        buildSerializer: () => serializerCompiler as never,
      },
    },
  }).withTypeProvider<ZodTypeProvider>()
  server.setValidatorCompiler(validatorCompiler)
  server.setSerializerCompiler(serializerCompiler)
  installErrorReplies(server)
  acceptJson(server)
  installIntake(server, services.clock, { bodyIdleMs: options.sockets.bodyIdleMs, drainBytesMax, drainMs })

  const pacer = new RequestPacer()
  server.addHook('onRequest', (_request, _reply, done) => pacer.enter(done))
  // Tells the watchdog which route is running. Set twice: Fastify continues after the body in the async context of the
  // socket, which does not have the activity.
  server.decorateRequest('activity')
  server.addHook('onRequest', (request, _reply, done) => {
    request.activity = activityOf(request)
    withActivity(request.activity, done)
  })
  server.addHook('preValidation', (request, _reply, done) => withActivity(request.activity, done))
  server.addHook('onRequest', (request, _reply, done) => {
    const isForwarded = request.headers['x-forwarded-host'] !== undefined
    options.browserGuard.checkHost(request.raw, isForwarded ? request.host : undefined)
    options.browserGuard.checkOrigin(request)
    done()
  })
  server.addHook('onRequest', setSecurityHeaders)
  if (options.corsOrigins.length > 0) await allowOrigins(server, options.corsOrigins)
  const routes: RouteOptions[] = []
  server.addHook('onRoute', (route) => void routes.push(route))

  const rates = options.sharedRates
  const failedLogins = new FailedLogins(services.clock, options.rateLimitPerMinute, rates)
  server.decorateRequest('login', null)
  server.decorateRequest('claimed')
  server.addHook('onRequest', (request, _reply, done) => {
    checkQuery(request.query)
    done()
  })
  server.addHook('onRequest', async (request) => {
    if (publicPaths.has(request.routeOptions.url ?? '')) return
    failedLogins.refuseTooMany(request.ip)
    try {
      request.login = await authenticator.authenticate(request.headers)
    } catch (error) {
      if (error instanceof AppError && error.kind === 'unauthenticated') await failedLogins.count(request.ip)
      throw error
    }
  })
  server.addHook('preValidation', (request, _reply, done) => {
    request.claimed = claimsOf(request.body, request.query)
    done()
  })
  if (options.rateLimitPerMinute > 0) {
    const { default: rateLimit } = await import('@fastify/rate-limit')
    await server.register(rateLimit, {
      max: options.rateLimitPerMinute,
      store: rateLimitStore(rates ?? new RateWindows(services.clock)),
      timeWindow: rateWindowMs,
      global: false,
      allowList: (request) => publicPaths.has(request.routeOptions.url ?? ''),
      keyGenerator: callerKey,
      errorResponseBuilder: (_request, context) =>
        new AppError(
          'rate_limited',
          `More than ${context.max} requests in a minute. Wait ${Math.ceil(context.ttl / 1000)} s.`,
          {
            details: { retryAfterSeconds: Math.ceil(context.ttl / 1000) },
          },
        ),
    })
    // Not for each route: a request counts even if there is nothing at its address, or its body is refused.
    server.addHook('onRequest', server.rateLimit())
  }
  const unread = new UnreadAnswers(unreadUploads * services.settings.uploadBytes)
  server.addHook('onSend', async (request, reply, payload) => {
    // All clients share the bytes of the public pages.
    if (!publicPaths.has(request.routeOptions.url ?? '')) unread.hold(callerKey(request), payload, reply.raw)
    return payload
  })
  server.addHook('onResponse', (request, reply, done) => {
    services.metrics.requestDone({
      method: request.method,
      route: request.routeOptions.url,
      status: reply.statusCode,
      seconds: reply.elapsedTime / 1000,
    })
    done()
  })

  await registerRoutes(server, services, {
    version: options.version,
    withConsole: options.console,
    apiDocument: async () => {
      const { createApiDocument } = await import('./openapi/api-document.ts')
      const loginRequired = services.settings.authMode === 'required'
      return await createApiDocument(routes, { version: options.version, publicPaths, loginRequired })
    },
  })
  return server
}

/** How many files of the largest size the unread answers of one caller may have together. */
const unreadUploads = 8

async function allowOrigins(server: Server, origins: readonly string[]): Promise<void> {
  const { default: cors } = await import('@fastify/cors')
  await server.register(cors, {
    origin: origins.includes('*') ? true : [...origins],
    methods: ['GET', 'POST', 'PATCH', 'DELETE'],
    exposedHeaders: [
      'x-run-id',
      'x-conversation-id',
      'x-trace-id',
      'x-comparison-id',
      'x-trace-id-a',
      'x-trace-id-b',
      'x-cached',
      'content-disposition',
      'retry-after',
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
      // The clients of OpenAI read these; without the first they would repeat a request whose run has failed.
      'x-should-retry',
      'x-request-id',
      'link',
      'mcp-session-id',
      'content-location',
      'location',
      'x-pagination-next',
      // Proxies add them; the stream doctor names the proxy.
      'content-encoding',
      'server',
      'via',
      'cf-ray',
    ],
    maxAge: 600,
    // An OPTIONS request of something else than a browser gets the same answer, and not an error that is no JSON.
    strictPreflight: false,
  })
}

/** A safety limit: no route has more than ten parameters. */
const queryParametersMax = 100

function checkQuery(query: unknown): void {
  if (Object.keys(query as object).length > queryParametersMax) {
    throw new AppError('invalid_request', `The query has more than ${queryParametersMax} parameters; send fewer.`)
  }
}

/** What the watchdog is told about the request. */
function activityOf(request: FastifyRequest): RequestActivity {
  const traceparent = traceparentOf(request)
  const route = `${request.method} ${request.routeOptions.url ?? '(no route)'}`
  return traceparent === undefined ? { route } : { route, traceparent }
}

/** The trace context of the client; undefined if it has none, or if it cannot be read. */
function traceparentOf({ headers }: FastifyRequest): string | undefined {
  const given = headers['traceparent']
  if (given === undefined) return undefined
  const context = parseTraceparent(Array.isArray(given) ? given[0] : given)
  return context === undefined ? undefined : traceparentText(context)
}

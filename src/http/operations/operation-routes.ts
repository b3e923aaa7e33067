// Health, metrics, the lists of tools and model providers, and the OpenAPI description.

import { z } from 'zod'
import { isoTime } from '../../kit/clock.ts'
import { errorBody, type Server, type Services } from '../routes.ts'

export function operationRoutes(
  server: Server,
  services: Services,
  { version, apiDocument }: { version: string; apiDocument: () => Promise<object> },
): void {
  const { health, readiness, tools, models, metrics, clock, engineStates } = services

  server.get(
    '/v1/health',
    {
      schema: {
        tags: ['Operations'],
        summary: 'Does the server work?',
        response: {
          200: z.object({
            status: z.string(),
            timestamp: z.string(),
            timestampMs: z.number(),
            version: z.string(),
            model: z.string(),
            providers: z
              .array(z.object({ provider: z.string(), ready: z.boolean() }))
              .describe('Ready means configured; whether a provider answers is seen only in runs.'),
            engines: z
              .array(z.object({ name: z.string(), state: z.enum(['available', 'paused', 'trial']) }))
              .describe('The state of each engine’s circuit breaker; closed means that the engine is used.'),
          }),
        },
      },
    },
    async () => {
      await health.check()
      const now = clock.now()
      return {
        status: 'ok',
        timestamp: isoTime(now),
        timestampMs: now,
        version,
        model: models.defaultModel,
        providers: models.list().map(({ provider, ready }) => ({ provider, ready })),
        engines: engineStates(),
      }
    },
  )

  server.get(
    '/v1/ready',
    {
      schema: {
        tags: ['Operations'],
        summary: 'Can the server take work? For load balancers',
        description:
          'Not ready: it is stopping (shutting_down), the database does not answer (store_unavailable), or its file is damaged (store_damaged).',
        response: { 200: z.object({ status: z.literal('ready'), version: z.string() }), 503: errorBody },
      },
    },
    async () => {
      await readiness.check()
      return { status: 'ready' as const, version }
    },
  )

  server.get(
    '/v1/tools',
    {
      schema: {
        tags: ['Operations'],
        summary: 'All tools; for a tool that cannot be used, the reason',
        response: {
          200: z.array(
            z.object({
              name: z.string(),
              description: z.string(),
              effect: z.enum(['read', 'idempotent', 'unsafe']),
              available: z.boolean(),
              reason: z.string().nullable(),
              source: z.string(),
              audience: z.string().optional().describe('Which runs can use the tool; absent if all can.'),
            }),
          ),
        },
      },
    },
    async () => tools.list(),
  )

  server.get(
    '/v1/providers',
    {
      schema: {
        tags: ['Operations'],
        summary: 'The model providers, and the default model',
        response: {
          200: z.object({
            defaultModel: z.string(),
            providers: z.array(z.object({ provider: z.string(), ready: z.boolean(), reason: z.string().nullable() })),
          }),
        },
      },
    },
    async () => ({ defaultModel: models.defaultModel, providers: models.list() }),
  )

  server.get(
    '/metrics',
    { schema: { tags: ['Operations'], summary: 'Metrics for Prometheus' } },
    async (_request, reply) => reply.header('content-type', metrics.contentType).send(await metrics.text()),
  )

  let openApi: Promise<Buffer> | undefined
  server.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    openApi ??= apiDocument()
      .then((document) => Buffer.from(JSON.stringify(document)))
      .catch((error: unknown) => {
        // The next request tries again.
        openApi = undefined
        throw error
      })
    return await reply.header('content-type', 'application/json; charset=utf-8').send(await openApi)
  })
}

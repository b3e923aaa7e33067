// The configurations that a client can choose from, and the health check of the chat API.

import { z } from 'zod'
import type { Server, Services } from '../routes.ts'

export function configRoutes(server: Server, services: Services): void {
  const { configs, health, settings } = services

  server.get(
    '/api/get_configs',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'The model configurations to choose from',
        response: {
          200: z.object({
            options: z.array(z.object({ id: z.string(), name: z.string(), description: z.string() })),
            client_timeout_seconds: z.number(),
            client_timeout_ms: z.number(),
          }),
        },
      },
    },
    async () => ({
      options: configs.list().map(({ name, description }) => ({ id: name, name, description: description ?? '' })),
      client_timeout_seconds: settings.clientTimeoutMs / 1000,
      client_timeout_ms: settings.clientTimeoutMs,
    }),
  )

  server.get(
    '/api/health',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Is the server ready?',
        response: { 200: z.object({ status: z.literal('OK') }) },
      },
    },
    async () => {
      await health.check()
      return { status: 'OK' as const }
    },
  )
}

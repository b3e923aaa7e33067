// Makes the OpenAPI document of the routes. The server imports this file when the document is requested for the first
// time, because its libraries would cost every start time and memory, and most servers are never asked. By then the
// server is listening and takes no more plugins, so a second one, which never listens, gets the same routes and the plugin.

import swagger from '@fastify/swagger'
import Fastify, { type RouteOptions } from 'fastify'
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod'
import { type ApiDocument, describeApi, type DescribeOptions } from './describe-api.ts'

export type ApiDocumentOptions = DescribeOptions & { version: string }

/** `routes` are those that the server has registered, in this order. */
export async function createApiDocument(
  routes: readonly RouteOptions[],
  { version, ...options }: ApiDocumentOptions,
): Promise<object> {
  const described = Fastify({ exposeHeadRoutes: false })
  // Schemas are only described here; no request is checked.
  described.setValidatorCompiler(() => () => true)
  described.setSerializerCompiler(() => () => '')
  await described.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Polylog',
        version,
        license: { name: 'MIT', identifier: 'MIT' },
        description:
          'Runs AI agents: one durable journal per run, read in any wire dialect, live, resumed or replayed.',
      },
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer' },
          apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        },
      },
    },
    transform: jsonSchemaTransform,
    transformObject: (document) => describeApi(jsonSchemaTransformObject(document) as ApiDocument, options),
  })
  for (const { method, url, schema, config } of routes) {
    described.route({
      method,
      url,
      ...(schema === undefined ? {} : { schema }),
      ...(config === undefined ? {} : { config }),
      handler: async () => undefined,
    })
  }
  await described.ready()
  return described.swagger()
}

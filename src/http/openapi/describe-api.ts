// Completes the OpenAPI document that is generated from the routes' schemas: operation ids,
// examples, the media types of streams, security, and named schemas. Pure.

import { operations, type OperationFacts } from './operations.ts'
import { tidySchemas } from './schemas.ts'
import { mediaTypesOf } from './streams.ts'

type Parameter = { name: string; in: string }
type Operation = {
  operationId?: string
  summary?: string
  security?: Record<string, never[]>[]
  parameters?: Parameter[]
  requestBody?: { content?: Record<string, { schema?: unknown; example?: unknown }> }
  responses?: Record<string, { description?: string; content?: unknown }>
}
/** The parts of an OpenAPI document that this file changes. */
export type ApiDocument = {
  paths?: Record<string, Record<string, Operation>>
  components?: Record<string, unknown>
}

export type DescribeOptions = {
  /** Paths that need no login in any mode. */
  publicPaths: ReadonlySet<string>
  loginRequired: boolean
}

const tags = [
  { name: 'Agent', description: 'Chat with an agent: start runs, follow them, cancel them, read what happened.' },
  { name: 'AI SDK', description: 'The routes that useChat of the AI SDK needs: send, resume and stop.' },
  { name: 'Conversations', description: 'Runs that share a history.' },
  { name: 'Usage', description: 'Token counts, cost, and the models that can be used.' },
  { name: 'Tool confirmations', description: 'Tool calls that wait for a person.' },
  { name: 'Chat API', description: 'Streams of plain chunks, traces, feedback and comparisons, for web chats.' },
  { name: 'Jobs', description: 'Runs of a skill, answered in JSON that fits its schema.' },
  { name: 'Session API', description: 'Agents that work on files in a directory of their own.' },
  { name: 'Operations', description: 'Health, metrics, tools and models.' },
]

export function describeApi<T extends ApiDocument>(document: T, options: DescribeOptions): T {
  const paths: Record<string, Record<string, Operation>> = {}
  const used = new Set<string>()
  for (const [path, methods] of Object.entries(document.paths ?? {})) {
    // A wildcard has no name in Fastify. In this API it is always the path of a file.
    const named = path.replace('{*}', '{path}')
    paths[named] = Object.fromEntries(
      Object.entries(methods).map(([method, operation]) => {
        const facts = operations[`${method.toUpperCase()} ${named}`]
        for (const tag of (operation as { tags?: string[] }).tags ?? []) used.add(tag)
        return [method, describeOperation(operation, named, facts, options)]
      }),
    )
  }
  return {
    ...document,
    ...tidySchemas({ paths, components: document.components ?? {} }),
    servers: [{ url: '/' }],
    tags: tags.filter(({ name }) => used.has(name)),
  }
}

function describeOperation(
  operation: Operation,
  path: string,
  facts: OperationFacts | undefined,
  options: DescribeOptions,
): Operation {
  const described: Operation = {
    ...operation,
    ...(facts === undefined ? {} : { operationId: facts.id }),
    security: securityOf(path, options),
    responses: responsesOf(operation.responses ?? {}, facts),
  }
  if (operation.parameters !== undefined) {
    described.parameters = operation.parameters.map((parameter) =>
      parameter.name === '*' ? { ...parameter, name: 'path' } : parameter,
    )
  }
  const media = operation.requestBody?.content?.['application/json']
  if (facts?.example !== undefined && media !== undefined) {
    described.requestBody = {
      ...operation.requestBody,
      content: { ...operation.requestBody?.content, 'application/json': { ...media, example: facts.example } },
    }
  }
  return described
}

function securityOf(path: string, { publicPaths, loginRequired }: DescribeOptions): Record<string, never[]>[] {
  if (publicPaths.has(path)) return []
  // The empty entry makes the login optional.
  return [{ bearer: [] }, { apiKey: [] }, ...(loginRequired ? [] : [{}])]
}

const errorContent = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }

function responsesOf(
  responses: NonNullable<Operation['responses']>,
  facts: OperationFacts | undefined,
): NonNullable<Operation['responses']> {
  const all: NonNullable<Operation['responses']> = Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      const { content, ...rest } = response
      const described = {
        ...rest,
        description: descriptionOf(status, response.description),
      }
      // A 204 has no body, even if the route gives it a schema.
      return [status, status === '204' || content === undefined ? described : { ...described, content }]
    }),
  )
  // Any route can reply with 4XX before its handler runs: rate limit, login, host check.
  const refusal = Object.entries(all).find(([status]) => status.startsWith('4'))?.[1]
  all['4XX'] = { description: 'Any other refusal.', content: refusal?.content ?? errorContent }
  if (facts?.stream !== undefined) {
    const streamed = mediaTypesOf(facts.stream)
    all['200'] =
      facts.alsoJson === true
        ? {
            description: 'The result, or the stream if one is asked for.',
            content: { ...(all['200']?.content as object | undefined), ...streamed },
          }
        : { description: 'The stream. `Last-Event-ID` resumes it.', content: streamed }
  } else if (facts?.file !== undefined) {
    const content: Record<string, unknown> = Object.fromEntries(
      facts.file.map((media) => {
        const schema = media.startsWith('text/') ? { type: 'string' } : { type: 'string', format: 'binary' }
        return [media, { schema }]
      }),
    )
    if (facts.fileObject !== undefined)
      content['application/json'] = { schema: { $ref: `#/components/schemas/${facts.fileObject}` } }
    all['200'] = { description: 'The file.', content }
  }
  return all
}

const meanings: Readonly<Record<string, string>> = {
  '200': 'Success.',
  '201': 'Created.',
  '202': 'Accepted, but not finished yet.',
  '204': 'There is nothing (more) to show.',
  '400': 'The request does not fit; the message says what to change.',
  '401': 'A login is needed, or the credentials are wrong.',
  '404': 'There is no such thing, or it belongs to another user.',
  '409': 'The request conflicts with the current state.',
  '413': 'The body is too large.',
  '415': 'The content type is not accepted here.',
  '429': 'Too much at once; try again later.',
  '503': 'The server cannot take this just now; try again soon.',
}

/** Replaces the placeholder that Fastify writes if a schema has no description. */
function descriptionOf(status: string, given: string | undefined): string {
  if (given !== undefined && given !== '' && given !== 'Default Response') return given
  return meanings[status] ?? 'The answer failed; the message says why.'
}

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { curl, docsPage, type OpenApiDocument } from './docs-page.ts'
import { exampleOf, fieldsOf, typeOf } from './openapi-fields.ts'

const openapi: OpenApiDocument = {
  info: { title: 'Polylog', version: '9.9', description: 'First paragraph.\n\nSecond with `code`.' },
  servers: [{ url: 'http://127.0.0.1:3000/' }],
  tags: [{ name: 'Runs', description: 'About runs.' }, { name: 'Unused' }],
  paths: {
    '/v1/runs/{id}': {
      get: {
        tags: ['Runs'],
        summary: 'Read a run',
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
          {
            name: 'limit',
            in: 'query',
            description: 'At most so many.',
            schema: { type: 'integer', minimum: 1, maximum: 50, default: 20 },
          },
        ],
        responses: {
          200: {
            description: 'The run.',
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Run' } } },
          },
        },
      },
    },
    '/v1/chat': {
      post: {
        tags: ['Chat'],
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Chat' } } } },
        responses: {
          200: { description: 'A stream.', content: { 'text/event-stream': { schema: { type: 'string' } } } },
        },
      },
    },
  },
  components: {
    schemas: {
      Run: {
        type: 'object',
        required: ['id'],
        properties: { id: { type: 'string' }, parent: { $ref: '#/components/schemas/Run' } },
      },
      Message: {
        type: 'object',
        required: ['role', 'content'],
        properties: {
          role: { enum: ['user', 'assistant'] },
          content: { type: 'string', minLength: 1, description: 'What was said.' },
        },
      },
      Chat: {
        type: 'object',
        required: ['messages'],
        properties: {
          messages: { type: 'array', items: { $ref: '#/components/schemas/Message' } },
          note: { type: 'string', nullable: true },
        },
      },
    },
  },
}

test('the page lists every route under its tag, with parameters, fields, responses and an example', () => {
  const page = docsPage(openapi)

  for (const part of [
    'Read a run',
    'At most so many.',
    'integer (1 to 50, default 20)',
    'messages[].content',
    'What was said.',
    '/v1/chat',
    'text/event-stream',
    'curl -N -X POST',
  ]) {
    assert.ok(page.includes(part), part)
  }
  assert.ok(page.indexOf('<h2>Runs') < page.indexOf('<h2>Chat'), 'tags keep the order of the document')
  assert.doesNotMatch(page, /<h2>Unused/)
  assert.match(page, /<p>First paragraph\.<\/p><p>Second with <code>code<\/code>\.<\/p>/)
})

test('every link on the page leads somewhere on the page', () => {
  const page = docsPage(openapi)
  const targets = [...page.matchAll(/href="#([^"]*)"/g)].map((match) => match[1])

  assert.equal(targets.length, 4)
  for (const target of targets) assert.ok(page.includes(` id="${target}"`), `#${target}`)
})

test('the page loads nothing from anywhere and runs no script', () => {
  const page = docsPage(openapi)

  assert.doesNotMatch(page, /<script|<link|<img|@import|url\(|src=/)
})

test('whatever the document holds is escaped', () => {
  const evil = `<script>alert("x")</script>'&`
  const page = docsPage({
    info: { title: evil, version: evil, description: evil },
    servers: [{ url: evil }],
    tags: [{ name: evil, description: evil }],
    paths: {
      [`/${evil}`]: {
        post: {
          tags: [evil],
          summary: evil,
          description: evil,
          parameters: [{ name: evil, in: evil, description: evil, schema: { enum: [evil] } }],
          requestBody: {
            description: evil,
            content: {
              [evil]: { schema: { properties: { [evil]: { const: evil, description: evil } } } },
              'application/json': { example: evil },
            },
          },
          responses: {
            [evil]: { description: evil, content: { [evil]: { schema: { type: evil, description: evil } } } },
          },
        },
      },
    },
  })

  assert.doesNotMatch(page, /<script|alert\("/)
  assert.doesNotMatch(page, /&(?!#\d+;)/)
})

test('a schema that contains itself is listed once and ends', () => {
  const components = openapi.components ?? {}

  assert.deepEqual(
    fieldsOf({ $ref: '#/components/schemas/Run' }, components).map((field) => field.path),
    ['id', 'parent'],
  )
  assert.deepEqual(exampleOf({ $ref: '#/components/schemas/Run' }, components), { id: '…' })
})

test('an operation may hold a reference to nothing, and an empty document is a page', () => {
  assert.equal(typeOf({ $ref: '#/components/schemas/Gone' }, {}), 'any')
  assert.match(docsPage({}), /<title>API<\/title>/)
})

test('unions list the fields of all their forms, each path once', () => {
  const fields = fieldsOf(
    {
      anyOf: [
        { properties: { type: { const: 'a' }, x: { type: 'string' } } },
        { properties: { type: { const: 'b' }, y: { type: 'number' } } },
      ],
    },
    {},
  )

  assert.deepEqual(
    fields.map((field) => field.path),
    ['type', 'x', 'y'],
  )
})

test('the example is a command that a shell passes on unchanged', () => {
  const example = { text: `it's "quoted" $HOME \`x\`` }
  const command = curl(
    {
      method: 'POST',
      path: '/v1/x/{id}',
      operation: {
        parameters: [{ name: 'id', in: 'path', schema: { type: 'string' } }],
        requestBody: { content: { 'application/json': { example } } },
      },
    },
    openapi,
  )
  const passedOn = execFileSync('sh', ['-c', `curl() { printf '%s\\n' "$@"; }; ${command}`], {
    encoding: 'utf8',
  }).split('\n')

  assert.deepEqual(passedOn.slice(0, 3), ['-X', 'POST', 'http://127.0.0.1:3000/v1/x/ID'])
  assert.deepEqual(JSON.parse(passedOn[6] ?? ''), example)
})

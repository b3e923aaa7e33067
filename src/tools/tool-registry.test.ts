import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Tool } from './tool.ts'
import { createToolRegistry, type ToolEntry } from './tool-registry.ts'

const object = { type: 'object' }

function tool(name: string, inputSchema: Record<string, unknown> = object, answer = name): Tool {
  return {
    name,
    description: `About ${name}.`,
    effect: 'read',
    confirm: 'never',
    inputSchema,
    timeoutMs: 1000,
    outputCharsMax: 1000,
    describe: () => name,
    run: async () => ({ ok: true, output: answer, summary: '' }),
  }
}

const builtIn = (name: string): ToolEntry => ({ source: 'built-in', tool: tool(name) })
const mcp = (server: string, name: string, schema?: Record<string, unknown>): ToolEntry => ({
  source: `mcp:${server}`,
  tool: tool(name, schema, `${server}/${name}`),
})
const names = (entries: ToolEntry[]) =>
  createToolRegistry(entries)
    .available()
    .map(({ name }) => name)

function complaint(schema: Record<string, unknown>, input: unknown): string | null {
  const registry = createToolRegistry([{ source: 'built-in', tool: tool('t', schema) }])
  return registry.check(registry.get('t')!, input as never)
}

test('a tool of an MCP server keeps its own name where nothing else has it', () => {
  assert.deepEqual(names([builtIn('time'), mcp('a', 'lookup'), mcp('b', 'charge')]), ['time', 'lookup', 'charge'])
})

test('two servers with the same tool get both prefixed, and the calls reach the right one', async () => {
  const registry = createToolRegistry([mcp('a', 'lookup'), mcp('b', 'lookup')])

  assert.deepEqual(
    registry.available().map(({ name }) => name),
    ['a_lookup', 'b_lookup'],
  )
  assert.equal((await registry.get('b_lookup')!.run({}, {} as never)).output, 'b/lookup')
  assert.equal(registry.get('lookup'), undefined)
})

test('a built-in tool keeps its name against a server, also while it is unavailable', () => {
  const missing: ToolEntry = {
    source: 'built-in',
    missing: { name: 'send', description: '', effect: 'unsafe', reason: 'No key.' },
  }

  assert.deepEqual(names([mcp('a', 'time'), builtIn('time')]), ['a_time', 'time'])
  assert.deepEqual(names([missing, mcp('a', 'send')]), ['a_send'])
})

test('prefixed names that meet again still differ', () => {
  const given = names([mcp('a', 'b_c'), mcp('x', 'b_c'), mcp('a_b', 'c'), mcp('x', 'c')])

  assert.equal(new Set(given).size, 4)
  assert.deepEqual(given, ['a_b_c', 'x_b_c', 'a_b_c_2', 'x_c'])
})

test('a prefixed name goes on meaning its tool when the other server is gone', () => {
  const registry = createToolRegistry([mcp('b', 'lookup')])

  assert.equal(registry.get('b_lookup'), registry.get('lookup'))
  assert.notEqual(registry.get('b_lookup'), undefined)
})

test('a name that providers refuse is made acceptable, and long ones stay apart', () => {
  const long = 'x'.repeat(80)
  const given = names([mcp('a', 'odd name/ü'), mcp('a', `${long}1`), mcp('a', `${long}2`), mcp('a', '')])

  for (const name of given) assert.match(name, /^[a-zA-Z0-9_-]{1,64}$/)
  assert.equal(given[0], 'odd_name__')
  assert.equal(new Set(given).size, 4)
})

test('the second of two tools of one server with one name is listed and not offered', () => {
  const registry = createToolRegistry([mcp('a', 'same'), mcp('a', 'same')])

  assert.deepEqual(
    registry.available().map(({ name }) => name),
    ['same'],
  )
  assert.match(registry.list()[1]!.reason!, /same name/)
})

test('what is missing is listed with its reason and never offered', () => {
  const reason = 'It did not answer within 10 s.'
  const registry = createToolRegistry([
    builtIn('time'),
    { source: 'mcp:files', missing: { name: 'files', description: 'Files.', effect: 'unsafe', reason } },
  ])

  assert.deepEqual(registry.list(), [
    { name: 'time', description: 'About time.', effect: 'read', available: true, reason: null, source: 'built-in' },
    { name: 'files', description: 'Files.', effect: 'unsafe', available: false, reason, source: 'mcp:files' },
  ])
  assert.equal(registry.get('files'), undefined)
})

test('a schema that does not compile makes its tool unavailable and leaves the others alone', () => {
  const registry = createToolRegistry([mcp('a', 'bad', { type: 'nonsense' }), mcp('a', 'good')])

  assert.deepEqual(
    registry.available().map(({ name }) => name),
    ['good'],
  )
  assert.match(registry.list()[0]!.reason!, /^Its input schema cannot be used: .*type/)
})

test('two tools may use the same $id in their schemas', () => {
  const schema = { $id: 'https://example.com/input', type: 'object' }

  assert.deepEqual(names([mcp('a', 'one', schema), mcp('a', 'two', schema)]), ['one', 'two'])
})

test('wrong arguments are named in sentences, and right ones give null', () => {
  const schema = {
    type: 'object',
    properties: {
      message: { type: 'string', minLength: 1 },
      tags: { type: 'array', items: { type: 'object', properties: { kind: { enum: ['a', 'b'] } } } },
    },
    required: ['message'],
    additionalProperties: false,
  }

  assert.equal(complaint(schema, { message: 'x', tags: [{ kind: 'a' }] }), null)
  assert.equal(complaint(schema, { message: '' }), 'message: must NOT have fewer than 1 characters')
  assert.equal(complaint(schema, {}), "arguments: must have required property 'message'")
  assert.equal(complaint(schema, 'text'), 'arguments: must be object')
  assert.equal(complaint(schema, { message: 'x', extra: 1 }), 'arguments: must NOT have additional properties (extra)')
  assert.equal(
    complaint(schema, { message: 'x', tags: [{ kind: 'c' }] }),
    'tags.0.kind: must be equal to one of the allowed values ("a","b")',
  )
})

test('each draft is checked by its own rules', () => {
  const pair = [{ type: 'string' }, { type: 'number' }]
  const list = (keyword: object, $schema?: string) => ({
    ...($schema && { $schema }),
    type: 'object',
    properties: { list: keyword },
  })

  assert.equal(complaint(list({ prefixItems: pair }), { list: [1] }), 'list.0: must be string')
  assert.equal(
    complaint(list({ prefixItems: pair }, 'https://json-schema.org/draft/2020-12/schema'), { list: [1] }),
    'list.0: must be string',
  )
  assert.equal(
    complaint(list({ items: pair }, 'http://json-schema.org/draft-07/schema#'), { list: [1] }),
    'list.0: must be string',
  )
  assert.equal(
    complaint(list({ items: pair }, 'https://json-schema.org/draft/2019-09/schema'), { list: [1] }),
    'list.0: must be string',
  )
})

test('known formats are checked; unknown formats and keywords and loose patterns do no harm', () => {
  const schema = {
    type: 'object',
    properties: {
      day: { type: 'string', format: 'date' },
      other: { type: 'string', format: 'no-such-format', 'x-keyword': 1 },
      loose: { type: 'string', pattern: '^[\\w-.]+$' },
    },
  }

  assert.equal(complaint(schema, { day: 'soon' }), 'day: must match format "date"')
  assert.equal(complaint(schema, { other: 'x', loose: 'a.b' }), null)
  assert.equal(complaint(schema, { loose: '!' }), 'loose: must match pattern "^[\\w-.]+$"')
})

test('a schema cannot make the check asynchronous, which would let everything pass', () => {
  assert.equal(
    complaint({ $async: true, type: 'object', required: ['a'] }, {}),
    "arguments: must have required property 'a'",
  )
})

test('many complaints are cut', () => {
  const required = ['a', 'b', 'c', 'd', 'e', 'f', 'g']

  assert.match(complaint({ type: 'object', required }, {})!, /'e'; and 2 more$/)
})

test('closing the registry closes what its tools are connected to', async () => {
  let closed = 0
  await createToolRegistry([], { close: async () => void (closed += 1) }).close()

  assert.equal(closed, 1)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { argumentCheck } from '../kit/argument-check.ts'
import { toChatBody } from './openai-request.ts'
import { toProviderSchema } from './tool-schema.ts'

const text = { type: 'string' }
const refused = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', 'if', 'then', 'else']

test('a schema without rules at its top level is sent as it is', () => {
  const schema = { type: 'object', properties: { a: { anyOf: [text, { type: 'null' }] } }, required: ['a'] }

  assert.equal(toProviderSchema(schema), schema)
})

test('alternatives at the top level become one object, with the rules in its description', () => {
  const schema = {
    type: 'object',
    description: 'What to check.',
    properties: { project: text },
    required: ['project'],
    additionalProperties: false,
    anyOf: [{ required: ['paths'] }, { required: ['scopes'] }],
  }

  assert.deepEqual(toProviderSchema(schema), {
    type: 'object',
    description:
      'What to check.\nThe arguments must also fit {"anyOf":[{"required":["paths"]},{"required":["scopes"]}]}',
    properties: { project: text },
    required: ['project'],
    additionalProperties: false,
  })
})

test('the properties of all alternatives are offered, also of those behind references', () => {
  const schema = {
    type: 'object',
    $defs: {
      link: { properties: { kind: { const: 'link' }, url: text }, required: ['kind', 'url'] },
      file: { properties: { kind: { const: 'file' }, path: text }, required: ['kind', 'path'] },
    },
    oneOf: [{ $ref: '#/$defs/link' }, { $ref: '#/$defs/file' }],
    allOf: [{ properties: { title: text }, required: ['title'] }],
    if: { properties: { kind: { const: 'file' } } },
    else: { properties: { mode: text } },
    additionalProperties: false,
  }

  const { properties, required, ...rest } = toProviderSchema(schema)

  assert.deepEqual(properties, {
    title: text,
    kind: { anyOf: [{ const: 'link' }, { const: 'file' }] },
    url: text,
    path: text,
    mode: text,
  })
  assert.deepEqual(required, ['title', 'kind'])
  assert.deepEqual(Object.keys(rest).toSorted(), ['$defs', 'description', 'type'])
})

test('a schema whose alternatives lead back to it, thousands of times, is merged in one pass', () => {
  const again = { $ref: '#/$defs/a' }
  const alternatives = Array.from({ length: 3_000 }, (_, index) => ({ properties: { kind: { const: index } } }))
  const endless = {
    type: 'object',
    $defs: { a: { anyOf: [...alternatives, ...Array.from({ length: 3_000 }, () => again), 1, null] } },
    anyOf: [again, again],
  }

  const { properties, description } = toProviderSchema(endless) as {
    properties: { kind: { anyOf: unknown[] } }
    description: string
  }

  assert.equal(properties.kind.anyOf.length, 3_000)
  assert.match(description, /must also fit/)
  assert.equal(toProviderSchema(endless)['properties'], properties, 'the result is kept')
})

test('what is sent to a provider has no rules at the top level, and the arguments are checked by them', () => {
  const inputSchema = {
    type: 'object',
    properties: { a: text, b: text },
    oneOf: [{ required: ['a'] }, { required: ['b'] }],
  }
  const tools = [{ name: 'pick', description: 'Picks.', inputSchema }]

  const sent = JSON.parse(toChatBody({ model: 'm', messages: [], tools }, 'http://127.0.0.1/v1')) as {
    tools: { function: { parameters: Record<string, unknown> } }[]
  }

  const { parameters } = sent.tools[0]!.function
  assert.deepEqual(parameters['properties'], { a: text, b: text })
  for (const word of refused) assert.equal(word in parameters, false)
  const check = argumentCheck(inputSchema)
  assert.ok(check.ok && check.check({ a: 'x' }) === null && check.check({ a: 'x', b: 'y' }) !== null)
})

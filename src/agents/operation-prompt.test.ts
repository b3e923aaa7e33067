import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inputWithDefaults, operationPrompt } from './operation-prompt.ts'

const operation = {
  id: 'shorten',
  systemTemplate: 'You are {{tone}}. Write in {{language}}. Fit {{{outputSchema}}}. {{operation}}',
  userTemplate: '{{#input.depth}}depth {{input.depth}}: {{/input.depth}}{{{data}}}',
  defaults: { tone: 'brief & kind', language: 'xx' },
  outputSchema: { type: 'object', properties: {} },
}

test('templates see the defaults, the input, and data and schema as JSON with sorted keys, without HTML escapes', () => {
  const { system, user } = operationPrompt(operation, { input: { depth: 2 }, data: { b: '<&>', a: 1 }, language: 'zh' })
  assert.equal(system, 'You are brief & kind. Write in zh. Fit {"properties":{},"type":"object"}. shorten')
  assert.equal(user, 'depth 2: {"a":1,"b":"<&>"}')
})

test('text of the data is never read as a template', () => {
  const { user } = operationPrompt(operation, {
    input: {},
    data: { text: '{{tone}} {{{outputSchema}}}' },
    language: 'zh',
  })
  assert.equal(user, '{"text":"{{tone}} {{{outputSchema}}}"}')
})

test('an input is completed with the defaults of its schema, and keeps what it has', () => {
  const inputSchema = { properties: { depth: { default: 'standard' }, limit: { default: 10 }, name: {}, any: true } }
  assert.deepEqual(inputWithDefaults({ inputSchema }, { limit: 3, other: null }), {
    depth: 'standard',
    limit: 3,
    other: null,
  })
  assert.deepEqual(inputWithDefaults({ inputSchema: null }, { a: 1 }), { a: 1 })
})

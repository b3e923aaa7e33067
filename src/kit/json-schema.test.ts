import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lenientCheck, schemaComplaints, schemaProblem } from './json-schema.ts'

test('a value that fits has no errors, and the errors of one that does not fit say where', () => {
  const schema = {
    type: 'object',
    properties: { a: { type: 'integer' } },
    required: ['a'],
    additionalProperties: false,
  }

  assert.deepEqual(schemaComplaints(schema, { a: 1 }), [])
  assert.deepEqual(schemaComplaints(schema, { a: 'x' }), ['a must be integer'])
  assert.deepEqual(schemaComplaints(schema, { a: 1, b: 2 }), ['value must NOT have additional properties (b)'])
})

test('schemas of any draft, also with unknown keywords, can be used', () => {
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'string',
    format: 'nobody-knows',
    'x-mine': 1,
  }

  assert.equal(schemaProblem(schema), null)
  assert.deepEqual(schemaComplaints(schema, 'x'), [])
})

test('a schema that cannot be used says why', () => {
  assert.match(schemaProblem([]) ?? '', /not a JSON object/)
  assert.match(schemaProblem({ type: 'nothing' }) ?? '', /cannot be used/)
  assert.match(schemaProblem({ $ref: 'http://elsewhere.invalid/x' }) ?? '', /cannot be used/)
  assert.match(schemaProblem(JSON.parse('{"not":'.repeat(20_000) + '{}' + '}'.repeat(20_000))) ?? '', /nested/)
})

test('a schema that leads back to itself without looking at the value cannot be used, and recursive schemas can', () => {
  const endless = [
    { $ref: '#' },
    { type: 'object', $ref: '#' },
    {
      $ref: '#/$defs/a',
      $defs: { a: { $ref: '#/$defs/b' }, b: { allOf: [{ type: 'object' }, { $ref: '#/$defs/a' }] } },
    },
  ]
  const recursive = [
    { type: 'object', properties: { next: { $ref: '#' } } },
    { anyOf: [{ type: 'string' }, { type: 'array', items: { $ref: '#' } }] },
    { allOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }], $defs: { a: { type: 'object' } } },
  ]

  for (const schema of endless) assert.match(schemaProblem(schema) ?? '', /lead back to themselves/)
  for (const schema of recursive) assert.equal(schemaProblem(schema), null)
})

test('a pattern that would take a backtracking engine for ever is answered like any other', () => {
  const schema = { type: 'string', pattern: '^(a+)+$' }

  assert.deepEqual(schemaComplaints(schema, 'aaa'), [])
  assert.deepEqual(schemaComplaints(schema, `${'a'.repeat(60)}!`), ['value must match pattern "^(a+)+$"'])
})

test('a pattern that cannot be run in linear time is a reason for a skill, and is left to the server for a tool', () => {
  const schema = { type: 'string', pattern: '^(?=.*a).*$', minLength: 2 }

  assert.match(schemaProblem(schema) ?? '', /regular expression cannot be used/)
  const lenient = lenientCheck(schema)
  assert.ok(lenient.ok)
  assert.deepEqual(lenient.check('bbb'), [])
  assert.equal(lenient.check('b').length, 1)
})

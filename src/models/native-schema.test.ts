import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nativeSchema } from './native-schema.ts'

const text = { type: 'string' }

test('a schema of the common keywords is sent; strict if every object is closed and all its properties are required', () => {
  const closed = { type: 'object', properties: { a: text }, required: ['a'], additionalProperties: false }
  assert.deepEqual(nativeSchema(closed), { strict: true })
  assert.deepEqual(nativeSchema({ ...closed, required: [] }), { strict: false })
  assert.deepEqual(nativeSchema({ type: 'object', properties: { a: text }, required: ['a'] }), { strict: false })
  assert.deepEqual(nativeSchema({ ...closed, properties: { a: { type: 'array', items: closed } } }), { strict: true })
  const inner = { type: 'object', properties: { b: text } }
  assert.deepEqual(nativeSchema({ ...closed, properties: { a: { type: 'array', items: inner } } }), { strict: false })
  assert.deepEqual(nativeSchema({ ...closed, properties: { a: { type: 'string', enum: ['x', 'y'] } } }), {
    strict: true,
  })
})

test('a schema that a provider may refuse is not sent', () => {
  const of = (a: unknown) => ({ type: 'object', properties: { a } })
  for (const schema of [
    { type: 'array', items: text },
    {},
    { type: 'object' },
    of({ type: 'string', pattern: 'x' }),
    of({ $ref: '#' }),
    of({ anyOf: [text] }),
    of({ type: ['string', 'null'] }),
    of({ type: 'array' }),
    of({ type: 'string', enum: [1] }),
    of({ type: 'string', items: text }),
    of(true),
    of({ type: 'object', properties: { $b: text } }),
    { ...of(text), additionalProperties: true },
    { ...of(text), required: ['b'] },
    of(of(of(of(of(of(text)))))),
    { type: 'object', properties: Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`p${index}`, text])) },
  ]) {
    assert.equal(nativeSchema(schema as Record<string, unknown>), undefined, JSON.stringify(schema).slice(0, 200))
  }
})

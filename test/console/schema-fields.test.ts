// Which fields a form has, for the JSON Schema of an object.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defaultsOf, fieldsOf, type FormField, type JsonSchema } from '../../console/src/ui/schema-fields.ts'

const kindsOf = (fields: readonly FormField[] | null) => fields?.map(({ name, kind }) => `${name}: ${kind}`)

describe('the fields of a schema', () => {
  test('have the kind of their property, and anything unusual is edited as JSON', () => {
    const schema: JsonSchema = {
      type: 'object',
      properties: {
        text: { type: 'string' },
        maybe: { type: ['string', 'null'] },
        count: { type: 'integer' },
        on: { type: 'boolean' },
        size: { enum: ['s', 'm'] },
        tags: { type: 'array', items: { type: 'string' } },
        notes: { type: 'string', 'x-input-source': 'file' },
        place: { $ref: '#/$defs/place' },
        rows: { type: 'array', items: { type: 'object' } },
        people: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } },
        sizes: { type: 'array', items: { enum: ['s', 'm'] } },
        either: { anyOf: [{ type: 'string' }, { type: 'number' }] },
        anything: true,
      },
      required: ['text', 'notes'],
      $defs: { place: { type: 'object', properties: { city: { type: 'string' } } } },
    }
    const fields = fieldsOf(schema)
    assert.deepEqual(kindsOf(fields), [
      'text: text',
      'maybe: text',
      'count: number',
      'on: flag',
      'size: choice',
      'tags: lines',
      'notes: file',
      'place: group',
      'rows: json',
      'people: list',
      'sizes: list',
      'either: json',
      'anything: json',
    ])
    assert.deepEqual(
      fields?.flatMap(({ name, isRequired }) => (isRequired ? [name] : [])),
      ['text', 'notes'],
    )
  })

  test('start from the defaults, also inside of groups', () => {
    const inside = { type: 'object', properties: { city: { type: 'string', default: 'Berlin' } } }
    const schema = { properties: { place: inside, count: { type: 'integer', default: 3 }, text: { type: 'string' } } }
    assert.deepEqual(defaultsOf(schema), { place: { city: 'Berlin' }, count: 3 })
  })

  test('are none if nothing is known about the object, or too much', () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`p${index}`, {}]))
    for (const schema of [null, {}, { type: 'object' }, { properties: {} }, { properties: many }]) {
      assert.equal(fieldsOf(schema), null)
    }
  })

  test('of a schema that contains itself end after a few levels', () => {
    const node: JsonSchema = { type: 'object', properties: { child: { $ref: '#/$defs/node' } } }
    let fields = fieldsOf({ ...node, $defs: { node } })
    let levels = 0
    while (fields?.[0]?.kind === 'group') {
      fields = fields[0].fields
      levels += 1
    }
    assert.equal(fields?.[0]?.kind, 'json')
    assert.ok(levels <= 4)
  })
})

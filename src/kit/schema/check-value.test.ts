// What schemas mean, case by case, where the property test with another validator does
// not reach: references, drafts, formats, and what is not evaluated.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkValue } from './check-value.ts'
import { prepareSchema } from './prepare-schema.ts'

function fits(schema: unknown, value: unknown): boolean {
  const result = prepareSchema(schema, { unusablePatterns: 'refuse' })
  assert.ok(result.ok, result.ok ? '' : result.reason)
  return checkValue(result.schema, value).fits
}

const tree = {
  $id: 'https://example.com/tree',
  $defs: { node: { $anchor: 'node', type: 'object', properties: { next: { $ref: '#node' }, n: { type: 'integer' } } } },
  $ref: '#/$defs/node',
}
const embedded = {
  $defs: {
    inner: { $id: 'inner.json', $defs: { text: { type: 'string' } }, properties: { a: { $ref: '#/$defs/text' } } },
  },
  $id: 'https://example.com/outer.json',
  properties: { x: { $ref: 'inner.json' }, y: { $ref: 'https://example.com/inner.json#/$defs/text' } },
}
const point = { properties: { x: true, y: true } }
const closed = { allOf: [point], properties: { z: true }, unevaluatedProperties: false }
const choice = {
  anyOf: [{ properties: { a: { const: 1 } }, required: ['a'] }, { properties: { b: true } }],
  unevaluatedProperties: false,
}
const pair = { prefixItems: [true], contains: { type: 'string' }, unevaluatedItems: false }

const table: [what: string, schema: unknown, fitting: unknown[], wrong: unknown[]][] = [
  ['a reference to an anchor', tree, [{ next: { next: { n: 1 } } }], [{ next: { next: { n: 'x' } } }]],
  ['references into an embedded document', embedded, [{ x: { a: 's' }, y: 's' }], [{ x: { a: 1 } }, { y: 1 }]],
  [
    'a reference with escapes',
    { definitions: { 'a/b~c': { type: 'null' } }, $ref: '#/definitions/a~1b~0c' },
    [null],
    [1],
  ],
  [
    'a reference beside other keywords',
    { $defs: { t: { type: 'string' } }, $ref: '#/$defs/t', minLength: 2 },
    ['ab'],
    ['a', 1],
  ],
  ['a reference to an unknown keyword', { components: { t: { type: 'string' } }, $ref: '#/components/t' }, ['a'], [1]],
  [
    'the list of items of older drafts',
    { items: [{ type: 'string' }], additionalItems: false },
    [['a'], []],
    [[1], ['a', 1]],
  ],
  [
    'dependencies of older drafts',
    { dependencies: { a: ['b'], c: { required: ['d'] } } },
    [
      { a: 1, b: 1 },
      { c: 1, d: 1 },
    ],
    [{ a: 1 }, { c: 1 }],
  ],
  ['nullable', { type: 'string', nullable: true }, [null, 'a'], [1]],
  ['characters outside the basic plane', { maxLength: 1 }, ['𝒳'], ['ab']],
  [
    'names that every object has',
    { required: ['constructor'], properties: { toString: { type: 'string' } } },
    [{ constructor: 1 }],
    [{}, { constructor: 1, toString: 1 }],
  ],
  ['unevaluated properties beside allOf', closed, [{ x: 1, z: 1 }], [{ x: 1, w: 1 }]],
  ['unevaluated properties beside anyOf', choice, [{ a: 1 }, { b: 1 }, { a: 1, b: 1 }], [{ c: 1 }, { a: 2 }]],
  [
    'unevaluated properties inside not',
    { not: { properties: { a: true }, unevaluatedProperties: false } },
    [{ b: 1 }],
    [{ a: 1 }],
  ],
  [
    'unevaluated items beside contains',
    pair,
    [
      [1, 'a'],
      [1, 'a', 'b'],
    ],
    [[1, 'a', 2]],
  ],
  [
    'unevaluated items of a failed branch',
    { anyOf: [{ items: { type: 'null' } }, true], unevaluatedItems: { type: 'string' } },
    [[null], ['a']],
    [[1]],
  ],
  ['date', { format: 'date' }, ['2024-02-29', 1], ['2023-02-29', 'soon', '2024-13-01']],
  [
    'date-time',
    { format: 'date-time' },
    ['2024-02-29T10:00:00Z', '2024-02-29t10:00:00.5+02:00'],
    ['2024-02-29', '2024-02-29T25:00:00Z'],
  ],
  ['time', { format: 'time' }, ['10:00:00Z'], ['10:00', '10:61:00Z']],
  ['duration', { format: 'duration' }, ['P1D', 'PT1H30M', 'P2W'], ['P', 'PT', '1D']],
  ['email', { format: 'email' }, ['a.b+c@example.com'], ['a', '@b.c', 'a b@c.d']],
  ['hostname', { format: 'hostname' }, ['a.example.com'], ['-a', 'a..b', 'a_b!']],
  [
    'ip addresses',
    { anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }], type: 'string' },
    ['127.0.0.1', '::1'],
    ['1.2.3'],
  ],
  ['uri', { format: 'uri' }, ['https://a.b/c?d#e', 'urn:x:y'], ['a', '/a', 'https://a b']],
  ['uuid', { format: 'uuid' }, ['123e4567-e89b-12d3-a456-426614174000'], ['123']],
  ['json-pointer', { format: 'json-pointer' }, ['', '/a~1b/0'], ['a', '/~2']],
  ['a multiple of a fraction', { multipleOf: 0.01 }, [19.99, 0.07, 1.1, 4, -0.3, 0], [19.995, 0.001, 1e-9]],
  ['a multiple of an integer', { multipleOf: 2 }, [4, 9007199254740990], [4000000000000001, 0.5, 2.0000001]],
  ['a number that JSON can hold', { type: 'number' }, [1.5, -1e308], [JSON.parse('1e999'), JSON.parse('-1e999')]],
  ['an unknown format', { format: 'toString' }, ['anything'], []],
]
for (const [what, schema, fitting, wrong] of table) {
  test(`a value is checked by its schema: ${what}`, () => {
    for (const value of fitting) assert.equal(fits(schema, value), true, JSON.stringify(value))
    for (const value of wrong) assert.equal(fits(schema, value), false, JSON.stringify(value))
  })
}

const malformed: [schema: unknown, reason: RegExp][] = [
  [[], /not a JSON object/],
  [{ type: 'nothing' }, /type must be/],
  [{ properties: { a: 1 } }, /properties must be/],
  [{ required: true }, /required must be/],
  [{ anyOf: [] }, /anyOf must be/],
  [{ minLength: -1 }, /minLength must be/],
  [{ properties: { a: { items: 'x' } } }, /items must be/],
  [{ multipleOf: 0 }, /multipleOf must be/],
  [{ pattern: '(' }, /regular expression/],
]
for (const [schema, reason] of malformed) {
  test(`a schema that means nothing is refused with a reason: ${JSON.stringify(schema)}`, () => {
    const result = prepareSchema(schema, { unusablePatterns: 'refuse' })

    assert.equal(result.ok, false)
    assert.match(result.ok ? '' : result.reason, reason)
  })
}

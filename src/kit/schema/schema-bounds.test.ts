// Schemas and values that are made to take for ever: each is refused, or answered within the
// budget of steps. The tests count steps and never measure time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkValue, stepsMax } from './check-value.ts'
import { prepareSchema, type PreparedSchema } from './prepare-schema.ts'

function prepared(schema: unknown): PreparedSchema {
  const result = prepareSchema(schema, { unusablePatterns: 'refuse' })
  assert.ok(result.ok, result.ok ? '' : result.reason)
  return result.schema
}

function refusal(schema: unknown): string {
  const result = prepareSchema(schema, { unusablePatterns: 'refuse' })
  return result.ok ? 'it can be used' : result.reason
}

const nested = (depth: number, inner: unknown, wrap: (inner: unknown) => unknown): unknown => {
  let value = inner
  for (let level = 0; level < depth; level += 1) value = wrap(value)
  return value
}

const tooLarge: [what: string, schema: () => unknown, reason: RegExp][] = [
  ['nested too deep', () => nested(20_000, {}, (not) => ({ not })), /nested more than 64 deep/],
  [
    'of too many keywords',
    () => ({ anyOf: Array.from({ length: 30_000 }, () => ({})) }),
    /more than 20000 keywords and values/,
  ],
  ['of too much text', () => ({ description: 'x'.repeat(200_000) }), /longer than 128 KiB/],
  ['with a pattern that is too long', () => ({ pattern: 'a'.repeat(5_000) }), /longer than 2000 characters/],
  ['with a pattern that repeats too much', () => ({ pattern: '(a{30}){30}(b{30}){30}' }), /repeats too much/],
  [
    'with a pattern of many repeats',
    () => ({ pattern: 'a{1000}'.repeat(280) }),
    /the regular expression takes too much work to compile/,
  ],
  [
    'with a pattern that repeats what stands before its flags',
    () => ({ pattern: `(${'a'.repeat(100)})(?i){900}` }),
    /the regular expression takes too much work to compile/,
  ],
  [
    'with a pattern that ignores the case of many large ranges',
    () => ({ pattern: `(?i)${String.raw`[\u0001-\uffff]`.repeat(100)}` }),
    /the regular expression takes too much work to compile/,
  ],
  [
    'with patterns that take too much work together',
    () => ({
      patternProperties: Object.fromEntries(
        Array.from({ length: 20 }, (_, n) => [String.raw`\p{L}`.repeat(300) + String(n), true]),
      ),
    }),
    /too large together/,
  ],
  ['with a repeat of repeats', () => ({ pattern: '((a{99}){99}){99}' }), /cannot be used/],
  [
    'with too many patterns',
    () => ({ patternProperties: Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`^p${n}$`, true])) }),
    /more than 200 patterns/,
  ],
  [
    'with patterns that are large together',
    () => ({
      patternProperties: Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`a{400}${n}`, true])),
    }),
    /too large together/,
  ],
  [
    'with too many references',
    () => ({ $defs: { a: {} }, anyOf: Array.from({ length: 3_000 }, () => ({ $ref: '#/$defs/a' })) }),
    /more than 2000 references/,
  ],
  ['that refers to another document', () => ({ $ref: 'https://elsewhere.invalid/x' }), /can't resolve reference/],
  ['that refers to nothing', () => ({ $ref: '#/$defs/none' }), /can't resolve reference/],
]
for (const [what, schema, reason] of tooLarge) {
  test(`a schema ${what} is refused before it is used`, () => {
    assert.match(refusal(schema()), reason)
  })
}

const doubling = {
  $defs: {
    two: {
      anyOf: [
        { items: { $ref: '#/$defs/two' }, minItems: 9 },
        { items: { $ref: '#/$defs/two' }, maxItems: 0 },
      ],
    },
  },
  $ref: '#/$defs/two',
}

const blowUps: [what: string, schema: unknown, value: unknown][] = [
  ['a reference that doubles at every level', doubling, nested(60, [], (inner) => [inner])],
  [
    'definitions that each use the next one twice',
    {
      $defs: Object.fromEntries(
        Array.from({ length: 40 }, (_, n) => [
          `d${n}`,
          n === 39 ? { type: 'string' } : { allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
        ]),
      ),
      $ref: '#/$defs/d0',
    },
    'x',
  ],
  ['a reference to itself', { anyOf: [{ $ref: '#' }] }, 1],
  [
    'two references in a circle',
    { $defs: { a: { not: { $ref: '#/$defs/b' } }, b: { not: { $ref: '#/$defs/a' } } }, $ref: '#/$defs/a' },
    1,
  ],
  [
    'alternatives in alternatives',
    nested(7, { type: 'null' }, (inner) => ({ oneOf: [{ not: inner }, inner, inner] })),
    'x',
  ],
  [
    'many alternatives for many items',
    { items: { anyOf: Array.from({ length: 2_000 }, (_, n) => ({ const: n })) } },
    Array.from({ length: 50_000 }, () => 'x'),
  ],
  ['a pattern on a very long text', { pattern: '(a|b)*a(a|b){100}[^ab]' }, 'ab'.repeat(1_000_000)],
  [
    'patterns on every name of a large object',
    { patternProperties: Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`^(a|b)*a(a|b){20}${n}$`, true])) },
    Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`abababababab${n}`, 1])),
  ],
  [
    'many texts that must be regular expressions',
    { items: { format: 'regex' } },
    Array.from({ length: 4_000 }, (_, n) => `a{900}${n}`),
  ],
]
for (const [what, schema, value] of blowUps) {
  test(`a check takes a bounded number of steps: ${what}`, () => {
    const { steps } = checkValue(prepared(schema), value)

    assert.ok(steps <= stepsMax, `${steps} steps`)
  })
}

test('a text that must be a regular expression costs what it takes to compile it', () => {
  const { fits, steps } = checkValue(prepared({ format: 'regex' }), 'a{900}')

  assert.equal(fits, true)
  assert.ok(steps > 900, `${steps} steps`)
})

test('a pattern that may be ignored is compiled at its first use, and once', () => {
  const names = Array.from({ length: 100 }, (_, n) => `p${n}`)
  const schema = { properties: Object.fromEntries(names.map((name) => [name, { pattern: `a{900}${name}` }])) }
  const result = prepareSchema(schema, { unusablePatterns: 'ignore' })
  assert.ok(result.ok)
  const steps = (value: unknown) => checkValue(result.schema, value).steps

  assert.ok(steps({}) < 10)
  const first = steps({ p1: '' })
  assert.ok(first > 900 && first < 3_000, `${first} steps`)
  assert.ok(steps({ p1: '' }) < 100)
})

test('a check that runs out of steps says so, and lets nothing pass', () => {
  const { fits, errors } = checkValue(prepared({ anyOf: [{ $ref: '#' }] }), 1)

  assert.equal(fits, false)
  assert.match(errors[0]?.message ?? '', /too many steps/)
})

test('items are compared by their text, so a long list costs steps in proportion to its length', () => {
  const schema = prepared({ uniqueItems: true })
  const list = (length: number) => Array.from({ length }, (_, n) => ({ a: n, b: [n] }))
  const few = checkValue(schema, list(1_000)).steps
  const many = checkValue(schema, list(20_000)).steps

  assert.ok(many < few * 25, `${few} and ${many} steps`)
  assert.equal(
    checkValue(schema, [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ]).fits,
    false,
  )
})

test('a value that is too deep or too large is refused before anything walks into it', () => {
  const schema = prepared({ uniqueItems: true })

  assert.match(
    checkValue(
      schema,
      nested(100_000, 1, (inner) => [inner]),
    ).errors[0]?.message ?? '',
    /nested more than/,
  )
  assert.match(
    checkValue(
      schema,
      Array.from({ length: 300_000 }, () => 1),
    ).errors[0]?.message ?? '',
    /too large/,
  )
  assert.match(checkValue(schema, 'x'.repeat(9_000_000)).errors[0]?.message ?? '', /too large/)
})

test('an ordinary check takes few steps', () => {
  const schema = prepared({
    type: 'object',
    properties: { title: { type: 'string', maxLength: 100 }, tags: { type: 'array', items: { type: 'string' } } },
    required: ['title'],
  })

  assert.ok(checkValue(schema, { title: 'x', tags: ['a', 'b'] }).steps < 20)
})

// Our bounded check of JSON Schemas, compared with a widely used validator: for any schema and
// any value, both give the same result.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { checkValue } from '../../src/kit/schema/check-value.ts'
import { prepareSchema } from '../../src/kit/schema/prepare-schema.ts'

const names = fc.constantFrom('a', 'b', 'c', 'ab', 'b1')
const small = fc.nat({ max: 3 })
const scalar = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, '', 'a', 'ab', 'b1', '𝒳'),
  fc.integer({ min: -2, max: 4 }),
  fc.constantFrom(0.5, 1.5),
)

const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(names, tie('value'), { maxKeys: 4 }),
  ),
})).value

const types = fc.constantFrom('array', 'boolean', 'integer', 'null', 'number', 'object', 'string')

// `contains` does not meet `prefixItems` in one schema: under `if` and `not` the other validator then takes an empty list for
// one that fits.
// `unevaluatedProperties` and `unevaluatedItems` have a table of their own (src/kit/schema): the other validator gets
// several of their combinations wrong.
const { schema } = fc.letrec((tie) => {
  const inner = tie('schema')
  const list = fc.array(inner, { minLength: 1, maxLength: 3 })
  const map = fc.dictionary(names, inner, { maxKeys: 3 })
  return {
    schema: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.boolean(),
      fc.record(
        {
          type: fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 3 })),
          enum: fc.array(value, { minLength: 1, maxLength: 3 }),
          const: value,
          minimum: small,
          maximum: small,
          exclusiveMinimum: small,
          exclusiveMaximum: small,
          multipleOf: fc.constantFrom(1, 2, 0.5),
          minLength: small,
          maxLength: small,
          pattern: fc.constantFrom('^a', 'b$', '^(a|b)+$', '[0-9]', '^.$'),
          minItems: small,
          maxItems: small,
          uniqueItems: fc.boolean(),
          minProperties: small,
          maxProperties: small,
          required: fc.uniqueArray(names, { maxLength: 2 }),
          dependentRequired: fc.dictionary(names, fc.uniqueArray(names, { maxLength: 2 }), { maxKeys: 2 }),
        },
        { requiredKeys: [] },
      ),
      fc.record(
        {
          properties: map,
          patternProperties: fc.dictionary(fc.constantFrom('^a', 'b$'), inner, { maxKeys: 2 }),
          additionalProperties: inner,
          propertyNames: inner,
          dependentSchemas: map,
          prefixItems: list,
          items: inner,
        },
        { requiredKeys: [] },
      ),
      fc.record({ items: inner, contains: inner, minContains: small }, { requiredKeys: [] }),
      fc.record(
        {
          allOf: list,
          anyOf: list,
          oneOf: list,
          not: inner,
          if: inner,
          // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema; the value is never awaited
          then: inner,
          else: inner,
          $ref: fc.constantFrom('#/$defs/x', '#/$defs/y'),
        },
        { requiredKeys: [] },
      ),
    ),
  }
})

/** As if it had come over a wire. */
function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

/** The code that the other validator writes for a few schemas cannot run; those are left out. */
function answerOf(ask: () => unknown): unknown {
  try {
    return ask()
  } catch (error) {
    fc.pre(!(error instanceof ReferenceError))
    throw error
  }
}

test('our check of a JSON Schema says the same as a well-known one', () => {
  const leaf = fc.record(
    {
      type: types,
      minimum: small,
      required: fc.uniqueArray(names, { maxLength: 1 }),
      properties: fc.dictionary(names, fc.boolean()),
    },
    { requiredKeys: [] },
  )
  let compared = 0
  fc.assert(
    fc.property(schema, leaf, leaf, value, (root, x, y, generated) => {
      const given = plain(generated)
      const document = plain({
        ...(typeof root === 'boolean' ? { allOf: [root] } : root),
        $defs: { x, y },
      })
      const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false, validateSchema: false })
      const theirs = answerOf(() => ajv.compile(document)(given))
      const prepared = prepareSchema(document, { unusablePatterns: 'refuse' })
      assert.ok(prepared.ok, prepared.ok ? '' : prepared.reason)
      const ours = checkValue(prepared.schema, given)

      assert.equal(ours.fits, theirs, JSON.stringify({ document, given, errors: ours.errors }))
      assert.equal(ours.fits, ours.errors.length === 0)
      compared += 1
    }),
    { numRuns: Number(process.env['SCHEMA_RUNS'] ?? 300) },
  )
  assert.ok(compared >= 300)
})

test('`contains` beside `prefixItems` is checked under `if` and `not` too', () => {
  const inner = { prefixItems: [false], contains: { type: 'null' } }
  for (const [document, given, fits] of [
    [{ if: inner, else: false }, [], false],
    [{ if: inner, else: true }, [], true],
    [{ not: inner }, [], true],
    [{ not: { ...inner, prefixItems: [true] } }, [null], false],
  ] as const) {
    const prepared = prepareSchema(document, { unusablePatterns: 'refuse' })
    assert.ok(prepared.ok)
    assert.equal(checkValue(prepared.schema, given).fits, fits, JSON.stringify({ document, given }))
  }
})

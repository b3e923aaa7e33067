// Any value becomes JSON, and the work is bounded.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonValue } from '../journal/event.ts'
import { restLeftOut, toPlainJson } from './plain-json.ts'

test('what JSON has stays as it is', () => {
  const value = { text: 'a', number: 1.5, yes: true, nothing: null, list: [1, ['b']], inner: { deep: {} } }

  assert.deepEqual(toPlainJson(value), value)
  assert.equal(toPlainJson('text'), 'text')
})

test('what JSON lacks becomes the nearest thing that it has', () => {
  class Order {
    id = 7
    private readonly at = new Date(0)
    total() {
      return this.at
    }
  }

  assert.equal(toPlainJson(undefined), null)
  assert.equal(
    toPlainJson(() => 1),
    null,
  )
  assert.equal(toPlainJson(Number.NaN), null)
  assert.equal(toPlainJson(12n), '12')
  assert.deepEqual(toPlainJson(new Order()), { id: 7, at: '1970-01-01T00:00:00.000Z' })
  assert.deepEqual(toPlainJson([undefined, Symbol('x'), new Set([1, 2])]), [null, null, [1, 2]])
  assert.deepEqual(toPlainJson({ gone: undefined, map: new Map([['a', 1n]]) }), { map: { a: '1' } })
  assert.deepEqual(toPlainJson(new Map([[1, 'a']])), [[1, 'a']])
  assert.equal(toPlainJson(Buffer.from('abc')), '[3 bytes]')
  assert.equal(toPlainJson(new TypeError('no')), 'TypeError: no')
  assert.deepEqual(Object.keys(toPlainJson(JSON.parse('{"__proto__": 1}')) as object), ['__proto__'])
})

test('a value that contains itself, or throws when it is read, is left out with a note', () => {
  const round: Record<string, unknown> = { name: 'round' }
  round['self'] = round
  const twice = { shared: round['name'] }
  const hostile = Object.defineProperty({}, 'secret', {
    enumerable: true,
    get() {
      throw new Error('not today')
    },
  })

  assert.deepEqual(toPlainJson(round), { name: 'round', self: '[left out: it contains itself]' })
  assert.deepEqual(toPlainJson([twice, twice]), [twice, twice])
  assert.equal(toPlainJson(hostile), '[left out: not today]')
  assert.equal(
    toPlainJson({
      toJSON: () => {
        throw new Error('never')
      },
    }),
    '[left out: never]',
  )
})

test('depth, length and number of values are bounded', () => {
  let deep: unknown = 'ground'
  for (let level = 0; level < 100_000; level++) deep = [deep]
  const text = 'x'.repeat(11 * 1024 * 1024)
  let asked = 0
  const endless = new Proxy([], {
    get(target, key) {
      if (typeof key === 'symbol') return Reflect.get(target, key) as unknown
      if (key === 'length') return 2 ** 40
      asked += 1
      return 1
    },
  })

  assert.match(JSON.stringify(toPlainJson(deep)), /nested more than 100 deep/)
  assert.match(toPlainJson(text) as string, /\[cut: 11534336 characters in all\]$/)
  assert.ok((toPlainJson([text, text, text]) as string[]).length < 4)
  assert.equal((toPlainJson([text, text, text]) as string[]).at(-1), restLeftOut)
  assert.equal((toPlainJson(endless) as string[]).at(-1), restLeftOut)
  assert.ok(asked < 100_100, String(asked))
})

test('values deep inside are counted, too, and the note says how many are allowed', () => {
  const wide = {
    rows: Array.from({ length: 1000 }, (_, row) => ({ row, cells: Array.from({ length: 500 }, () => 1) })),
  }

  const { rows } = toPlainJson(wide) as { rows: JsonValue[] }

  assert.ok(rows.length < 250, String(rows.length))
  assert.equal(rows.at(-1), '[the rest is left out: a result may have 100000 values and 10 MiB of text]')
  const keys = Object.keys(
    toPlainJson(Object.fromEntries(Array.from({ length: 200_000 }, (_, n) => [`k${n}`, n]))) as object,
  )
  assert.equal(keys.length, 100_000)
  assert.equal(keys.at(-1), restLeftOut)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defined } from './defined.ts'

test('fields that are undefined are left out, and all others stay, in their order', () => {
  assert.deepEqual(defined({ a: 0, b: undefined, c: null, d: false }), { a: 0, c: null, d: false })
  assert.deepEqual(Object.keys(defined({ z: 1, y: undefined, x: '' })), ['z', 'x'])
})

test('the type knows which fields may be absent', () => {
  const given: { name: string; note?: string } = defined({ name: 'a', note: undefined as string | undefined })

  assert.deepEqual(given, { name: 'a' })
})

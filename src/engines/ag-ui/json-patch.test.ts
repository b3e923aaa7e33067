import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonValue } from '../../journal/event.ts'
import { applyPatch } from './json-patch.ts'

const charsMax = 1000

function patched(document: JsonValue, ...operations: unknown[]): JsonValue {
  const target = { root: structuredClone(document), chars: JSON.stringify(document).length }
  return applyPatch(target, operations, charsMax) ? target.root : 'refused'
}

test('the operations of RFC 6902 change the document', () => {
  const cases: [document: JsonValue, operations: unknown[], expected: JsonValue][] = [
    [{ a: 1 }, [{ op: 'add', path: '/b', value: 2 }], { a: 1, b: 2 }],
    [{ a: [1, 3] }, [{ op: 'add', path: '/a/1', value: 2 }], { a: [1, 2, 3] }],
    [{ a: [1] }, [{ op: 'add', path: '/a/-', value: 2 }], { a: [1, 2] }],
    [{ a: 1 }, [{ op: 'add', path: '', value: [1] }], [1]],
    [{ a: 1, b: 2 }, [{ op: 'remove', path: '/a' }], { b: 2 }],
    [{ a: [1, 2] }, [{ op: 'remove', path: '/a/0' }], { a: [2] }],
    [{ a: { b: 1 } }, [{ op: 'replace', path: '/a/b', value: null }], { a: { b: null } }],
    [{ a: 1 }, [{ op: 'move', from: '/a', path: '/b' }], { b: 1 }],
    [{ a: [1, 2, 3] }, [{ op: 'move', from: '/a/0', path: '/a/2' }], { a: [2, 3, 1] }],
    [
      { a: { x: 1 } },
      [
        { op: 'copy', from: '/a', path: '/b' },
        { op: 'add', path: '/b/x', value: 2 },
      ],
      { a: { x: 1 }, b: { x: 2 } },
    ],
    [
      { 'a/b': 1, 'm~n': 2 },
      [
        { op: 'remove', path: '/a~1b' },
        { op: 'replace', path: '/m~0n', value: 3 },
      ],
      { 'm~n': 3 },
    ],
    [{ a: [{ b: 1 }] }, [{ op: 'test', path: '/a', value: [{ b: 1 }] }], { a: [{ b: 1 }] }],
    [{ '': 1 }, [{ op: 'remove', path: '/' }], {}],
  ]
  for (const [document, operations, expected] of cases) {
    assert.deepEqual(patched(document, ...operations), expected, JSON.stringify(operations))
  }
})

test('a patch that does not fit, is malformed or reaches a prototype is refused', () => {
  const refused: unknown[] = [
    { op: 'remove', path: '/none' },
    { op: 'replace', path: '/none', value: 1 },
    { op: 'add', path: '/none/deeper', value: 1 },
    { op: 'add', path: '/list/5', value: 1 },
    { op: 'add', path: '/list/01', value: 1 },
    { op: 'add', path: '/list/-1', value: 1 },
    { op: 'replace', path: '/list/-', value: 1 },
    { op: 'add', path: 'a', value: 1 },
    { op: 'add', path: '/a' },
    { op: 'test', path: '/a', value: 2 },
    { op: 'move', from: '/o', path: '/o/inside' },
    { op: 'copy', from: '/none', path: '/b' },
    { op: 'merge', path: '/a', value: 1 },
    { op: 'add', path: '/__proto__/polluted', value: 1 },
    { op: 'add', path: '/constructor/prototype/polluted', value: 1 },
    { op: 'add', path: `/${'a'.repeat(5000)}`, value: 1 },
    { op: 'add', path: '/a/'.repeat(100), value: 1 },
    null,
    'add',
  ]
  for (const operation of refused) {
    assert.equal(patched({ a: 1, list: [1], o: {} }, operation), 'refused', JSON.stringify(operation))
  }
  assert.equal(applyPatch({ root: {}, chars: 2 }, 'no list', charsMax), false)
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
})

test('a document cannot grow without bound, neither in size nor in depth', () => {
  const doubling = Array.from({ length: 50 }, (_, index) => ({ op: 'copy', from: '', path: `/copy${index}` }))
  assert.equal(patched({ a: 'x'.repeat(10) }, ...doubling), 'refused')

  const nesting = Array.from({ length: 1000 }, () => [
    { op: 'move', from: '/a', path: '/b/a' },
    { op: 'move', from: '/b', path: '/a' },
    { op: 'add', path: '/b', value: {} },
  ]).flat()
  assert.equal(patched({ a: {}, b: {} }, ...nesting.slice(0, 1900)), 'refused')
  assert.equal(patched({}, ...Array.from({ length: 2001 }, () => ({ op: 'test', path: '', value: {} }))), 'refused')
})

test('a document whose values are replaced again and again stays within its bound', () => {
  const target = { root: {} as JsonValue, chars: 2 }
  for (let count = 0; count < 1000; count += 1) {
    assert.ok(applyPatch(target, [{ op: 'add', path: '/a', value: 'x'.repeat(500) }], charsMax))
  }
  assert.ok(target.chars <= charsMax)
})

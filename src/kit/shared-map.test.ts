import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SharedMap, withEntry } from './shared-map.ts'

test('every map of a history keeps its own entries, whatever follows it', () => {
  const key = fc.integer({ min: 0, max: 5 })
  fc.assert(
    // Each step extends one of the maps so far, not always the newest.
    fc.property(fc.array(fc.record({ from: fc.nat(), key, value: fc.integer() })), (steps) => {
      const maps: SharedMap<number, number>[] = [SharedMap.of()]
      const expected: Map<number, number>[] = [new Map()]
      for (const { from, key, value } of steps) {
        const at = from % maps.length
        maps.push((maps[at] as SharedMap<number, number>).with(key, value))
        expected.push(new Map(expected[at]).set(key, value))
      }
      for (const [index, map] of maps.entries()) {
        const plain = expected[index] as Map<number, number>
        assert.deepEqual([...map], [...plain])
        assert.deepEqual([...map.keys()], [...plain.keys()])
        assert.deepEqual([...map.values()], [...plain.values()])
        assert.equal(map.size, plain.size)
        for (let one = 0; one <= 5; one += 1) {
          assert.equal(map.get(one), plain.get(one))
          assert.equal(map.has(one), plain.has(one))
        }
      }
    }),
  )
})

test('the next map of a history is made without reading the others', () => {
  let read = 0
  const source = {
    *[Symbol.iterator](): Generator<[number, number]> {
      for (let key = 0; key < 1000; key += 1) {
        read += 1
        yield [key, key]
      }
    },
  }
  let map = SharedMap.of(source)
  const entries = map.entries.bind(map)
  map.entries = () => {
    read += 1
    return entries()
  }
  for (let key = 1000; key < 2000; key += 1) map = map.with(key, key)

  assert.equal(read, 1000)
  assert.equal(map.size, 2000)
})

test('a plain map can be the first of a history', () => {
  const plain = new Map([['a', 1]])
  const next = withEntry(plain, 'b', 2)

  assert.deepEqual(
    [...next],
    [
      ['a', 1],
      ['b', 2],
    ],
  )
  assert.deepEqual([...plain], [['a', 1]])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { logRecord } from '../../../test/support/log-records.ts'
import {
  decodeRecordText,
  encodeRecord,
  headBytes,
  rangesOf,
  recordText,
  textAt,
  valuesOfRecords,
} from './log-record.ts'

const value = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', '[1]\n', '語', '😀'), fc.nat())

const recordOf = (values: (string | number)[], number = 1) => logRecord(number, values, 5)

test('any commands are read as they were written, from one record and from ranges of several', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.array(value), fc.boolean())), (given) => {
      const lists = given.map(([values]) => values)
      // Records follow each other in one of two memories, as in the two files of the log.
      const memories = [Buffer.alloc(64 * 1024), Buffer.alloc(64 * 1024)] as const
      const ends = [0, 0]
      const records = given.map(([values, other], index) => {
        const file = other ? 1 : 0
        const text = recordText(5, index + 1, values)
        const record = encodeRecord(text, Buffer.byteLength(text), memories[file], ends[file] as number)
        ends[file] = (ends[file] as number) + record.length
        return record
      })
      for (const [index, record] of records.entries()) {
        const text = textAt(record, 0)
        assert.ok(text !== undefined)
        assert.deepEqual(decodeRecordText(text), { lineage: 5, number: index + 1, values: lists[index] })
      }
      const ranges = rangesOf(records)
      assert.deepEqual(
        ranges.flatMap((range) => [...valuesOfRecords(range)]),
        lists,
      )
      const changes = given.filter(([, other], index) => index > 0 && other !== given[index - 1]?.[1]).length
      assert.equal(ranges.length, given.length === 0 ? 0 : changes + 1)
    }),
  )
})

test('a record of an earlier version, which has its numbers in lists, is read too', () => {
  assert.deepEqual(decodeRecordText(Buffer.from('[5,7,4,[0],2,[12]]\nnameüö')).values, ['name', 0, 'üö', 12])
})

test('a record that is cut or changed anywhere is not read', () => {
  const record = recordOf(['name', 'text', 7])
  for (let length = 0; length < record.length; length += 1) {
    assert.equal(textAt(record.subarray(0, length), 0), undefined, `cut after ${length} bytes`)
    const changed = Buffer.from(record)
    changed.writeUInt8((changed[length] as number) ^ 1, length)
    assert.equal(textAt(changed, 0), undefined, `changed at ${length}`)
  }
  assert.equal(textAt(Buffer.alloc(headBytes), 0), undefined, 'the rest of a file is zeros')
})

test('a record that was dropped is in no range', () => {
  const record = recordOf(['small'])
  assert.deepEqual(rangesOf([new Uint8Array(0), record, new Uint8Array(0)]), [record])
  assert.deepEqual(rangesOf([]), [])
})

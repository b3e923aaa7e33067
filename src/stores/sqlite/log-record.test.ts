import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  decodeRecordText,
  encodeRecord,
  headBytes,
  joinRecords,
  recordText,
  textAt,
  valuesOfRecords,
} from './log-record.ts'

const value = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', '[1]\n', '語', '😀'), fc.nat())

function recordOf(values: (string | number)[], number = 1): Buffer {
  const text = recordText(5, number, values)
  return encodeRecord(text, Buffer.byteLength(text))
}

test('any commands are read as they were written, from one record and from several joined ones', () => {
  fc.assert(
    fc.property(fc.array(fc.array(value)), (lists) => {
      const records = lists.map((values, index) => recordOf(values, index + 1))
      for (const [index, record] of records.entries()) {
        const text = textAt(record, 0)
        assert.ok(text !== undefined)
        assert.deepEqual(decodeRecordText(text), { lineage: 5, number: index + 1, values: lists[index] })
      }
      assert.deepEqual([...valuesOfRecords(joinRecords(records))], lists)
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

test('joined records have memory of their own, because it is given to another thread', () => {
  const record = recordOf(['small'])
  assert.notEqual(record.buffer.byteLength, record.length, 'small buffers share their memory')
  assert.equal(joinRecords([record]).buffer.byteLength, record.length)
})

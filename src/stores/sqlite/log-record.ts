// One record of the log: a batch of commands as bytes.
//
//   length (4 bytes) · CRC-32 of the text (4 bytes) · text
//
// The text is a line of JSON, [lineage, number, forms], and the strings of the commands one after the other. A form
// stands for one value: the length of the next string, -1 - n for a count n, or [n] for any other number. Earlier versions wrote [n] for
// all numbers. Most strings are JSON already, and inside of JSON they would have to be escaped once more.
//
// The main thread keeps the records that the database does not have yet, and the writer thread reads them in the same memory: thousands
// of commands that wait for half a second would be the largest part of what the garbage collector has to copy.

import { crc32 } from 'node:zlib'
import type { CommandBatch } from './commands.ts'

export type LogRecord = { number: number; values: CommandBatch['values'] }

export const headBytes = 8

export function recordText(lineage: number, number: number, values: CommandBatch['values']): string {
  let forms = ''
  let strings = ''
  for (const value of values) {
    if (typeof value === 'string') {
      forms += `,${value.length}`
      strings += value
    } else forms += Number.isSafeInteger(value) && value >= 0 ? `,${-1 - value}` : `,[${value}]`
  }
  return `[${lineage},${number}${forms}]\n${strings}`
}

/** Writes the record of a text into memory, from an index on. `bytes`: the length of the text in bytes. */
export function encodeRecord(text: string, bytes: number, memory: Buffer, at: number): Buffer {
  const record = memory.subarray(at, at + headBytes + bytes)
  record.write(text, headBytes)
  record.writeUInt32LE(bytes, 0)
  record.writeUInt32LE(crc32(record.subarray(headBytes)), 4)
  return record
}

/** The text of the record that begins at an index; undefined if it is not complete. */
export function textAt(bytes: Buffer, at: number): Buffer | undefined {
  if (at + headBytes > bytes.length) return undefined
  const length = bytes.readUInt32LE(at)
  const text = bytes.subarray(at + headBytes, at + headBytes + length)
  return length === 0 || text.length < length || crc32(text) !== bytes.readUInt32LE(at + 4) ? undefined : text
}

export function decodeRecordText(bytes: Buffer): LogRecord & { lineage: number } {
  const text = bytes.toString('utf8')
  let at = text.indexOf('\n') + 1
  const forms = JSON.parse(text.slice(0, at)) as [number, number, ...(number | [number])[]]
  const values: LogRecord['values'] = []
  // Every delta takes this path, so it uses an index instead of an iterator.
  for (let index = 2; index < forms.length; index += 1) {
    const form = forms[index] as number | [number]
    if (typeof form !== 'number') values.push(form[0])
    else if (form < 0) values.push(-1 - form)
    else values.push(text.slice(at, (at += form)))
  }
  return { lineage: forms[0], number: forms[1], values }
}

/** The records in as few ranges as possible: those that follow each other in memory are one. */
export function rangesOf(records: readonly Uint8Array[]): Uint8Array[] {
  const ranges: Uint8Array[] = []
  for (const record of records) {
    if (record.length === 0) continue
    const last = ranges.at(-1)
    if (last !== undefined && last.buffer === record.buffer && last.byteOffset + last.length === record.byteOffset)
      ranges[ranges.length - 1] = new Uint8Array(last.buffer, last.byteOffset, last.length + record.length)
    else ranges.push(record)
  }
  return ranges
}

/**
 * The commands of each record of a range. A record is decoded when it is asked for: all of them at once would be the largest part of
 * what the garbage collector of the writer thread has to copy.
 */
export function* valuesOfRecords(range: Uint8Array): Generator<CommandBatch['values']> {
  const bytes = Buffer.from(range.buffer, range.byteOffset, range.byteLength)
  for (let at = 0; at < bytes.length;) {
    const end = at + headBytes + bytes.readUInt32LE(at)
    yield decodeRecordText(bytes.subarray(at + headBytes, end)).values
    at = end
  }
}

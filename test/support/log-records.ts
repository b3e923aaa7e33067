// Records of the log in front of SQLite, in memory of their own.

import type { CommandBatch } from '../../src/stores/sqlite/commands.ts'
import { encodeRecord, headBytes, recordText } from '../../src/stores/sqlite/log-record.ts'

export function logRecord(number: number, values: CommandBatch['values'], lineage = 0): Buffer {
  const text = recordText(lineage, number, values)
  const bytes = Buffer.byteLength(text)
  return encodeRecord(text, bytes, Buffer.alloc(headBytes + bytes), 0)
}

// A log in front of the database. The commands of a short run change some fifty pages of the database,
// which takes several times longer than to write down the commands themselves. So the main thread
// appends them to this log and acknowledges them, and the writer thread applies them to the database a
// little later, many at once. After a crash they are applied when the store is opened.
//
// The log is two files of a fixed size that take turns: while the commands of one are being applied,
// new ones go to the other. A record is one batch of commands:
//
//   length (4 bytes) · CRC-32 of the text (4 bytes) · text
//
// The text is a line of JSON, [lineage, number, forms], and the strings of the commands one after the other. A form
// stands for one value: a number in a list is that number, and a number alone is the length of the next string. Most
// strings are JSON already, and inside of JSON they would have to be escaped once more.
//
// Numbers count up by one over both files, and the database holds the number up to which it has
// everything. The lineage is a random number that the database holds too, so that the log of another
// database is never applied.

import {
  closeSync,
  constants,
  existsSync,
  fdatasync,
  fsyncSync,
  openSync,
  readFileSync,
  rmSync,
  write,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Clock } from '../../kit/clock.ts'
import type { CommandBatch, LogState } from './commands.ts'

/** Also the limit for what the log holds in memory and what recovery has to read. */
const fileBytes = 512 * 1024
/** Larger batches go to the database at once. */
const recordBytesMax = 128 * 1024
const headBytes = 8

/**
 * A write without a sync only copies bytes to the memory of the system, so it is made on this thread: another thread would take ten times as
 * long. The system may still make it wait, for example if other programs write more than the disk can take. After a write
 * that took this long, other threads make them for a while.
 */
const slowWriteMs = 4
const slowDiskMs = 10_000

export type LogRecord = { number: number; values: CommandBatch['values'] }

/** What the names of the two files add to that of the database. */
export const logEndings = ['-log0', '-log1'] as const

const filesOf = (file: string): readonly [string, string] => [file + logEndings[0], file + logEndings[1]]

type LogFile = {
  handle: number
  /** What is written with it is on disk when it is written. */
  syncedHandle: number
  lastNumber: number
  /** The records since the last synced one. */
  unsynced: Buffer[]
}

/** The flag for writes that are on disk when they return. Not every system has it. */
const syncedWrites = constants.O_DSYNC as number | undefined

/** The log as the main thread writes it. One write at a time. */
export class CommandLog {
  static readonly isSupported = syncedWrites !== undefined

  readonly #file: string
  readonly #lineage: number
  readonly #files: readonly [LogFile, LogFile]
  #current: 0 | 1 = 0
  #position = 0
  /** The number of the last record. */
  #number: number
  readonly #clock: Pick<Clock, 'monotonic'>
  /** Until this time no write is made on this thread. */
  #slowUntil = Number.NEGATIVE_INFINITY

  /** The database must have everything that is in the files, because they are overwritten. */
  constructor(file: string, { lineage, applied }: LogState, clock: Pick<Clock, 'monotonic'>) {
    this.#file = file
    this.#clock = clock
    this.#lineage = lineage
    this.#number = applied
    const [one, other] = filesOf(file)
    this.#files = [opened(one), opened(other)]
    const folder = openSync(dirname(file), 'r')
    fsyncSync(folder)
    closeSync(folder)
  }

  /** The record of a batch; undefined if it is too large for the log, or for the room that is left. */
  record(values: CommandBatch['values']): Buffer | undefined {
    let forms = ''
    let strings = ''
    for (const value of values) {
      forms += typeof value === 'string' ? `,${value.length}` : `,[${value}]`
      if (typeof value === 'string') strings += value
    }
    if (strings.length > recordBytesMax) return undefined
    const text = `[${this.#lineage},${this.#number + 1}${forms}]\n${strings}`
    const bytes = Buffer.byteLength(text)
    if (bytes > recordBytesMax || this.#position + headBytes + bytes > fileBytes) return undefined
    const record = Buffer.allocUnsafe(headBytes + bytes)
    record.write(text, headBytes)
    record.writeUInt32LE(bytes, 0)
    record.writeUInt32LE(crc32(record.subarray(headBytes)), 4)
    return record
  }

  /** `synced`: the record and all before it survive a power cut when `done` is called. It may be called at once. After an error the log must not be used any more. */
  append(record: Buffer, synced: boolean, done: (error: Error | null) => void): void {
    const file = this.#files[this.#current]
    const position = this.#position
    // Now and not when it is written, because the files may be swapped meanwhile.
    this.#position += record.length
    this.#number += 1
    file.lastNumber = this.#number
    if (!synced) {
      file.unsynced.push(record)
      this.#write(file.handle, record, position, done)
      return
    }
    const other = this.#files[otherOf(this.#current)]
    // What was written without a sync is written again: a synced write puts only its own bytes on disk.
    const records = [...file.unsynced, record]
    const start = this.#position - records.reduce((sum, { length }) => sum + length, 0)
    file.unsynced = []
    writeAll(file.syncedHandle, records, start, (error) => {
      // Without the records before it the database could not execute this one.
      if (error !== null || other.unsynced.length === 0) return done(error)
      other.unsynced = []
      fdatasync(other.handle, done)
    })
  }

  #write(handle: number, record: Buffer, position: number, done: (error: Error | null) => void): void {
    const startedAt = this.#clock.monotonic()
    if (startedAt < this.#slowUntil) {
      writeAll(handle, [record], position, done)
      return
    }
    let failure: Error | null
    try {
      failure = shortWrite(writeSync(handle, record, 0, record.length, position), record.length)
    } catch (error) {
      failure = error as Error
    }
    const now = this.#clock.monotonic()
    if (now - startedAt >= slowWriteMs) this.#slowUntil = now + slowDiskMs
    done(failure)
  }

  /** The next records go to the other file, if the database has all that it holds. */
  swap(applied: number): void {
    const next = otherOf(this.#current)
    const file = this.#files[next]
    if (file.lastNumber > applied) return
    file.unsynced = []
    this.#current = next
    this.#position = 0
  }

  get isHalfFull(): boolean {
    return this.#position > fileBytes / 2
  }

  /** `remove`: the database has everything. */
  close(remove: boolean): void {
    for (const { handle, syncedHandle } of this.#files) {
      closeSync(handle)
      closeSync(syncedHandle)
    }
    if (remove) removeLog(this.#file)
  }
}

const otherOf = (index: 0 | 1): 0 | 1 => (index === 0 ? 1 : 0)

/** Opens a file and fills it, so that later writes neither need space nor change its size. */
function opened(path: string): LogFile {
  const handle = openSync(path, 'w+', 0o600)
  writeSync(handle, Buffer.alloc(fileBytes), 0, fileBytes, 0)
  fsyncSync(handle)
  const syncedHandle = openSync(path, constants.O_RDWR | (syncedWrites ?? 0))
  return { handle, syncedHandle, lastNumber: 0, unsynced: [] }
}

function writeAll(
  handle: number,
  records: readonly Buffer[],
  position: number,
  done: (error: Error | null) => void,
): void {
  const bytes = records.length === 1 ? (records[0] as Buffer) : Buffer.concat(records)
  write(handle, bytes, 0, bytes.length, position, (error, written) => {
    done(error ?? shortWrite(written, bytes.length))
  })
}

function shortWrite(written: number, length: number): Error | null {
  return written < length ? new Error(`Only ${written} of ${length} bytes were written.`) : null
}

export function hasLog(file: string): boolean {
  return filesOf(file).some((path) => existsSync(path))
}

export function removeLog(file: string): void {
  for (const path of filesOf(file)) rmSync(path, { force: true })
}

/** The records that the database does not have, in order. A record that was torn by a crash was not acknowledged, and ends the list. */
export function readLog(file: string, { lineage, applied }: LogState): LogRecord[] {
  const found = filesOf(file)
    .flatMap((path) => recordsOf(path, lineage))
    .filter(({ number }) => number > applied)
    .sort((one, other) => one.number - other.number)
  return found.filter(({ number }, index) => number === applied + 1 + index)
}

function recordsOf(path: string, lineage: number): LogRecord[] {
  const records: LogRecord[] = []
  const bytes = contentOf(path)
  for (let at = 0; at + headBytes <= bytes.length;) {
    const length = bytes.readUInt32LE(at)
    const text = bytes.subarray(at + headBytes, at + headBytes + length)
    if (length === 0 || text.length < length || crc32(text) !== bytes.readUInt32LE(at + 4)) break
    const { lineage: ofLineage, number, values } = recordOf(text.toString('utf8'))
    const last = records.at(-1)
    // What follows the newest record is left from the last time that the file was used.
    if (ofLineage !== lineage || (last !== undefined && number !== last.number + 1)) break
    records.push({ number, values })
    at += headBytes + length
  }
  return records
}

function recordOf(text: string): LogRecord & { lineage: number } {
  let at = text.indexOf('\n') + 1
  const [lineage, number, ...forms] = JSON.parse(text.slice(0, at)) as [number, number, ...(number | [number])[]]
  const values = forms.map((form) => (typeof form === 'number' ? text.slice(at, (at += form)) : form[0]))
  return { lineage, number, values }
}

function contentOf(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

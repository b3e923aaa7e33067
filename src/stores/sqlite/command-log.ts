// A log in front of the database. The commands of a short run change some fifty pages of the database,
// which takes several times longer than to write down the commands themselves. So the main thread
// appends them to this log and acknowledges them, and the writer thread applies them to the database a
// little later, many at once. After a crash they are applied when the store is opened.
//
// The log is two files of a fixed size that take turns: while the commands of one are being applied,
// new ones go to the other. A record is one batch of commands (log-record.ts).
//
// What the files hold is in memory too, at the same places, as long as the database does not have it: readers find there what they
// cannot find in the database, and the writer thread reads its commands there. The memory is shared and made once. Buffers of single
// records would live for half a second, which is long enough for the garbage collector to count them as old; it would then look
// through the whole heap once per second.
//
// Numbers count up by one over both files, and the database holds the number up to which it has
// everything. The lineage is a random number that the database holds too, so that the log of another
// database is never applied.

import { closeSync, existsSync, fdatasync, fsyncSync, openSync, readFileSync, rmSync, write, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../../kit/clock.ts'
import type { CommandBatch, LogState } from './commands.ts'
import { decodeRecordText, encodeRecord, headBytes, type LogRecord, recordText, textAt } from './log-record.ts'

/** The size of a file. Also the limit for what the log holds in memory and what recovery has to read. */
const fileBytesDefault = 4 * 1024 * 1024
/** A batch of several commands has at most so many characters, so that it always fits into a record. */
export const batchCharsMax = 512 * 1024
/** A single command that is larger goes to the database at once. A character takes three bytes at most. */
const recordBytesMax = 3 * batchCharsMax + 64 * 1024

/**
 * A write only copies bytes to the memory of the system, so it is made on this thread: another thread would take ten times as long.
 * Syncs are always made by other threads. The system may still make a write wait, for example if other programs write more than the
 * disk can take. After two writes in a row that took this long, or one that took very long, other threads make them too for a while.
 * A single one says little: on a busy core, another thread may have had its turn in the middle of it.
 */
const slowWriteMs = 4
const verySlowWriteMs = 50
const slowDiskMs = 10_000

/** What the names of the two files add to that of the database. */
export const logEndings = ['-log0', '-log1'] as const

const filesOf = (file: string): readonly [string, string] => [file + logEndings[0], file + logEndings[1]]

type LogFile = {
  handle: number
  /** The content that is not applied yet. */
  memory: Buffer
  lastNumber: number
  /** It has records that a power cut may lose. */
  isUnsynced: boolean
}

type Done = (error: Error | null) => void

/** The log as the main thread writes it. */
export class CommandLog {
  readonly #file: string
  readonly #lineage: number
  readonly #fileBytes: number
  readonly #files: readonly [LogFile, LogFile]
  #current: 0 | 1 = 0
  #position = 0
  /** The number of the last record. */
  #number: number
  readonly #clock: Pick<Clock, 'monotonic'>
  #lastWriteMs = 0
  /** Until this time no write is made on this thread. */
  #slowUntil = Number.NEGATIVE_INFINITY

  /** The database must have everything that is in the files, because they are overwritten. */
  constructor(
    file: string,
    { lineage, applied }: LogState,
    clock: Pick<Clock, 'monotonic'>,
    fileBytes = fileBytesDefault,
  ) {
    this.#file = file
    this.#fileBytes = fileBytes
    this.#clock = clock
    this.#lineage = lineage
    this.#number = applied
    const [one, other] = filesOf(file)
    this.#files = [opened(one, fileBytes), opened(other, fileBytes)]
    const folder = openSync(dirname(file), 'r')
    fsyncSync(folder)
    closeSync(folder)
  }

  /** The record of a batch, to be appended before the next one is made; undefined if it is too large for the log, or if both files are full. The database has the log up to `applied`. */
  record(values: CommandBatch['values'], applied: number): Buffer | undefined {
    const text = recordText(this.#lineage, this.#number + 1, values)
    if (text.length > recordBytesMax) return undefined
    const bytes = Buffer.byteLength(text)
    if (bytes > recordBytesMax) return undefined
    if (!this.#hasRoomFor(bytes)) this.swap(applied)
    if (!this.#hasRoomFor(bytes)) return undefined
    return encodeRecord(text, bytes, this.#files[this.#current].memory, this.#position)
  }

  #hasRoomFor(bytes: number): boolean {
    return this.#position + headBytes + bytes <= this.#fileBytes
  }

  /**
   * Calls `done` when the record survives a crash of the process, or, if it is `synced`, when it and all before it survive a power
   * cut. It is called at once unless it is synced or the log is slow. After an error the log must not be used any more.
   */
  append(record: Buffer, synced: boolean, done: Done): void {
    const file = this.#files[this.#current]
    const position = this.#position
    // Now and not when it is written, because the files may be swapped meanwhile.
    this.#position += record.length
    this.#number += 1
    file.lastNumber = this.#number
    file.isUnsynced = true
    const written: Done = (error) => (error !== null || !synced ? done(error) : this.sync(done))
    if (this.isSlow) writeLater(file.handle, record, position, written)
    else written(this.#writeNow(file.handle, record, position))
  }

  /** The number of the last record. */
  get number(): number {
    return this.#number
  }

  /** The system made writes wait a short time ago. */
  get isSlow(): boolean {
    return this.#clock.monotonic() < this.#slowUntil
  }

  #writeNow(handle: number, record: Buffer, position: number): Error | null {
    const startedAt = this.#clock.monotonic()
    try {
      return shortWrite(writeSync(handle, record, 0, record.length, position), record.length)
    } catch (error) {
      return error as Error
    } finally {
      const now = this.#clock.monotonic()
      const tookMs = now - startedAt
      const isSlow = tookMs >= verySlowWriteMs || Math.min(tookMs, this.#lastWriteMs) >= slowWriteMs
      if (isSlow) this.#slowUntil = now + slowDiskMs
      this.#lastWriteMs = tookMs
    }
  }

  /**
   * Calls `done` when all records that are written survive a power cut. Without those in the other file the database could not execute
   * those in this one, so both are synced.
   */
  sync(done: Done): void {
    const unsynced = this.#files.filter(({ isUnsynced }) => isUnsynced)
    let left = unsynced.length
    let failure: Error | null = null
    for (const file of unsynced) {
      file.isUnsynced = false
      fdatasync(file.handle, (error) => {
        failure ??= error
        left -= 1
        if (left === 0) done(failure)
      })
    }
  }

  /** The next records go to the other file, if the database has all that it holds. */
  swap(applied: number): void {
    const next = otherOf(this.#current)
    const file = this.#files[next]
    if (file.lastNumber > applied) return
    file.isUnsynced = false
    this.#current = next
    this.#position = 0
  }

  get isHalfFull(): boolean {
    return this.#position > this.#fileBytes / 2
  }

  /** `remove`: the database has everything. */
  close(remove: boolean): void {
    for (const { handle } of this.#files) closeSync(handle)
    if (remove) removeLog(this.#file)
  }
}

const otherOf = (index: 0 | 1): 0 | 1 => (index === 0 ? 1 : 0)

/** Opens a file and fills it, so that later writes neither need space nor change its size. */
function opened(path: string, fileBytes: number): LogFile {
  const handle = openSync(path, 'w+', 0o600)
  const zeros = Buffer.alloc(Math.min(fileBytes, 256 * 1024))
  for (let at = 0; at < fileBytes; at += zeros.length)
    writeSync(handle, zeros, 0, Math.min(zeros.length, fileBytes - at), at)
  fsyncSync(handle)
  // The system gives it real memory when it is written to.
  const memory = Buffer.from(new SharedArrayBuffer(fileBytes))
  return { handle, memory, lastNumber: 0, isUnsynced: false }
}

function writeLater(handle: number, record: Buffer, position: number, done: Done): void {
  write(handle, record, 0, record.length, position, (error, written) =>
    done(error ?? shortWrite(written, record.length)),
  )
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
  let at = 0
  for (let text = textAt(bytes, at); text !== undefined; text = textAt(bytes, at)) {
    const { lineage: ofLineage, number, values } = decodeRecordText(text)
    const last = records.at(-1)
    // What follows the newest record is left from the last time that the file was used.
    if (ofLineage !== lineage || (last !== undefined && number !== last.number + 1)) break
    records.push({ number, values })
    at += headBytes + text.length
  }
  return records
}

function contentOf(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

// Copies one database into another, empty one: all tables, from one snapshot of the source, in
// bounded memory. At the end both are read again and compared. A target is marked as unfinished
// until then, and no server starts on it; the next copy empties it and begins again.

import { AppError } from '../errors/app-error.ts'
import { DigestSum, hashesOfPieces, hashOfRow, type TableDigest } from './copy-digest.ts'
import { copiedTables, type CopyRow, type CopyTable } from './copy-tables.ts'

export interface CopySource {
  /** For messages. */
  readonly name: string
  /** The names of the columns that a copy takes over. */
  columns(table: CopyTable): Promise<string[]>
  /** How many rows the table has in the database. */
  count(table: CopyTable): Promise<number>
  /** All rows as of one moment; those of a table with pieces are ordered by their key and their order. */
  rows(table: CopyTable): AsyncIterable<CopyRow>
  /** The highest number that each table has given to a row, by table, if the database remembers it beyond its rows. */
  highestNumbers(): Promise<Record<string, number>>
  close(): Promise<void>
}

export interface CopyTarget extends CopySource {
  /** How many bytes a piece of a file has at most. */
  readonly chunkBytes: number
  /** `unfinished`: an earlier copy did not end. */
  state(): Promise<'empty' | 'unfinished' | 'used'>
  /** Empties an unfinished target, and marks it as unfinished. */
  begin(): Promise<void>
  insert(table: CopyTable, rows: readonly CopyRow[]): Promise<void>
  /** Computes counts and indexes, and goes on with the numbers of the source. */
  finish(highestNumbers: Record<string, number>): Promise<void>
  /** Removes the mark: servers may start on the target. */
  release(): Promise<void>
}

export type CopyStep = 'copying' | 'comparing'

export type CopiedTable = { table: string; source: TableDigest; target: TableDigest }

export type CopyResult = {
  tables: CopiedTable[]
  /** Of the tables that are not equal; for journals and files, the first ids that differ. */
  differences: { table: string; ids: string[] }[]
}

export type CopyOptions = {
  /** Called often. `total` is the number of rows of the table in the source. */
  onProgress?: (progress: { step: CopyStep; table: string; done: number; total: number }) => void
}

const batchRowsMax = 500
const batchCharsMax = 1024 * 1024

/** Many appends of a run are one row of the target up to this size. */
const journalRowChars = 64 * 1024

const idsNamedMax = 10

/** Throws `copy_refused` if the target is in use or the databases have different tables. The target is released only if both are equal. */
export async function copyStore(
  source: CopySource,
  target: CopyTarget,
  { onProgress = () => {} }: CopyOptions = {},
): Promise<CopyResult> {
  if ((await target.state()) === 'used') {
    throw new AppError('copy_refused', `${target.name} has rows already. Copy into an empty database.`)
  }
  for (const table of copiedTables) await checkColumns(source, target, table)
  await target.begin()
  for (const table of copiedTables) {
    const total = await source.count(table)
    const report = (done: number) => onProgress({ step: 'copying', table: table.name, done, total })
    await copyTable(table, counted(source.rows(table), report), target)
  }
  await target.finish(await source.highestNumbers())
  const tables: CopiedTable[] = []
  const differences: CopyResult['differences'] = []
  for (const table of copiedTables) {
    const total = await source.count(table)
    const report = (done: number) => onProgress({ step: 'comparing', table: table.name, done, total })
    const compared = await compareTable(table, counted(source.rows(table), report), target.rows(table))
    tables.push({ table: table.name, source: compared.source, target: compared.target })
    if (compared.differs) differences.push({ table: table.name, ids: compared.ids })
  }
  if (differences.length === 0) await target.release()
  return { tables, differences }
}

async function checkColumns(source: CopySource, target: CopySource, table: CopyTable): Promise<void> {
  const [ours, theirs] = [await source.columns(table), await target.columns(table)].map((names) =>
    names.toSorted().join(', '),
  )
  if (ours !== theirs) {
    throw new AppError(
      'copy_refused',
      `The table ${table.name} differs between ${source.name} and ${target.name}. Start this version of the server once on the source, stop it, then copy.`,
      { details: { source: ours, target: theirs } },
    )
  }
}

async function* counted(rows: AsyncIterable<CopyRow>, report: (done: number) => void): AsyncGenerator<CopyRow> {
  let done = 0
  for await (const row of rows) {
    yield row
    done += 1
    report(done)
  }
}

async function copyTable(table: CopyTable, rows: AsyncIterable<CopyRow>, target: CopyTarget): Promise<void> {
  const cut =
    table.name === 'journal'
      ? joinedLines(rows)
      : table.name === 'file_chunks'
        ? cutAgain(rows, target.chunkBytes)
        : rows
  let batch: CopyRow[] = []
  let size = 0
  for await (const row of cut) {
    batch.push(row)
    size += sizeOf(row)
    if (batch.length < batchRowsMax && size < batchCharsMax) continue
    await target.insert(table, batch)
    batch = []
    size = 0
  }
  if (batch.length > 0) await target.insert(table, batch)
}

function sizeOf(row: CopyRow): number {
  let size = 0
  for (const name in row) {
    const value = row[name]
    size += typeof value === 'string' || value instanceof Uint8Array ? value.length : 8
  }
  return size
}

/** Fewer and larger rows with the same lines. */
async function* joinedLines(rows: AsyncIterable<CopyRow>): AsyncGenerator<CopyRow> {
  let open: CopyRow | undefined
  for await (const row of rows) {
    if (
      open !== undefined &&
      open['run_id'] === row['run_id'] &&
      (open['last_seq'] as number) + 1 === row['first_seq'] &&
      (open['body'] as string).length + (row['body'] as string).length < journalRowChars
    ) {
      open = {
        ...open,
        last_seq: row['last_seq'] as number,
        body: `${open['body'] as string}\n${row['body'] as string}`,
      }
    } else {
      if (open !== undefined) yield open
      open = row
    }
  }
  if (open !== undefined) yield open
}

/** The same bytes in chunks of `size`; an empty content has one empty chunk. */
async function* cutAgain(rows: AsyncIterable<CopyRow>, size: number): AsyncGenerator<CopyRow> {
  let content: CopyRow[string] = null
  let number = 0
  let rest = Buffer.alloc(0)
  const next = (): CopyRow => {
    const chunk = { content, number, bytes: rest.subarray(0, size) }
    rest = rest.subarray(size)
    number += 1
    return chunk
  }
  const isOpen = () => content !== null && (rest.length > 0 || number === 0)
  for await (const row of rows) {
    if (row['content'] !== content) {
      if (isOpen()) yield next()
      content = row['content'] as number
      number = 0
      rest = Buffer.alloc(0)
    }
    rest = Buffer.concat([rest, row['bytes'] as Uint8Array])
    while (rest.length > size) yield next()
  }
  if (isOpen()) yield next()
}

type Comparison = { source: TableDigest; target: TableDigest; differs: boolean; ids: string[] }

async function compareTable(
  table: CopyTable,
  ours: AsyncIterable<CopyRow>,
  theirs: AsyncIterable<CopyRow>,
): Promise<Comparison> {
  const sums = [new DigestSum(), new DigestSum()] as const
  const ids: string[] = []
  if (table.pieces === undefined) {
    for await (const row of ours) sums[0].add(hashOfRow(row))
    for await (const row of theirs) sums[1].add(hashOfRow(row))
  } else {
    // Side by side, so that the ids that differ can be named without keeping all hashes.
    const other = hashesOfPieces(theirs, table.pieces)[Symbol.asyncIterator]()
    let theirNext = await other.next()
    for await (const { key, hash } of hashesOfPieces(ours, table.pieces)) {
      sums[0].add(hash)
      while (theirNext.done !== true && theirNext.value.key < key) {
        sums[1].add(theirNext.value.hash)
        if (ids.length < idsNamedMax) ids.push(String(theirNext.value.key))
        theirNext = await other.next()
      }
      const isSame = theirNext.done !== true && theirNext.value.key === key && theirNext.value.hash.equals(hash)
      if (!isSame && ids.length < idsNamedMax) ids.push(String(key))
      if (theirNext.done !== true && theirNext.value.key === key) {
        sums[1].add(theirNext.value.hash)
        theirNext = await other.next()
      }
    }
    for (; theirNext.done !== true; theirNext = await other.next()) {
      sums[1].add(theirNext.value.hash)
      if (ids.length < idsNamedMax) ids.push(String(theirNext.value.key))
    }
  }
  const [source, target] = [sums[0].result(), sums[1].result()]
  return { source, target, differs: source.rows !== target.rows || source.hash !== target.hash, ids }
}

// Reads and writes contacts as CSV. `csv-parse` reads the syntax; this file adds bounds, the
// delimiter, the columns, and the protection against formulas. The reader pauses after each
// piece of the file, so that a large file does not block the event loop.

import { Readable } from 'node:stream'
import { AppError } from '../errors/app-error.ts'
import { nextTurn } from '../kit/turns.ts'
import type { ContactDraft, FileEntry } from './contact-draft.ts'
import { type ColumnPlan, contactOfRow, exportColumns, planColumns, plansName } from './csv-columns.ts'
import { decodeFile } from './file-text.ts'
import { escaped } from './vcard-lines.ts'

export type CsvLimits = { bytes: number; rows: number; columns: number; rowChars: number }

export const csvLimits: CsvLimits = { bytes: 8 * 1024 * 1024, rows: 20_000, columns: 300, rowChars: 128 * 1024 }

/** Parsing a piece takes a few milliseconds. */
const pieceChars = 16 * 1024
/** So does the check of as many cells. */
const cellsPerTurn = 20_000

/** The rows of a file, in its order. Throws `contact_file_invalid` if the file as a whole cannot be read. */
export async function* readCsv(
  file: Uint8Array,
  options: { charset?: string | undefined; limits?: CsvLimits } = {},
): AsyncGenerator<FileEntry> {
  const limits = options.limits ?? csvLimits
  if (file.byteLength > limits.bytes) {
    throw new AppError('body_too_large', `The file is larger than ${limits.bytes} bytes. Split it.`)
  }
  const { text, delimiter, skippedLines } = withoutSeparatorLine(decodeFile(file, options.charset))
  let plan: ColumnPlan | undefined
  let index = 0
  for await (const row of rows(text, delimiter, limits)) {
    const line = row.line + skippedLines
    if (plan === undefined) {
      if (!row.ok) throw new AppError('contact_file_invalid', `The first line cannot be read. ${row.reason}`)
      plan = planOf(row.cells, limits)
      continue
    }
    if (index >= limits.rows) {
      const reason = `The file has more than ${limits.rows} rows. This row and the following ones were not read: split the file.`
      yield { ok: false, index, line, name: null, reason }
      return
    }
    yield entryOf(plan, row, index, line, limits)
    index += 1
  }
  if (plan === undefined)
    throw new AppError('contact_file_invalid', 'The file is empty. Its first line must name the columns.')
}

function planOf(header: string[], limits: CsvLimits): ColumnPlan {
  if (header.length > limits.columns) {
    throw new AppError('contact_file_invalid', `The file has more than ${limits.columns} columns. Remove some of them.`)
  }
  const plan = planColumns(header)
  if (plansName(plan)) return plan
  throw new AppError(
    'contact_file_invalid',
    'The first line must name the columns, and one of them must be the name (name, first name, 姓名 …).',
    { details: { columns: header.slice(0, 20).map((name) => name.slice(0, 100)) } },
  )
}

function entryOf(plan: ColumnPlan, row: Row, index: number, line: number, limits: CsvLimits): FileEntry {
  if (!row.ok) return { ok: false, index, line, name: null, reason: row.reason }
  const contact = contactOfRow(plan, row.cells.slice(0, limits.columns).map(withoutGuard))
  if (contact !== null) return { ok: true, index, line, contact }
  return { ok: false, index, line, name: null, reason: 'The row has no name, nickname, company or email.' }
}

type Row = { ok: true; cells: string[]; line: number } | { ok: false; reason: string; line: number }

async function* rows(text: string, delimiter: string, limits: CsvLimits): AsyncGenerator<Row> {
  // Loaded with the first file, because most servers read none.
  const { parse } = await import('csv-parse')
  let unclosed: Row | undefined
  const parser = parse({
    delimiter,
    // Named, because otherwise the first one in the file would be the only one, also if a file mixes them.
    record_delimiter: ['\r\n', '\n', '\r'],
    info: true,
    relax_column_count: true,
    // A wrong quote is read as a character. As an error it would take the following rows with it.
    relax_quotes: true,
    skip_empty_lines: true,
    // No `max_record_size`: the rows after a record that is too large would be lost without a report.
    skip_records_with_error: true,
    on_skip(error) {
      const line = typeof error?.['lines'] === 'number' ? error['lines'] : 1
      unclosed = { ok: false, line, reason: 'A quote is opened and never closed. The rows after it could not be read.' }
      return undefined
    },
  })
  for await (const parsed of Readable.from(pieces(text)).pipe(parser)) {
    const { record: cells, info } = parsed as { record: string[]; info: { lines: number } }
    const { chars, lineBreaks, isEmpty } = await sizeOf(cells)
    // Spreadsheets write empty rows as rows of delimiters.
    if (isEmpty) continue
    // `info.lines` is the last line of the record.
    const line = info.lines - lineBreaks
    if (chars <= limits.rowChars) yield { ok: true, cells, line }
    else
      yield { ok: false, line, reason: `The row is longer than ${limits.rowChars} characters. Is a quote not closed?` }
  }
  if (unclosed !== undefined) yield unclosed
}

/** A record may be the whole file, with a cell for each of its bytes. */
async function sizeOf(cells: readonly string[]): Promise<{ chars: number; lineBreaks: number; isEmpty: boolean }> {
  let chars = 0
  let lineBreaks = 0
  let isEmpty = true
  for (let at = 0; at < cells.length; at += 1) {
    if (at % cellsPerTurn === cellsPerTurn - 1) await nextTurn()
    const cell = cells[at] ?? ''
    if (cell === '') continue
    chars += cell.length
    lineBreaks += cell.match(/\r\n|\n|\r/g)?.length ?? 0
    isEmpty &&= cell.trim() === ''
  }
  return { chars, lineBreaks, isEmpty }
}

async function* pieces(text: string): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += pieceChars) {
    yield text.slice(at, at + pieceChars)
    await nextTurn()
  }
}

/** Excel reads the delimiter from a first line such as `sep=;`. Without it the one that the first row uses most is taken. */
function withoutSeparatorLine(text: string): { text: string; delimiter: string; skippedLines: number } {
  const stated = /^sep=([,;\t])\r?\n/i.exec(text)
  if (stated !== null) {
    return { text: text.slice(stated[0].length), delimiter: stated[1] ?? ',', skippedLines: 1 }
  }
  return { text, delimiter: delimiterOf(text), skippedLines: 0 }
}

/** The header decides, so the rest of the file is not searched. */
const headerCharsMax = 64 * 1024

function delimiterOf(text: string): string {
  const counts: Record<string, number> = { ',': 0, ';': 0, '\t': 0 }
  let quoted = false
  for (let at = 0; at < Math.min(text.length, headerCharsMax); at += 1) {
    const char = text[at] ?? ''
    if (char === '"') quoted = !quoted
    else if (quoted) continue
    else if (char === '\n' || char === '\r') break
    else if (counts[char] !== undefined) counts[char] += 1
  }
  return Object.entries(counts).reduce((best, next) => (next[1] > best[1] ? next : best))[0]
}

/** A spreadsheet runs a cell that begins with one of these as a formula. Apostrophes before it would be taken for the guard. */
const formula = /^'*[=+\-@\t\r]/
const guardedFormula = /^'+[=+\-@\t\r]/

function withGuard(cell: string): string {
  return formula.test(cell) ? `'${cell}` : cell
}

function withoutGuard(cell: string): string {
  return guardedFormula.test(cell) ? cell.slice(1) : cell
}

/** The first line of an export. The byte order mark makes Excel read UTF-8. */
export function csvHeader(): string {
  return `\uFEFF${exportColumns.join(',')}\r\n`
}

export function csvRow(contact: ContactDraft): string {
  const several = (texts: readonly string[]) => texts.map(escaped).join(';')
  const cells: Record<(typeof exportColumns)[number], string> = {
    uid: contact.uid ?? '',
    name: contact.name,
    alias: contact.alias ?? '',
    email: several(contact.email === null ? [] : [contact.email]),
    phone: several(contact.phone === null ? [] : [contact.phone]),
    company: contact.company ?? '',
    position: contact.position ?? '',
    tags: several(contact.tags),
    note: contact.note ?? '',
    birthday: contact.birthday ?? '',
    other_emails: several(contact.otherEmails),
    other_phones: several(contact.otherPhones),
  }
  return `${exportColumns.map((column) => quotedCell(withGuard(cells[column]))).join(',')}\r\n`
}

function quotedCell(cell: string): string {
  return /[",;\t\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell
}

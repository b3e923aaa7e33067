// The file of `polylog export`: JSON on lines. The first line says what it is, then come files and runs, and the last line has
// the number of lines and the SHA-256 of all bytes before it. A file that was cut or changed is not imported.

import { createHash, type Hash } from 'node:crypto'
import { createReadStream, statSync } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { CliError } from './exit-codes.ts'
import { isRecord } from '../kit/is-record.ts'

export const exportVersion = 1
const format = 'polylog-export'
/** The largest document of a server with large uploads; more than this is not one of our files. */
const lineBytesMax = 512 * 1024 * 1024

export type ExportHeader = { kind: 'run' | 'conversation'; id: string; exportedAt: string; server: string }

export type ExportLine = { line: Buffer; value: Record<string, unknown>; bytesRead: number }

/** Written beside its place, so that a file with its name is whole. */
export class ExportWriter {
  private readonly path: string
  private readonly handle: FileHandle
  private readonly hash: Hash = createHash('sha256')
  private lines = 0
  bytes = 0

  private constructor(path: string, handle: FileHandle) {
    this.path = path
    this.handle = handle
  }

  static async create(path: string, header: ExportHeader): Promise<ExportWriter> {
    await rm(`${path}.partial`, { force: true })
    // Conversations are private.
    const writer = new ExportWriter(path, await open(`${path}.partial`, 'wx', 0o600))
    await writer.add(JSON.stringify({ format, version: exportVersion, ...header }))
    return writer
  }

  async add(json: string): Promise<void> {
    const line = Buffer.from(`${json}\n`)
    this.hash.update(line)
    this.lines += 1
    this.bytes += line.length
    await this.handle.writeFile(line)
  }

  async finish(): Promise<{ bytes: number; sha256: string }> {
    const sha256 = this.hash.digest('hex')
    const last = Buffer.from(`${JSON.stringify({ end: true, lines: this.lines, sha256 })}\n`)
    await this.handle.writeFile(last)
    await this.handle.sync()
    await this.handle.close()
    await rename(`${this.path}.partial`, this.path)
    return { bytes: this.bytes + last.length, sha256 }
  }

  async discard(): Promise<void> {
    await this.handle.close().catch(() => {})
    await rm(`${this.path}.partial`, { force: true })
  }
}

/** Reads the whole file once. Throws if it is not one of ours, was cut or was changed. */
export async function verifyExport(path: string): Promise<ExportHeader & { runs: number; files: number }> {
  const hash = createHash('sha256')
  let header: ExportHeader | undefined
  let counted = 0
  let isEnded = false
  const found = { runs: 0, files: 0 }
  for await (const { line, value } of exportLines(path)) {
    if (isEnded) throw damaged(path, 'something follows its last line')
    if (header === undefined) {
      header = headerOf(path, value)
    } else if (value['end'] === true) {
      isEnded = true
      if (value['lines'] !== counted || value['sha256'] !== hash.digest('hex')) {
        throw damaged(path, 'its content does not fit its checksum')
      }
      continue
    } else if ('file' in value) found.files += 1
    else found.runs += 1
    hash.update(line)
    counted += 1
  }
  if (header === undefined) throw damaged(path, 'it is empty')
  if (!isEnded) throw damaged(path, 'its end is missing')
  return { ...header, ...found }
}

function headerOf(path: string, value: Record<string, unknown>): ExportHeader {
  if (value['format'] !== format) {
    throw new CliError('failed', `${path} is not a file of polylog export.`, 'export_unknown')
  }
  if (value['version'] !== exportVersion) {
    throw new CliError(
      'failed',
      `${path} has version ${String(value['version'])}; this command reads version ${exportVersion}. Use a newer polylog.`,
      'export_version',
    )
  }
  return value as ExportHeader
}

export async function* exportLines(path: string): AsyncGenerator<ExportLine> {
  let pieces: Buffer[] = []
  let pending = 0
  let bytesRead = 0
  const take = (line: Buffer): ExportLine => ({ line, value: parse(path, line), bytesRead })
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      pieces.push(chunk.subarray(start, end + 1))
      start = end + 1
      const line = Buffer.concat(pieces)
      pieces = []
      pending = 0
      bytesRead += line.length
      yield take(line)
    }
    if (start < chunk.length) {
      pieces.push(chunk.subarray(start))
      pending += chunk.length - start
      if (pending > lineBytesMax) throw damaged(path, 'it has a line that is too long')
    }
  }
  if (pieces.length > 0) {
    const line = Buffer.concat(pieces)
    bytesRead += line.length
    yield take(line)
  }
}

function parse(path: string, line: Buffer): Record<string, unknown> {
  try {
    const value = JSON.parse(line.toString('utf8')) as unknown
    if (isRecord(value)) return value
  } catch {
    // Said below.
  }
  throw damaged(path, 'it has a line that is not JSON')
}

function damaged(path: string, reason: string): CliError {
  return new CliError('checkFailed', `${path} is damaged: ${reason}. Export again.`, 'export_damaged')
}

export function sizeOf(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats?.isFile() !== true) throw new CliError('notFound', `There is no file ${path}.`, 'file_not_found')
  return stats.size
}

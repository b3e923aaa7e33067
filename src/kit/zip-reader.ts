// Reads an untrusted zip archive in memory. Limits are checked before and during unpacking.
// Unusual archives are refused, because two programs could read them differently.
//
// The central directory is the only list of files. Each entry's local header must agree
// with it, and no two entries may share bytes (zip bombs use overlapping entries).
// Files are inflated in Node's thread pool, so that a large archive does not block the server.

import { crc32, inflateRaw, type ZlibOptions } from 'node:zlib'
import { AppError } from '../errors/app-error.ts'

export type ZipFile = { path: string; body: Buffer }

export type ZipLimits = {
  filesMax: number
  /** Of all files together, unpacked. */
  totalBytesMax: number
  /** The highest ratio of unpacked to packed size of one file. Files up to `ratioFreeBytes` are exempt. */
  ratioMax: number
}

export const zipLimits: ZipLimits = { filesMax: 500, totalBytesMax: 32 * 1024 * 1024, ratioMax: 200 }

const endSignature = 0x06054b50
const directorySignature = 0x02014b50
const localSignature = 0x04034b50
const endBytes = 22
const commentBytesMax = 0xffff
const directoryBytes = 46
const localBytes = 30
const encryptedFlag = 0x1
/** Checksum and sizes follow the data; the local header may hold zeros instead. */
const descriptorFlag = 0x8
const utf8Flag = 0x800
/** The flags that change how an entry is read. They must be the same in both headers. */
const comparedFlags = encryptedFlag | descriptorFlag | utf8Flag
/** A size that is too large for its field, or unknown while writing: the zip64 extra field has it. */
const inZip64 = 0xffffffff
const zip64Field = 0x1
const pathBytesMax = 500
/** Files up to this size may have any ratio: a page of blanks compresses well and is harmless. */
const ratioFreeBytes = 1024 * 1024

type Entry = {
  path: string
  name: Buffer
  flags: number
  method: number
  crc: number
  packed: number
  size: number
  offset: number
  folder: boolean
}

type Span = { entry: Entry; from: number; to: number }

/** The files of an archive, in its order; folders and what macOS adds are left out. Throws `archive_…`. */
export async function readZip(archive: Buffer, limits: ZipLimits = zipLimits): Promise<ZipFile[]> {
  const end = findEnd(archive)
  const count = archive.readUInt16LE(end + 10)
  const directorySize = archive.readUInt32LE(end + 12)
  const directoryAt = archive.readUInt32LE(end + 16)
  if (
    archive.readUInt16LE(end + 4) !== 0 ||
    archive.readUInt16LE(end + 6) !== 0 ||
    archive.readUInt16LE(end + 8) !== count
  ) {
    throw invalid('it is one of several parts')
  }
  if (count === 0xffff || directorySize === inZip64 || directoryAt === inZip64) throw invalid('zip64 is not accepted')
  if (directoryAt + directorySize !== end) throw invalid('its directory does not end where the archive does')
  // Folders count too, because listing them costs as much.
  if (count > limits.filesMax)
    throw new AppError(
      'archive_too_many_files',
      `The archive has ${count} entries; at most ${limits.filesMax} are accepted.`,
    )
  const entries = readDirectory(archive, directoryAt, end, count)
  checkNames(entries)
  checkSizes(entries, limits)
  return unpack(archive, entries, directoryAt)
}

function findEnd(archive: Buffer): number {
  const lowest = Math.max(0, archive.length - endBytes - commentBytesMax)
  for (let at = archive.length - endBytes; at >= lowest; at--) {
    if (archive.readUInt32LE(at) === endSignature && at + endBytes + archive.readUInt16LE(at + 20) === archive.length)
      return at
  }
  throw invalid('it is not a zip archive, or it is cut off')
}

function readDirectory(archive: Buffer, from: number, to: number, count: number): Entry[] {
  const entries: Entry[] = []
  let at = from
  for (let index = 0; index < count; index++) {
    if (at + directoryBytes > to || archive.readUInt32LE(at) !== directorySignature)
      throw invalid('its directory is damaged')
    const nameLength = archive.readUInt16LE(at + 28)
    const next = at + directoryBytes + nameLength + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32)
    if (next > to) throw invalid('its directory is damaged')
    const name = archive.subarray(at + directoryBytes, at + directoryBytes + nameLength)
    const path = pathOf(name)
    const flags = archive.readUInt16LE(at + 8)
    if ((flags & encryptedFlag) !== 0) throw invalid('it is encrypted')
    const method = archive.readUInt16LE(at + 10)
    if (method !== 0 && method !== 8)
      throw invalid('it is packed in a way that is not accepted (only stored and deflate are)')
    const packed = archive.readUInt32LE(at + 20)
    const size = archive.readUInt32LE(at + 24)
    const offset = archive.readUInt32LE(at + 42)
    if (packed === inZip64 || size === inZip64 || offset === inZip64) throw invalid('zip64 is not accepted')
    checkKind(archive.readUInt16LE(at + 4) >> 8, archive.readUInt32LE(at + 38) >>> 16, path)
    const folder = path.endsWith('/')
    if (folder && size !== 0) throw invalid('a folder in it has contents')
    entries.push({ path, name, flags, method, crc: archive.readUInt32LE(at + 16), packed, size, offset, folder })
    at = next
  }
  if (at !== to) throw invalid('its directory is longer than it says')
  return entries
}

/** Accepts only plain files and folders. Archives made on Unix state the type of each entry; links and devices are refused. */
function checkKind(madeBy: number, mode: number, path: string): void {
  const kind = mode & 0o170000
  if (madeBy !== 3 && madeBy !== 19) {
    // Other systems store their own flags in this field, so only the bits of a symbolic link are refused.
    if (kind !== 0o120000) return
  }
  if (kind === 0 || kind === 0o100000 || kind === 0o040000) return
  throw new AppError(
    'archive_has_links',
    `The archive has an entry that is not a plain file: ${JSON.stringify(path)}. Pack the files themselves.`,
  )
}

function pathOf(name: Buffer): string {
  if (name.length === 0 || name.length > pathBytesMax) throw unsafe('(empty or very long)')
  let path: string
  try {
    path = new TextDecoder('utf-8', { fatal: true }).decode(name)
  } catch {
    throw invalid('a name in it is not UTF-8')
  }
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f\\]/.test(path) || path.startsWith('/') || /^[A-Za-z]:/.test(path)) throw unsafe(path)
  const parts = (path.endsWith('/') ? path.slice(0, -1) : path).split('/')
  if (parts.some((part) => part === '' || part === '.' || part === '..')) throw unsafe(path)
  return path
}

/** Refuses names that are equal on some file systems (case, Unicode form), and paths that are both a file and a folder. */
function checkNames(entries: readonly Entry[]): void {
  const key = (path: string) => path.normalize('NFC').toLowerCase()
  const seen = new Set<string>()
  const files = new Set<string>()
  for (const { path, folder } of entries) {
    const name = key(folder ? path.slice(0, -1) : path)
    if (seen.has(name)) throw invalid(`it has ${JSON.stringify(path)} twice`)
    seen.add(name)
    if (!folder) files.add(name)
  }
  for (const name of seen) {
    for (let at = name.lastIndexOf('/'); at > 0; at = name.lastIndexOf('/', at - 1)) {
      if (files.has(name.slice(0, at)))
        throw invalid(`${JSON.stringify(name.slice(0, at))} is a file and a folder in it`)
    }
  }
}

function checkSizes(entries: readonly Entry[], limits: ZipLimits): void {
  let total = 0
  for (const { packed, size, method, path } of entries) {
    total += size
    if (total > limits.totalBytesMax) throw bomb(`it unpacks to more than ${limits.totalBytesMax} bytes`)
    if (size > ratioFreeBytes && size / Math.max(packed, 1) > limits.ratioMax) {
      throw bomb(`${JSON.stringify(path)} unpacks to more than ${limits.ratioMax} times its size`)
    }
    if (method === 0 && packed !== size) throw invalid('a stored file in it has two sizes')
  }
}

async function unpack(archive: Buffer, entries: readonly Entry[], directoryAt: number): Promise<ZipFile[]> {
  const spans = entries.map((entry): Span => {
    const from = checkLocalHeader(archive, entry, directoryAt)
    const to = from + entry.packed
    if (to > directoryAt) throw invalid('a file in it is cut off')
    return { entry, from, to }
  })
  checkOverlaps(spans)
  const files: ZipFile[] = []
  for (const { entry, from, to } of spans) {
    if (!entry.folder && !isMacMetadata(entry.path))
      files.push({ path: entry.path, body: await inflate(archive.subarray(from, to), entry) })
  }
  return files
}

/** The Finder of macOS adds the attributes of files below `__MACOSX`, and `.DS_Store` to folders that were opened. */
function isMacMetadata(path: string): boolean {
  return path.startsWith('__MACOSX/') || path.split('/').at(-1) === '.DS_Store'
}

function checkOverlaps(spans: readonly Span[]): void {
  const sorted = spans.toSorted((a, b) => a.entry.offset - b.entry.offset)
  for (const [index, { to }] of sorted.entries()) {
    if (to > (sorted[index + 1]?.entry.offset ?? Infinity)) throw bomb('files in it share the same bytes')
  }
}

/** Compares the local header of an entry with the directory. Returns where the entry's data starts. */
function checkLocalHeader(archive: Buffer, entry: Entry, directoryAt: number): number {
  const { offset } = entry
  if (offset + localBytes > directoryAt || archive.readUInt32LE(offset) !== localSignature)
    throw invalid('a file in it is not where the directory says')
  const nameEnd = offset + localBytes + archive.readUInt16LE(offset + 26)
  const dataStart = nameEnd + archive.readUInt16LE(offset + 28)
  if (!archive.subarray(offset + localBytes, nameEnd).equals(entry.name)) throw invalid('a file in it has two names')
  const flags = archive.readUInt16LE(offset + 6)
  if (((flags ^ entry.flags) & comparedFlags) !== 0 || archive.readUInt16LE(offset + 8) !== entry.method)
    throw invalid('a file in it is described in two ways')
  let packed = archive.readUInt32LE(offset + 18)
  let size = archive.readUInt32LE(offset + 22)
  if (packed === inZip64 && size === inZip64) [size, packed] = zip64Sizes(archive.subarray(nameEnd, dataStart))
  const described = { crc: archive.readUInt32LE(offset + 14), packed, size }
  const unknown = (flags & descriptorFlag) !== 0
  for (const field of ['size', 'packed', 'crc'] as const) {
    if (described[field] === entry[field] || (unknown && described[field] === 0)) continue
    throw field === 'size' && size > entry.size
      ? bomb(`${JSON.stringify(entry.path)} is larger than it says`)
      : invalid('a file in it is described in two ways')
  }
  return dataStart
}

/** Programs that do not know the size of a file when they start to write it use this field also for small files. */
function zip64Sizes(extra: Buffer): [size: number, packed: number] {
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) === zip64Field && extra.readUInt16LE(at + 2) >= 16 && at + 20 <= extra.length)
      return [Number(extra.readBigUInt64LE(at + 4)), Number(extra.readBigUInt64LE(at + 12))]
  }
  throw invalid('a file in it has no size')
}

async function inflate(packed: Buffer, entry: Entry): Promise<Buffer> {
  const body = entry.method === 0 ? Buffer.from(packed) : await inflateDeflated(packed, entry)
  if (body.length > entry.size) throw bomb(`${JSON.stringify(entry.path)} is larger than it says`)
  if (body.length < entry.size) throw invalid(`${JSON.stringify(entry.path)} is shorter than it says`)
  if (crc32(body) !== entry.crc) throw invalid(`${JSON.stringify(entry.path)} is damaged`)
  return body
}

function inflateDeflated(packed: Buffer, entry: Entry): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  // Inflating stops one byte after the declared size: that proves the size wrong without holding more in memory.
  const options: ZlibOptions = { maxOutputLength: entry.size + 1, info: true }
  inflateRaw(packed, options, (cause, result) => {
    if (cause !== null) {
      reject(
        (cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
          ? bomb(`${JSON.stringify(entry.path)} is larger than it says`)
          : invalid(`${JSON.stringify(entry.path)} cannot be unpacked`),
      )
      return
    }
    // With `info` the result has this form, which the types of Node do not say.
    const { buffer, engine } = result as unknown as { buffer: Buffer; engine: { bytesWritten: number } }
    if (engine.bytesWritten === packed.length) resolve(buffer)
    else reject(invalid(`${JSON.stringify(entry.path)} ends before its data does`))
  })
  return promise
}

function invalid(why: string): AppError {
  return new AppError('archive_invalid', `The archive cannot be used: ${why}.`)
}

function bomb(why: string): AppError {
  return new AppError('archive_bomb', `The archive cannot be used: ${why}.`)
}

function unsafe(path: string): AppError {
  return new AppError(
    'archive_unsafe_path',
    `The archive has a path that is not accepted: ${JSON.stringify(path)}. Use plain relative paths.`,
  )
}

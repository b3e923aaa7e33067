// A zip file of a few files, uncompressed, for uploads.

const encoder = new TextEncoder()
const localHeader = 0x04034b50
const centralHeader = 0x02014b50
const endOfDirectory = 0x06054b50
/** Names are UTF-8. */
const utf8Names = 0x0800
const version = 20

export async function zipOf(files: ReadonlyMap<string, Blob>): Promise<Blob> {
  const parts: (Uint8Array<ArrayBuffer> | Blob)[] = []
  const directory: Uint8Array<ArrayBuffer>[] = []
  let offset = 0
  for (const [path, body] of files) {
    const name = encoder.encode(path)
    const crc = crc32(new Uint8Array(await body.arrayBuffer()))
    // Flags, method, time and date, checksum, both sizes, lengths of name and extra field.
    const common = [2, utf8Names, 2, 0, 2, 0, 2, 0, 4, crc, 4, body.size, 4, body.size, 2, name.length, 2, 0]
    const head = bytesOf(4, localHeader, 2, version, ...common)
    parts.push(head, name, body)
    directory.push(
      bytesOf(4, centralHeader, 2, version, 2, version, ...common, 2, 0, 2, 0, 2, 0, 4, 0, 4, offset),
      name,
    )
    offset += head.length + name.length + body.size
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0)
  const end = bytesOf(4, endOfDirectory, 2, 0, 2, 0, 2, files.size, 2, files.size, 4, size, 4, offset, 2, 0)
  return new Blob([...parts, ...directory, end], { type: 'application/zip' })
}

/** Pairs of a width in bytes and a number, least byte first. */
function bytesOf(...pairs: number[]): Uint8Array<ArrayBuffer> {
  const bytes: number[] = []
  for (let at = 0; at < pairs.length; at += 2) {
    for (let place = 0; place < (pairs[at] ?? 0); place++) bytes.push(((pairs[at + 1] ?? 0) >>> (8 * place)) & 0xff)
  }
  return new Uint8Array(bytes)
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) crc = (crc >>> 8) ^ (crcTable[(crc ^ byte) & 0xff] ?? 0)
  return (crc ^ 0xffffffff) >>> 0
}

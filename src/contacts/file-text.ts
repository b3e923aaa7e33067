// Decodes the bytes of an imported file. The encoding is never guessed from the content: a
// wrong guess would store wrong names. It is the byte order mark, else the charset that the
// caller names, else UTF-8.

import { AppError } from '../errors/app-error.ts'

/** Bytes that are not text in this charset give undefined. */
export function decodeText(bytes: Uint8Array, charset: string): string | undefined {
  const decoder = decoderOf(charset)
  if (decoder === undefined) return undefined
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

export function charsetIsKnown(charset: string): boolean {
  return decoderOf(charset) !== undefined
}

/** Made once per charset. A file cannot make it large, because only existing charsets are kept. */
const decoders = new Map<string, TextDecoder>()

function decoderOf(charset: string): TextDecoder | undefined {
  const label = charset.toLowerCase()
  const known = decoders.get(label)
  if (known !== undefined) return known
  try {
    const decoder = new TextDecoder(label, { fatal: true })
    decoders.set(label, decoder)
    return decoder
  } catch {
    return undefined
  }
}

/** The encoding that the byte order mark of a file tells; undefined without one. */
export function charsetOfMark(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8'
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  return undefined
}

/** The whole file as text, without its byte order mark. */
export function decodeFile(bytes: Uint8Array, charset: string | undefined): string {
  const named = charsetOfMark(bytes) ?? charset ?? 'utf-8'
  if (!charsetIsKnown(named)) {
    throw new AppError(
      'contact_file_invalid',
      `The charset "${named.slice(0, 40)}" is unknown. Save the file as UTF-8.`,
    )
  }
  const text = decodeText(bytes, named)
  if (text === undefined) {
    throw new AppError(
      'contact_file_invalid',
      `The file is not ${named.toUpperCase()} text. Save it as UTF-8, or name its charset in the content type (text/csv; charset=gb18030).`,
    )
  }
  return text
}

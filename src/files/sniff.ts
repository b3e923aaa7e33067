// Determines the media type of a file from its first bytes. What a client says about the type
// counts only for text, whose types have no marks in the bytes.

import { isUtf8 } from 'node:buffer'
import { fileKind, plainMediaType } from '../journal/media-type.ts'

type Mark = { at: number; bytes: readonly number[] }

const ascii = (at: number, text: string): Mark => ({ at, bytes: [...text].map((letter) => letter.charCodeAt(0)) })
const start = (...bytes: number[]): Mark => ({ at: 0, bytes })

/** All marks of an entry must be there. The first entry that fits counts. */
const formats: readonly (readonly [mediaType: string, ...marks: Mark[]])[] = [
  ['image/png', start(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)],
  ['image/jpeg', start(0xff, 0xd8, 0xff)],
  ['image/gif', ascii(0, 'GIF87a')],
  ['image/gif', ascii(0, 'GIF89a')],
  ['image/webp', ascii(0, 'RIFF'), ascii(8, 'WEBP')],
  ['application/pdf', ascii(0, '%PDF-')],
  ['audio/wav', ascii(0, 'RIFF'), ascii(8, 'WAVE')],
  ['audio/flac', ascii(0, 'fLaC')],
  ['audio/ogg', ascii(0, 'OggS')],
  ['audio/mpeg', ascii(0, 'ID3')],
  ['audio/mpeg', start(0xff, 0xfb)],
  ['audio/mpeg', start(0xff, 0xf3)],
  ['audio/mpeg', start(0xff, 0xf2)],
  ['audio/mp4', ascii(4, 'ftypM4A')],
  ['video/mp4', ascii(4, 'ftyp')],
  ['video/webm', start(0x1a, 0x45, 0xdf, 0xa3)],
]

/** Common endings of text files, for clients that send no type. */
const typeOfEnding: Readonly<Record<string, string>> = {
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  htm: 'text/html',
  css: 'text/css',
  json: 'application/json',
  xml: 'text/xml',
  svg: 'image/svg+xml',
  yaml: 'application/yaml',
  yml: 'application/yaml',
}

/** Undefined if the bytes are of no type that is stored, or are not what `declared` says. */
export function sniffMediaType(
  bytes: Uint8Array,
  { declared, name }: { declared: string | undefined; name: string | undefined },
): string | undefined {
  const said = plainMediaType(declared)
  const found = formats.find(([, ...marks]) => marks.every((mark) => hasMark(bytes, mark)))?.[0]
  if (found !== undefined) return found
  if (bytes.includes(0) || !isUtf8(bytes)) return undefined
  if (said !== undefined && fileKind(said) === 'text') return said
  if (said !== undefined && /^(?:image|audio|video|font)\/|^application\/pdf$/.test(said)) return undefined
  // Other types say little: many programs send a general one for any file.
  return typeOfEnding[name?.toLowerCase().split('.').at(-1) ?? ''] ?? 'text/plain'
}

function hasMark(bytes: Uint8Array, mark: Mark): boolean {
  return mark.bytes.every((byte, index) => bytes[mark.at + index] === byte)
}

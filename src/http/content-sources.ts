// The shapes in which clients send the parts of a message, and what each of them says: a text, bytes
// in base64, a URL, or the id of a stored file. Pure.

import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'

export type ContentSource =
  | { type: 'text'; text: string }
  | { type: 'stored'; fileId: string }
  | { type: 'base64'; data: string; mediaType: string | undefined; name: string | undefined }
  | { type: 'url'; url: string; mediaType: string | undefined; name: string | undefined }

const text = z.string().nullish()
/** AI SDK 7 tags the bytes of a part. */
const taggedBytes = z.object({ type: z.string(), data: text, url: text, text }).loose()
const bytesField = z.union([z.string(), taggedBytes]).nullish()
/** The fields of all shapes. A field that a shape does not have is absent. */
const anyPart = z
  .object({
    type: text,
    kind: text,
    text,
    refusal: text,
    // Chat completions: an object; Responses: a URL.
    image_url: z.union([z.string(), z.object({ url: z.string() }).loose()]).nullish(),
    file: z
      .object({ file_data: text, file_id: text, filename: text, bytes: text, uri: text, mimeType: text, name: text })
      .loose()
      .nullish(),
    input_audio: z.object({ data: z.string(), format: text }).loose().nullish(),
    file_id: text,
    file_data: text,
    file_url: text,
    filename: text,
    // Ours.
    fileId: text,
    name: text,
    // AI SDK, AG-UI.
    data: bytesField,
    image: bytesField,
    url: text,
    id: text,
    mediaType: text,
    mimeType: text,
    // LangChain.
    base64: text,
    mime_type: text,
    // Anthropic: base64, url; AG-UI: data, url.
    source: z
      .object({ type: text, data: text, value: text, url: text, media_type: text, mimeType: text, file_id: text })
      .loose()
      .nullish(),
  })
  .loose()

type AnyPart = z.infer<typeof anyPart>

/** Throws `unsupported_content`. */
export function sourceOfPart(value: unknown): ContentSource {
  if (typeof value === 'string') return { type: 'text', text: value }
  const parsed = anyPart.safeParse(value)
  if (!parsed.success) throw unsupportedPart(value)
  const part = parsed.data
  switch (part.type ?? part.kind) {
    case 'text':
    case 'input_text':
    case 'output_text':
      if (part.text != null) return { type: 'text', text: part.text }
      break
    case 'refusal':
      if (part.refusal != null) return { type: 'text', text: part.refusal }
      break
    case 'image_url':
    case 'input_image':
    case 'file':
    case 'input_file':
    case 'input_audio':
    case 'image':
    case 'audio':
    case 'video':
    case 'document':
    case 'binary': {
      const source = fileSource(part)
      if (source !== undefined) return source
      break
    }
    default:
  }
  throw unsupportedPart(value)
}

function fileSource(part: AnyPart): ContentSource | undefined {
  const { file, source } = part
  const name = part.filename ?? part.name ?? file?.filename ?? file?.name ?? undefined
  const mediaType =
    part.mediaType ??
    part.mimeType ??
    part.mime_type ??
    file?.mimeType ??
    source?.media_type ??
    source?.mimeType ??
    undefined
  const fileId = part.fileId ?? part.file_id ?? file?.file_id ?? source?.file_id
  if (fileId != null && fileId !== '') return { type: 'stored', fileId }
  const imageUrl = typeof part.image_url === 'string' ? part.image_url : part.image_url?.url
  const audio = part.input_audio
  if (audio != null) return { type: 'base64', data: audio.data, mediaType: audioType(audio.format), name }
  const tagged = [part.data, part.image].find((field) => typeof field === 'object' && field !== null)
  const words = tagged?.type === 'text' ? tagged.text : source?.type === 'text' ? source.data : undefined
  if (words != null && words !== '') return textFile(words, mediaType, name)
  const data = [part.data, part.image].find((field) => typeof field === 'string') ?? tagged?.data ?? tagged?.url
  const bytes = part.file_data ?? file?.file_data ?? file?.bytes ?? data ?? part.base64 ?? source?.data ?? source?.value
  const given = bytes ?? imageUrl ?? part.url ?? part.file_url ?? file?.uri ?? source?.url
  if (given != null && given !== '') return bytesOrUrl(given, mediaType, name)
  // AG-UI names a stored file by its id.
  return part.type === 'binary' && part.id != null && part.id !== '' ? { type: 'stored', fileId: part.id } : undefined
}

/** The URL under which this server gives the file back. */
const storedUrl = /^(?:https?:\/\/[^/?#]+)?\/v1\/files\/([^/?#]{1,200})(?:\/content)?(?:\?[^#]*)?$/

function bytesOrUrl(given: string, mediaType: string | undefined, name: string | undefined): ContentSource {
  if (/^data:/i.test(given.slice(0, 5))) return dataUrl(given, mediaType, name)
  if (given.length <= 4096) {
    const stored = storedUrl.exec(given)?.[1]
    if (stored !== undefined) return { type: 'stored', fileId: decoded(stored) }
    if (/^[a-z][a-z0-9+.-]*:/i.test(given)) return { type: 'url', url: given, mediaType, name }
  }
  return { type: 'base64', data: withoutLineBreaks(given), mediaType, name }
}

/** Many programs break base64 into lines. */
function withoutLineBreaks(base64: string): string {
  return base64.includes('\n') ? base64.replace(/\r?\n/g, '') : base64
}

function dataUrl(url: string, mediaType: string | undefined, name: string | undefined): ContentSource {
  const comma = url.indexOf(',')
  const head = url.slice(5, comma === -1 ? 0 : Math.min(comma, 500))
  if (comma === -1) throw new AppError('file_invalid', 'A data URL in a message has no comma, so it has no data.')
  const [type = '', ...parameters] = head.split(';')
  const said = type === '' ? mediaType : type
  if (parameters.at(-1)?.trim().toLowerCase() === 'base64') {
    return { type: 'base64', data: withoutLineBreaks(url.slice(comma + 1)), mediaType: said, name }
  }
  return textFile(decoded(url.slice(comma + 1)), said, name)
}

function textFile(words: string, mediaType: string | undefined, name: string | undefined): ContentSource {
  return { type: 'base64', data: Buffer.from(words).toString('base64'), mediaType: mediaType ?? 'text/plain', name }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new AppError('file_invalid', 'A URL in a message has a percent sign that is not followed by two hex digits.')
  }
}

function audioType(format: string | null | undefined): string | undefined {
  return format == null ? undefined : `audio/${format === 'mp3' ? 'mpeg' : format}`
}

function unsupportedPart(value: unknown): AppError {
  const { type, kind } = (value ?? {}) as { type?: unknown; kind?: unknown }
  const named = JSON.stringify(type ?? kind ?? null)?.slice(0, 100)
  return new AppError(
    'unsupported_content',
    `Content of type ${named} is not supported here, or has no data; send text, or an image or file as base64, as a data URL or by the id of an upload.`,
  )
}

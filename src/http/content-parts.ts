// Reads the content of a message: a string, or a list of parts in the shapes that clients send
// (OpenAI's chat completions and Responses, the AI SDK's messages and UI messages, AG-UI, Anthropic).
// Bytes in the request are stored as files; a part of the result only refers to them.

import { AppError } from '../errors/app-error.ts'
import { type FileService, partOfFile } from '../files/file-service.ts'
import { fileLabel, filesOf, textOfParts } from '../journal/message-parts.ts'
import type { Part } from '../journal/part.ts'
import { plainMediaType } from '../journal/media-type.ts'
import { asUser } from '../kit/caller.ts'
import { type ContentSource, sourceOfPart } from './content-sources.ts'

export type ContentDependencies = {
  files: FileService
  owner: string
  /** True: nothing is stored, and the result is only text. For messages that the server has already. */
  textOnly?: boolean
}

/** `parts` is present only if there is a part that is not text; `text` is then their projection. */
export type ReadContent = { text: string; parts?: Part[] }

/** Of one message. */
const filesMax = 20

/** Throws `unsupported_content`, `file_invalid`, `file_not_found`, `file_url_refused` or what `FileService.put` throws. */
export async function readContent(content: unknown, dependencies: ContentDependencies): Promise<ReadContent> {
  if (content === null || content === undefined) return { text: '' }
  if (typeof content === 'string') return { text: content }
  if (!Array.isArray(content)) throw new AppError('unsupported_content', 'content must be a text or a list of parts.')
  // All parts are checked before the first file is stored.
  const sources = content.map(sourceOfPart)
  if (sources.filter(({ type }) => type !== 'text').length > filesMax) {
    throw new AppError('unsupported_content', `A message may have at most ${filesMax} files; send fewer.`)
  }
  const parts: Part[] = []
  for (const source of sources) parts.push(await partOf(source, dependencies))
  return filesOf(parts).length === 0 || dependencies.textOnly === true
    ? { text: textOfParts(parts) }
    : { text: textOfParts(parts), parts }
}

async function partOf(source: ContentSource, { files, owner, textOnly }: ContentDependencies): Promise<Part> {
  switch (source.type) {
    case 'text':
      return source
    case 'stored': {
      if (textOnly !== true) return partOfFile(await files.get(asUser(owner), source.fileId))
      const row = await files.get(asUser(owner), source.fileId).catch(() => undefined)
      return row === undefined ? { type: 'text', text: '[file]' } : partOfFile(row)
    }
    case 'base64': {
      const { data, mediaType, name } = source
      const size = Math.floor((data.length * 3) / 4) - (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0)
      if (textOnly === true) {
        const shown = plainMediaType(mediaType) ?? 'application/octet-stream'
        return { type: 'text', text: fileLabel({ mediaType: shown, size, ...(name && { name }) }) }
      }
      files.checkSize(size)
      if (!/^[\w+/-]*={0,2}$/.test(data))
        throw new AppError('file_invalid', 'The data of a file in a message is not base64.')
      return partOfFile(await files.put(owner, { bytes: Buffer.from(data, 'base64'), mediaType, name }))
    }
    case 'url':
      if (textOnly === true) return { type: 'text', text: '[file]' }
      return partOfFile(await files.putFromUrl(owner, source.url, { mediaType: source.mediaType, name: source.name }))
  }
}

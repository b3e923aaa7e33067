// Which files the client of a provider can send, and how. A file that it cannot send is left out,
// and the label in the text of its message stands for it.

import { type FileKind, fileKind } from '../journal/media-type.ts'
import { fileLabel } from '../journal/message-parts.ts'
import type { ModelContent, ModelFile, ModelMessage } from './model.ts'

export type FileSupport = {
  kinds: ReadonlySet<FileKind>
  /** Whether the result of a tool call may have files. If not, a message of the user brings them. */
  inResults: boolean
}

export type LoadedFile = ModelFile & { data: Uint8Array }

/** The chat-completions API. */
export const chatFiles: FileSupport = { kinds: new Set(['image', 'pdf']), inResults: false }
const withResults: FileSupport = { kinds: new Set(['image', 'pdf']), inResults: true }
const googleFiles: FileSupport = { kinds: new Set(['image', 'pdf', 'audio', 'video']), inResults: true }

/** `provider` is the name that an adapter of the AI SDK has, for example `openai.responses`. */
export function fileSupportOf(provider: string): FileSupport {
  if (provider.startsWith('google')) return googleFiles
  return provider.startsWith('anthropic') || provider.endsWith('.responses') ? withResults : chatFiles
}

function isSent(file: ModelFile, { kinds }: FileSupport): file is LoadedFile {
  return file.data !== undefined && kinds.has(fileKind(file.mediaType))
}

export function sentFiles(files: readonly ModelFile[] | undefined, support: FileSupport): LoadedFile[] {
  return (files ?? []).filter((file) => isSent(file, support))
}

/** The parts of a message without empty texts, which some providers refuse; never none. */
export function sentParts(
  { content, parts }: Extract<ModelMessage, { role: 'user' }>,
  support: FileSupport,
): (Extract<ModelContent, { type: 'text' }> | ({ type: 'file' } & LoadedFile))[] {
  const sent = (parts ?? []).map((part) => {
    if (part.type === 'text') return part
    return isSent(part, support) ? part : { type: 'text' as const, text: fileLabel(part) }
  })
  const shown = sent.filter((part) => part.type !== 'text' || part.text.trim() !== '')
  return shown.length === 0 ? [{ type: 'text', text: content }] : shown
}

/** For APIs whose results are only text: after the results of a step, a message of the user brings their files. */
export function resultFilesMessage(messages: readonly ModelMessage[], support: FileSupport): readonly ModelMessage[] {
  if (!messages.some((message) => message.role === 'tool' && sentFiles(message.files, support).length > 0)) {
    return messages
  }
  const all: ModelMessage[] = []
  let parts: ModelContent[] = []
  for (const [index, message] of messages.entries()) {
    all.push(message)
    if (message.role !== 'tool') continue
    const files = sentFiles(message.files, support)
    if (files.length > 0) {
      parts.push({ type: 'text', text: `Files of the result of ${message.name} (${message.callId}):` })
      for (const file of files) parts.push({ type: 'file', ...file })
    }
    if (parts.length > 0 && messages[index + 1]?.role !== 'tool') {
      all.push({ role: 'user', content: 'Files of the results.', parts })
      parts = []
    }
  }
  return all
}

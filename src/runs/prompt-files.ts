// Loads the files of a prompt. The prompt names them by their id; here they get their bytes, as far as
// the model can read them and they are not too large together. A file that is left out is shown by its
// label. The bytes are read again for every step, so a run that goes on after a crash has them too.

import type { FileService } from '../files/file-service.ts'
import type { Engines } from '../engines/engine.ts'
import { AppError } from '../errors/app-error.ts'
import type { RunSpec } from '../journal/event.ts'
import { type FileKind, fileKind } from '../journal/media-type.ts'
import { fileLabel, filesOf } from '../journal/message-parts.ts'
import type { FileReference, Part } from '../journal/part.ts'
import type { ModelContent, ModelFacts, ModelFile, ModelMessage, ModelTable } from '../models/model.ts'

/** All files of one request together. In base64 they are a third larger, and some providers accept 20 MB in all. */
const promptBytesMax = 14 * 1024 * 1024
/** How much of one text file a model is shown. */
const textBytesMax = 512 * 1024

export type PromptFileDependencies = {
  files: Pick<FileService, 'read'>
  owner: string
  /** What the model reads, besides text. */
  reads(kind: FileKind): boolean
  bytesMax?: number
}

/** The same messages, with the bytes of their files. The same list if there are none, so that a run does not keep two while it waits for its model. */
export async function loadPromptFiles(
  messages: ModelMessage[],
  dependencies: PromptFileDependencies,
): Promise<ModelMessage[]> {
  if (!messages.some(hasFiles)) return messages
  const left = leftOut(messages, dependencies)
  const load = async (file: ModelFile): Promise<ModelContent> =>
    left.has(file) ? { type: 'file', ...file } : await loaded(file, dependencies)
  const result: ModelMessage[] = []
  for (const message of messages) {
    if (message.role === 'user' && message.parts !== undefined) {
      const parts: ModelContent[] = []
      for (const part of message.parts) parts.push(part.type === 'text' ? part : await load(part))
      result.push({ ...message, parts })
    } else if (message.role === 'tool' && message.files !== undefined) {
      const parts: ModelContent[] = []
      for (const file of message.files) parts.push(await load(file))
      result.push(withResultFiles(message, parts))
    } else result.push(message)
  }
  return result
}

function hasFiles(message: ModelMessage): boolean {
  return message.role === 'user' ? message.parts !== undefined : message.role === 'tool' && message.files !== undefined
}

function withResultFiles(
  { files: _files, ...message }: Extract<ModelMessage, { role: 'tool' }>,
  parts: readonly ModelContent[],
): ModelMessage {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  const files = parts.flatMap((part) => (part.type === 'file' ? [part] : []))
  return {
    ...message,
    content: [message.content, ...texts].filter((text) => text !== '').join('\n'),
    ...(files.length === 0 ? {} : { files }),
  }
}

/** For an engine that takes only text: the texts of text files are part of the message, other files are labels. */
export function withFilesAsText(messages: readonly ModelMessage[]): ModelMessage[] {
  return messages.map((message) => {
    if (message.role !== 'user' || message.parts === undefined) return message
    const content = message.parts.map((part) => (part.type === 'text' ? part.text : fileLabel(part))).join('\n')
    return { role: 'user', content }
  })
}

async function loaded(file: ModelFile, { files, owner, reads }: PromptFileDependencies): Promise<ModelContent> {
  const kind = fileKind(file.mediaType)
  if (kind !== 'text' && !reads(kind)) return { type: 'file', ...file }
  let bytes: Uint8Array
  try {
    ;({ bytes } = await files.read(owner, file.fileId))
  } catch (error) {
    if (error instanceof AppError && error.code === 'file_not_found') return { type: 'file', ...file }
    throw error
  }
  return kind === 'text' ? { type: 'text', text: textOf(file, bytes) } : { type: 'file', ...file, data: bytes }
}

function textOf(file: ModelFile, bytes: Uint8Array): string {
  const cut = bytes.length > textBytesMax
  // A character that the cut divides is dropped.
  const text = new TextDecoder().decode(bytes.subarray(0, textBytesMax), { stream: cut })
  return `${fileLabel(file)}\n${text}${cut ? `\n[cut: ${bytes.length} bytes in all]` : ''}\n[end of the file]`
}

function sizeInPrompt({ mediaType, size }: ModelFile): number {
  return fileKind(mediaType) === 'text' ? Math.min(size, textBytesMax) : size
}

/**
 * The oldest files, if all of them are too large together. They are left out in portions of half the limit, so that the
 * beginning of the prompt rarely changes and the provider can cache it. What the newest message of the user brings, and what
 * came after it, is never left out.
 */
function leftOut(
  messages: readonly ModelMessage[],
  { bytesMax = promptBytesMax }: PromptFileDependencies,
): Set<ModelFile> {
  const asked = messages.findLastIndex(({ role }) => role === 'user')
  const total = messages.flatMap(filesIn).reduce((sum, file) => sum + sizeInPrompt(file), 0)
  const dropped = new Set<ModelFile>()
  if (total <= bytesMax) return dropped
  const portion = bytesMax / 2
  let due = Math.ceil((total - bytesMax) / portion) * portion
  for (const file of messages.slice(0, asked).flatMap(filesIn)) {
    if (due <= 0) break
    dropped.add(file)
    due -= sizeInPrompt(file)
  }
  return dropped
}

function filesIn(message: ModelMessage): ModelFile[] {
  if (message.role === 'tool') return message.files ?? []
  if (message.role !== 'user') return []
  return (message.parts ?? []).filter((part) => part.type === 'file')
}

/** An estimate of the tokens that the files of a message take, in addition to its text. */
export function fileTokens(message: ModelMessage): number {
  return filesIn(message).reduce((sum, file) => sum + tokensOfFile(file), 0)
}

function tokensOfFile(file: ModelFile): number {
  switch (fileKind(file.mediaType)) {
    case 'image':
      return 1600
    case 'pdf':
      return 1500 + Math.ceil(file.size / 100)
    case 'audio':
    case 'video':
      return Math.ceil(file.size / 500)
    case 'text':
      return Math.ceil(sizeInPrompt(file) / 3)
    case 'other':
      return 0
  }
}

/** Only these providers are sent sound and moving pictures. */
const mediaProviders = new Set(['google'])

/** Whether the model `provider/model` can be given files of this kind. What is not known counts as yes. */
export function readsKind(model: string, facts: ModelFacts | undefined, kind: FileKind): boolean {
  switch (kind) {
    case 'text':
      return true
    case 'image':
      return facts?.vision !== false
    case 'pdf':
      return facts?.pdf !== false
    case 'audio':
    case 'video':
      return mediaProviders.has(model.slice(0, model.indexOf('/')))
    case 'other':
      return false
  }
}

const kindNames: Record<FileKind, string> = {
  image: 'images',
  pdf: 'PDF files',
  audio: 'audio',
  video: 'video',
  text: 'text files',
  other: 'files of this type',
}

/**
 * Throws `model_cannot_read` if the question has a file that the engine of the run, its model or a model that may take over
 * cannot read.
 */
export function checkReadable(
  parts: readonly Part[] | undefined,
  { model, fallbackModels = [], engine }: Pick<RunSpec, 'model' | 'fallbackModels' | 'engine'>,
  { modelTable, engines }: { modelTable: ModelTable; engines: Pick<Engines, 'get'> },
): void {
  for (const file of filesOf(parts)) {
    const kind = fileKind(file.mediaType)
    if (engines.get(engine).kind === 'turn') {
      if (kind !== 'text') throw cannotRead(`The engine ${engine}`, file, { engine })
      continue
    }
    const unable = [model, ...fallbackModels].find((name) => !readsKind(name, modelTable.find(name), kind))
    if (unable === undefined) continue
    const role = unable === model ? '' : ', which answers if the other models cannot,'
    throw cannotRead(`The model ${unable}${role}`, file, { model: unable })
  }
}

function cannotRead(who: string, file: FileReference, details: Record<string, string>): AppError {
  const { mediaType } = file
  return new AppError(
    'model_cannot_read',
    `${who} cannot read ${kindNames[fileKind(mediaType)]} (${fileLabel(file)}). Use another model, or send the question without the file.`,
    { details: { ...details, mediaType } },
  )
}

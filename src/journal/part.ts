// The parts of a message: text and files. The bytes of a file are never here; they are in the
// file store, under `fileId`. Wires that know only text show the projection `textOfParts`.

import { z } from 'zod'

const fileFields = {
  fileId: z.string().min(1),
  mediaType: z.string().min(1),
  name: z.string().min(1).optional(),
  /** In bytes. */
  size: z.number().int().nonnegative(),
}

/** A reference to a stored file. */
export const fileReference = z.object(fileFields)
const filePart = z.object({ type: z.literal('file'), ...fileFields })

export const part = z.discriminatedUnion('type', [z.object({ type: z.literal('text'), text: z.string() }), filePart])

export type Part = z.infer<typeof part>
export type FileReference = z.infer<typeof fileReference>
export type FilePart = z.infer<typeof filePart>

/** Text parts as they are; each file on a line of its own, as a short name in brackets. */
export function textOfParts(parts: readonly Part[]): string {
  let text = ''
  let afterFile = false
  for (const item of parts) {
    const piece = item.type === 'text' ? item.text : fileLabel(item)
    if (piece === '') continue
    const breaks = text !== '' && (item.type === 'file' || afterFile) && !text.endsWith('\n')
    text += breaks ? `\n${piece}` : piece
    afterFile = item.type === 'file'
  }
  return text
}

/** For example `[photo.png, image/png, 34.2 KB]`. */
export function fileLabel({ name, mediaType, size }: Pick<FileReference, 'name' | 'mediaType' | 'size'>): string {
  return `[${name === undefined ? '' : `${name}, `}${mediaType}, ${sizeLabel(size)}]`
}

function sizeLabel(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  const [value, unit] = bytes < 999_950 ? [bytes / 1000, 'KB'] : [bytes / 1_000_000, 'MB']
  return `${value.toFixed(1).replace(/\.0$/, '')} ${unit}`
}

/** The files among the parts; empty if there are none, or no parts at all. */
export function filesOf(parts: readonly Part[] | undefined): FilePart[] {
  return (parts ?? []).filter((item) => item.type === 'file')
}

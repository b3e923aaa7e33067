// What the parts of a message say as text, and which files they refer to. Apart from the schemas in part.ts, because the
// writer thread of SQLite uses it, and the schema library would take half of the time and memory of its start.

import type { FilePart, FileReference, Part } from './part.ts'

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

// Stores the files of a tool result. The tool has done its work, so a file that cannot be stored never
// makes the call a failed one; it is left out, and a note says why.

import type { FileService } from '../files/file-service.ts'
import { partOfFile } from '../files/file-service.ts'
import { AppError } from '../errors/app-error.ts'
import type { FileReference } from '../journal/part.ts'
import type { ToolFile } from '../tools/tool.ts'

/** Of one result. Each is part of the event, and perhaps of the prompt. */
const resultFilesMax = 20

export type StoredFiles = { files: FileReference[]; notes: string[] }

export async function storeResultFiles(
  files: readonly ToolFile[],
  put: (file: ToolFile) => ReturnType<FileService['put']>,
): Promise<StoredFiles> {
  const stored: FileReference[] = []
  const notes: string[] = []
  for (const file of files.slice(0, resultFilesMax)) {
    try {
      const { type: _type, ...reference } = partOfFile(await put(file))
      stored.push(reference)
    } catch (error) {
      const why = error instanceof AppError ? error.message : 'It could not be stored.'
      notes.push(`[a file of the result is left out: ${why}]`)
    }
  }
  if (files.length > resultFilesMax) notes.push(`[${files.length - resultFilesMax} more files are left out]`)
  return { files: stored, notes }
}

// Files of users. The bytes are stored once for each owner and content, however often the same
// file is sent. A file is kept as long as a message or a run refers to it; an unreferenced one
// until `expireFiles` removes it. References are written together with the message or the run
// (see `MessageRow.parts`, `AcceptInput.files` and `RunWrite.files`).

import type { RowPage } from './row-page.ts'

export type FileRow = {
  id: string
  owner: string
  /** Of the bytes, in hex. */
  sha256: string
  mediaType: string
  name: string | null
  /** In bytes. */
  size: number
  createdAt: number
}

export interface FileStore {
  /**
   * Stores a file. If the owner has a file with the same content, name and media type, that file is returned and counts as
   * new for `expireFiles`. Throws `file_storage_full` if the different contents of the owner would have more than
   * `ownerBytesMax` bytes.
   */
  putFile(row: FileRow, bytes: Uint8Array, ownerBytesMax: number): Promise<FileRow>
  readFile(id: string): Promise<FileRow | undefined>
  /** Undefined if there is no such file. */
  readFileBytes(id: string): Promise<Uint8Array | undefined>
  /** Newest first. `before`: only files that were stored before this one. */
  listFiles(owner: string, page: { limit: number; before?: string }): Promise<RowPage<FileRow>>
  /** `in_use`: a message or a run refers to it, and it was not removed. */
  deleteFile(owner: string, id: string): Promise<'deleted' | 'missing' | 'in_use'>
  /** Removes at most `limit` files that no message and no run refers to and that were last put before `before`. Returns how many. */
  expireFiles(before: number, limit: number): Promise<number>
}

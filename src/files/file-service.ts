// Files of users: stores and reads them, and checks their owner, size and type.

import { AppError } from '../errors/app-error.ts'
import type { FilePart } from '../journal/part.ts'
import { type Caller, owns } from '../kit/caller.ts'
import type { Clock } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import type { Ids } from '../kit/ids.ts'
import type { FileRow, FileStore } from '../stores/file-store.ts'
import type { RowPage } from '../stores/row-page.ts'
import { AllowedHosts } from './allowed-hosts.ts'
import type { NewFile } from './new-file.ts'
import { sniffMediaType } from './sniff.ts'
import { fetchFile } from './url-fetcher.ts'

export type FileServiceDependencies = {
  store: FileStore
  clock: Pick<Clock, 'now' | 'after'>
  /** The hosts from which files may be fetched; absent: none. */
  fetchFrom?: AllowedHosts
  ids: Ids
  limits: {
    /** The largest file. */
    fileBytes: number
    /** All different contents of one user together. */
    ownerBytes: number
  }
}

const nameCharsMax = 200

export class FileService {
  private readonly dependencies: FileServiceDependencies

  constructor(dependencies: FileServiceDependencies) {
    this.dependencies = dependencies
  }

  /** The same content with the same name is stored once for each owner. Throws `file_too_large`, `file_invalid` or `file_type_unsupported`. */
  async put(owner: string, file: NewFile): Promise<FileRow> {
    const { store, limits } = this.dependencies
    return await store.putFile(await this.describe(owner, file), file.bytes, limits.ownerBytes)
  }

  /** The row that `put` would store, if the owner does not have the file. Throws as `put` does. */
  async describe(owner: string, file: NewFile): Promise<FileRow> {
    const { clock, ids } = this.dependencies
    const { bytes } = file
    this.checkSize(bytes.byteLength)
    if (bytes.byteLength === 0) throw new AppError('file_invalid', 'The file is empty; send its bytes.')
    const name = cleanName(file.name)
    const mediaType = sniffMediaType(bytes, { declared: file.mediaType, name })
    if (mediaType === undefined) throw unsupported(file.mediaType)
    // Hashed in another thread, because a large file takes long.
    const sha256 = Buffer.from(await crypto.subtle.digest('SHA-256', new Uint8Array(bytes))).toString('hex')
    return {
      id: `file_${ids()}`,
      owner,
      sha256,
      mediaType,
      name: name ?? null,
      size: bytes.byteLength,
      createdAt: clock.now(),
    }
  }

  /** Fetches and stores a file that a message names by URL. Throws `file_url_refused` unless the operator allows its host. */
  async putFromUrl(owner: string, url: string, said: Omit<NewFile, 'bytes'> = {}): Promise<FileRow> {
    const { clock, limits, fetchFrom = new AllowedHosts([]) } = this.dependencies
    const fetched = await fetchFile(url, { allowed: fetchFrom, clock, bytesMax: limits.fileBytes })
    return await this.put(owner, { ...fetched, ...defined({ name: said.name, mediaType: said.mediaType }) })
  }

  /** Throws `file_too_large`. For callers that know the size before they have the bytes. */
  checkSize(bytes: number): void {
    const { fileBytes } = this.dependencies.limits
    if (bytes > fileBytes) {
      throw new AppError('file_too_large', `A file may have at most ${fileBytes} bytes; this one has ${bytes}.`)
    }
  }

  async get(caller: Caller, id: string): Promise<FileRow> {
    const row = await this.dependencies.store.readFile(id)
    if (row === undefined || !owns(caller, row)) throw fileNotFound(id)
    return row
  }

  /** The file of this owner, with its bytes. */
  async read(owner: string, id: string): Promise<{ row: FileRow; bytes: Uint8Array }> {
    const row = await this.dependencies.store.readFile(id)
    const bytes = row?.owner === owner ? await this.dependencies.store.readFileBytes(id) : undefined
    if (row === undefined || bytes === undefined) throw fileNotFound(id)
    return { row, bytes }
  }

  /** Newest first. */
  async list(owner: string, page: { limit: number; before?: string | undefined }): Promise<RowPage<FileRow>> {
    const { limit, before } = page
    return await this.dependencies.store.listFiles(owner, { limit, ...defined({ before }) })
  }

  /** Throws `file_in_use` if a message or a run refers to the file. */
  async delete(caller: Caller, id: string): Promise<void> {
    const row = await this.get(caller, id)
    const outcome = await this.dependencies.store.deleteFile(row.owner, id)
    if (outcome === 'missing') throw fileNotFound(id)
    if (outcome === 'in_use') {
      throw new AppError(
        'file_in_use',
        'A message or a run refers to this file, so it is kept. Delete the conversation first.',
      )
    }
  }
}

/** How a message refers to the file. */
export function partOfFile({ id, mediaType, name, size }: FileRow): FilePart {
  return { type: 'file', fileId: id, mediaType, ...defined({ name: name ?? undefined }), size }
}

export function fileNotFound(id: string): AppError {
  return new AppError('file_not_found', `There is no file ${JSON.stringify(id.slice(0, 200))}.`)
}

function unsupported(declared: string | undefined): AppError {
  const said = declared === undefined ? '' : ` The request says ${JSON.stringify(declared.slice(0, 100))}.`
  return new AppError(
    'file_type_unsupported',
    `The bytes are of no supported type.${said} Send PNG, JPEG, GIF, WebP, PDF, audio, video, or text in UTF-8.`,
  )
}

/** The last part of a path, without characters that would break a line or the brackets around the name. */
function cleanName(given: string | undefined): string | undefined {
  const last = given?.split(/[/\\]/).at(-1) ?? ''
  // eslint-disable-next-line no-control-regex
  const name = last.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029[\]]/g, ' ').trim()
  const cut = [...name].slice(0, nameCharsMax).join('').toWellFormed()
  return cut === '' ? undefined : cut
}

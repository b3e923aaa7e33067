// Files of users. The bytes of one content are written in chunks, each in a commit of its own, so
// that a large file never holds up the commits of runs; the row of the file comes last and makes
// it visible. A content whose file never came is removed by `expireFiles`.

import type { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors/app-error.ts'
import type { FileRow, FileStore } from '../file-store.ts'
import type { RowPage } from '../row-page.ts'
import type { FileCommands, Handlers } from './commands.ts'
import type { Row } from './connection.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'

/** Divisible by 3, so that its base64 has no padding. */
export const chunkBytes = 192 * 1024

const fileColumns = `SELECT files.position, files.id, files.owner, files.media_type, files.name, files.created_at,
    file_contents.sha256, file_contents.size
  FROM files JOIN file_contents ON file_contents.id = files.content`

function toFileRow(row: Row): FileRow {
  return {
    id: row.id as string,
    owner: row.owner as string,
    sha256: row.sha256 as string,
    mediaType: row.media_type as string,
    name: row.name as string | null,
    size: row.size as number,
    createdAt: row.created_at as number,
  }
}

export function fileStore({ db, read, write }: PartAccess): FileStore {
  const reader = fileReader(db)

  async function putChunks(row: FileRow, bytes: Uint8Array, ownerBytesMax: number): Promise<void> {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const { owner, sha256, size, createdAt } = row
    for (let number = 0; number < chunkCount(size); number += 1) {
      const body = buffer.toString('base64', number * chunkBytes, Math.min((number + 1) * chunkBytes, size))
      await write('putFileChunk', { owner, sha256, size, number, body, at: createdAt, ownerBytesMax })
    }
  }

  return {
    async putFile(row, bytes, ownerBytesMax) {
      // Usually the bytes are new. If they are stored already, nothing has to be written again.
      const stored = (await read(() => reader.hasContent(row))) ? await write('putFile', row) : null
      if (stored !== null) return stored
      await putChunks(row, bytes, ownerBytesMax)
      const created = await write('putFile', row)
      if (created === null) throw new AppError('store_busy', 'The file could not be stored. Send it again.')
      return created
    },
    readFile: (id) => read(() => reader.row(id)),
    async readFileBytes(id) {
      const found = await read(() => reader.content(id))
      if (found === undefined) return undefined
      const chunks: Uint8Array[] = []
      for (let number = 0; number < chunkCount(found.size); number += 1) {
        // Lets other work of this thread go on between two chunks.
        if (number > 0) await new Promise((resolve) => setImmediate(resolve))
        const chunk = await read(() => reader.chunk(found.id, number))
        if (chunk === undefined) return undefined
        chunks.push(chunk)
      }
      return Buffer.concat(chunks, found.size)
    },
    listFiles: (owner, page) => read(() => reader.list(owner, page)),
    deleteFile: (owner, id) => write('deleteFile', { owner, id }),
    expireFiles: (before, limit) => write('expireFiles', { before, limit }),
  }
}

/** An empty file has one empty chunk. */
function chunkCount(size: number): number {
  return Math.max(1, Math.ceil(size / chunkBytes))
}

function fileReader(db: DatabaseSync) {
  const byId = db.prepare(`${fileColumns} WHERE files.id = ?`)
  const contentOf = db.prepare(
    'SELECT file_contents.id, size FROM files JOIN file_contents ON file_contents.id = files.content WHERE files.id = ?',
  )
  const content = db.prepare('SELECT id FROM file_contents WHERE owner = ? AND sha256 = ?')
  const chunk = db.prepare('SELECT bytes FROM file_chunks WHERE content = ? AND number = ?')
  const newest = db.prepare(`${fileColumns} WHERE files.owner = ? ORDER BY files.position DESC LIMIT ?`)
  const newestBefore = db.prepare(
    `${fileColumns} WHERE files.owner = ? AND files.position < (SELECT position FROM files WHERE id = ?)
     ORDER BY files.position DESC LIMIT ?`,
  )
  return {
    row(id: string): FileRow | undefined {
      const row = byId.get(id)
      return row === undefined ? undefined : toFileRow(row)
    },
    content(id: string): { id: number; size: number } | undefined {
      return contentOf.get(id) as { id: number; size: number } | undefined
    },
    hasContent: ({ owner, sha256 }: FileRow): boolean => content.get(owner, sha256) !== undefined,
    chunk: (contentId: number, number: number) => chunk.get(contentId, number)?.bytes as Uint8Array | undefined,
    list(owner: string, { limit, before }: { limit: number; before?: string }): RowPage<FileRow> {
      return before === undefined
        ? readPage(newest, [owner], limit, toFileRow)
        : readPage(newestBefore, [owner, before], limit, toFileRow)
    },
  }
}

export type FileWriter = ReturnType<typeof fileWriter>

export function fileWriter(db: DatabaseSync) {
  const reader = fileReader(db)
  const content = db.prepare('SELECT id FROM file_contents WHERE owner = ? AND sha256 = ?')
  const ownerBytes = db.prepare('SELECT coalesce(sum(size), 0) AS bytes FROM file_contents WHERE owner = ?')
  const insertContent = db.prepare('INSERT INTO file_contents (owner, sha256, size, put_at) VALUES (?, ?, ?, ?)')
  const touchContent = db.prepare('UPDATE file_contents SET put_at = max(put_at, ?) WHERE id = ?')
  const insertChunk = db.prepare('INSERT OR IGNORE INTO file_chunks (content, number, bytes) VALUES (?, ?, ?)')
  const countChunks = db.prepare('SELECT count(*) AS count FROM file_chunks WHERE content = ?')
  const sameFile = db.prepare('SELECT id FROM files WHERE content = ? AND media_type = ? AND name IS ?')
  const touchFile = db.prepare('UPDATE files SET put_at = max(put_at, ?) WHERE id = ?')
  const insertFile = db.prepare(
    'INSERT INTO files (id, owner, content, media_type, name, created_at, put_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
  )
  const isReferenced = db.prepare('SELECT 1 FROM file_references WHERE file_id = ? LIMIT 1')
  const removeFile = db.prepare('DELETE FROM files WHERE id = ?')
  const removeContent = db.prepare(
    'DELETE FROM file_contents WHERE id = ? AND NOT EXISTS (SELECT 1 FROM files WHERE content = file_contents.id)',
  )
  const unused = db.prepare(
    `SELECT id, content FROM files WHERE put_at < ?
       AND NOT EXISTS (SELECT 1 FROM file_references WHERE file_id = files.id)
     ORDER BY put_at LIMIT ?`,
  )
  const incomplete = db.prepare(
    `SELECT id FROM file_contents WHERE put_at < ? AND NOT EXISTS (SELECT 1 FROM files WHERE content = file_contents.id)
     LIMIT ?`,
  )
  const ownedBy = db.prepare('SELECT 1 FROM files WHERE id = ? AND owner = ?')
  const refer = db.prepare(
    `INSERT OR IGNORE INTO file_references (file_id, message_id, run_id)
     SELECT id, ?, ? FROM files WHERE id = ?`,
  )

  const handlers: Handlers<FileCommands> = {
    putFileChunk({ owner, sha256, size, number, body, at, ownerBytesMax }) {
      const known = content.get(owner, sha256)?.id as number | undefined
      if (known === undefined && (ownerBytes.get(owner)?.bytes as number) + size > ownerBytesMax) {
        throw new AppError(
          'file_storage_full',
          `Your files may have at most ${ownerBytesMax} bytes together. Delete files that you do not need any more.`,
        )
      }
      const id = known ?? Number(insertContent.run(owner, sha256, size, at).lastInsertRowid)
      touchContent.run(at, id)
      insertChunk.run(id, number, Buffer.from(body, 'base64'))
      return null
    },
    putFile(row) {
      const id = content.get(row.owner, row.sha256)?.id as number | undefined
      if (id === undefined || (countChunks.get(id)?.count as number) < chunkCount(row.size)) return null
      const same = sameFile.get(id, row.mediaType, row.name)?.id as string | undefined
      if (same === undefined) {
        insertFile.run(row.id, row.owner, id, row.mediaType, row.name, row.createdAt, row.createdAt)
        return row
      }
      touchFile.run(row.createdAt, same)
      return reader.row(same) ?? null
    },
    deleteFile({ owner, id }) {
      const row = reader.row(id)
      if (row?.owner !== owner) return 'missing'
      if (isReferenced.get(id) !== undefined) return 'in_use'
      const contentId = reader.content(id)?.id as number
      removeFile.run(id)
      removeContent.run(contentId)
      return 'deleted'
    },
    expireFiles({ before, limit }) {
      const files = unused.all(before, limit)
      for (const row of files) {
        removeFile.run(row.id as string)
        removeContent.run(row.content as number)
      }
      for (const row of incomplete.all(before, limit)) removeContent.run(row.id as number)
      return files.length
    },
  }

  return {
    handlers,
    /** Throws `file_not_found` if one of the files does not exist or belongs to another user. */
    check(owner: string, ids: readonly string[]): void {
      for (const id of ids) {
        if (ownedBy.get(id, owner) === undefined)
          throw new AppError('file_not_found', `There is no file ${JSON.stringify(id)}; send it again.`)
      }
    },
    /** Files that do not exist any more are skipped. */
    refer(by: { messageId: string } | { runId: string }, ids: readonly string[]): void {
      const [messageId, runId] = 'messageId' in by ? [by.messageId, null] : [null, by.runId]
      for (const id of ids) refer.run(messageId, runId, id)
    },
  }
}

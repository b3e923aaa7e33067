// Files of users. A content and its first file are written in one transaction; the bytes are in
// pieces, so that reading and writing a large file leaves room for other work of the process.

import { AppError } from '../../errors/app-error.ts'
import type { FileRow, FileStore } from '../file-store.ts'
import { insertRow, rowReader } from './columns.ts'
import type { Db, Row, Value } from './connection.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'

const chunkBytes = 512 * 1024

const filesWithContent = `SELECT files.*, file_contents.sha256, file_contents.size
  FROM files JOIN file_contents ON file_contents.id = files.content`

const toFileRow = rowReader<FileRow>({
  id: 'value',
  owner: 'value',
  sha256: 'value',
  mediaType: 'value',
  name: 'value',
  size: 'value',
  createdAt: 'value',
})
const one = (row: Row | undefined) => (row === undefined ? undefined : toFileRow(row))

export function fileStore({ read, write }: PartAccess): FileStore {
  return {
    putFile: (row, bytes, ownerBytesMax) =>
      write(async (db) => {
        const content = await contentOf(db, row, bytes, ownerBytesMax)
        const same = await db.get(
          'SELECT id FROM files WHERE content = ? AND media_type = ? AND name IS NOT DISTINCT FROM ?',
          content,
          row.mediaType,
          row.name,
        )
        if (same === undefined) {
          const { id, owner, mediaType: media_type, name, createdAt: at } = row
          await insertRow(db, 'files', { id, owner, content, media_type, name, created_at: at, put_at: at })
          return row
        }
        await db.run('UPDATE files SET put_at = greatest(put_at, ?) WHERE id = ?', row.createdAt, same['id'] as string)
        return one(await db.get(`${filesWithContent} WHERE files.id = ?`, same['id'] as string)) ?? row
      }),
    readFile: (id) => read(async (db) => one(await db.get(`${filesWithContent} WHERE files.id = ?`, id))),
    async readFileBytes(id) {
      const content = await read(
        async (db) => (await db.get('SELECT content FROM files WHERE id = ?', id))?.['content'],
      )
      if (content === undefined) return undefined
      const chunks: Uint8Array[] = []
      for (;;) {
        const row = await read((db) =>
          db.get('SELECT bytes FROM file_chunks WHERE content = ? AND number = ?', content as number, chunks.length),
        )
        if (row === undefined) return chunks.length === 0 ? undefined : Buffer.concat(chunks)
        chunks.push(row['bytes'] as unknown as Uint8Array)
      }
    },
    listFiles: (owner, { limit, before }) =>
      read((db) => {
        const values: Value[] = before === undefined ? [owner] : [owner, before]
        const earlier = before === undefined ? '' : 'AND files.position < (SELECT position FROM files WHERE id = ?)'
        const sql = `${filesWithContent} WHERE files.owner = ? ${earlier} ORDER BY files.position DESC`
        return readPage(db, { sql, values, limit, long: ['name'] }, toFileRow)
      }),
    deleteFile: (owner, id) =>
      write(async (db) => {
        const row = await db.get('SELECT content FROM files WHERE id = ? AND owner = ? FOR UPDATE', id, owner)
        if (row === undefined) return 'missing'
        if ((await db.get('SELECT file_id FROM file_references WHERE file_id = ? LIMIT 1', id)) !== undefined) {
          return 'in_use'
        }
        await removeFile(db, id, row['content'] as number)
        return 'deleted'
      }),
    expireFiles: (before, limit) =>
      write(async (db) => {
        const unused = await db.all(
          `SELECT id, content FROM files WHERE put_at < ?
             AND NOT EXISTS (SELECT 1 FROM file_references WHERE file_id = files.id)
           ORDER BY put_at LIMIT ? FOR UPDATE SKIP LOCKED`,
          before,
          limit,
        )
        for (const row of unused) await removeFile(db, row['id'] as string, row['content'] as number)
        return unused.length
      }),
  }
}

/** The id of the content, which is stored if it is new. It cannot be removed before the transaction ends. */
async function contentOf(db: Db, row: FileRow, bytes: Uint8Array, ownerBytesMax: number): Promise<number> {
  const { owner, sha256, size } = row
  // Two files of one owner come one after the other, so that the limit holds and a content is stored once.
  await db.get(`SELECT pg_advisory_xact_lock(hashtextextended('files ' || ?, 0)) IS NULL AS locked`, owner)
  const known = await db.get('SELECT id FROM file_contents WHERE owner = ? AND sha256 = ? FOR KEY SHARE', owner, sha256)
  if (known !== undefined) return known['id'] as number
  const stored = await db.get('SELECT coalesce(sum(size), 0) AS bytes FROM file_contents WHERE owner = ?', owner)
  if (Number(stored?.['bytes']) + size > ownerBytesMax) {
    throw new AppError(
      'file_storage_full',
      `Your files may have at most ${ownerBytesMax} bytes together. Delete files that you do not need any more.`,
    )
  }
  const [inserted] = await insertRow(db, 'file_contents', { owner, sha256, size }, 'RETURNING id')
  const content = inserted?.['id'] as number
  // An empty file has one empty chunk.
  for (let number = 0; number === 0 || number * chunkBytes < size; number += 1) {
    const chunk = bytes.subarray(number * chunkBytes, (number + 1) * chunkBytes)
    await insertRow(db, 'file_chunks', { content, number, bytes: chunk })
  }
  return content
}

async function removeFile(db: Db, id: string, content: number): Promise<void> {
  await db.run('DELETE FROM files WHERE id = ?', id)
  await db.run(
    'DELETE FROM file_contents WHERE id = ? AND NOT EXISTS (SELECT 1 FROM files WHERE content = file_contents.id)',
    content,
  )
}

/** Throws `file_not_found` if one of the files does not exist or belongs to another user. */
export async function checkFiles(db: Db, owner: string, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const found = await db.get('SELECT id FROM files WHERE id = ? AND owner = ? FOR KEY SHARE', id, owner)
    if (found === undefined)
      throw new AppError('file_not_found', `There is no file ${JSON.stringify(id)}; send it again.`)
  }
}

/** Files that do not exist any more are skipped. */
export async function referToFiles(
  db: Db,
  by: { messageId: string } | { runId: string },
  ids: readonly string[],
): Promise<void> {
  const [messageId, runId] = 'messageId' in by ? [by.messageId, null] : [null, by.runId]
  for (const id of ids) {
    await db.run(
      `INSERT INTO file_references (file_id, message_id, run_id)
       SELECT id, ?, ? FROM files WHERE id = ? ON CONFLICT DO NOTHING`,
      messageId,
      runId,
      id,
    )
  }
}

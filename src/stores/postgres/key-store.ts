// API keys.

import type { ApiKeyRow, KeyStore } from '../key-store.ts'
import { rowReader } from './columns.ts'
import { dbOf, openPool, transaction } from './connection.ts'
import type { PartAccess } from './part-access.ts'
import { toPostgresError } from './postgres-errors.ts'

const toKey = rowReader<ApiKeyRow>({
  id: 'value',
  owner: 'value',
  name: 'value',
  createdAt: 'value',
  expiresAt: 'value',
  revokedAt: 'value',
  lastUsedAt: 'value',
})

export function keyStore({ read, write }: Pick<PartAccess, 'read' | 'write'>): KeyStore {
  return {
    addKey: (key) =>
      write(async (db) => {
        await db.run(
          'INSERT INTO api_keys (id, owner, name, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)',
          key.id,
          key.owner,
          key.name,
          key.hash,
          key.createdAt,
          key.expiresAt,
        )
      }),
    listKeys: ({ owner, limit }) =>
      read(async (db) => {
        const where = owner === undefined ? '' : 'WHERE owner = ?'
        const values = owner === undefined ? [limit] : [owner, limit]
        const rows = await db.all(
          `SELECT * FROM api_keys ${where} ORDER BY created_at DESC, id DESC LIMIT ?`,
          ...values,
        )
        return rows.map(toKey)
      }),
    findKey: (hash) =>
      read(async (db) => {
        const row = await db.get('SELECT * FROM api_keys WHERE hash = ?', hash)
        return row === undefined ? undefined : toKey(row)
      }),
    revokeKey: (id, at) =>
      write(async (db) => {
        const row = await db.get(
          'UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ? RETURNING *',
          at,
          id,
        )
        return row === undefined ? undefined : toKey(row)
      }),
    recordKeyUse: (ids, at) =>
      read(async (db) => {
        // In the order of the ids, so that two nodes cannot wait for each other.
        await db.run(
          `WITH used AS (SELECT id FROM api_keys WHERE id = ANY (?) ORDER BY id FOR UPDATE)
           UPDATE api_keys SET last_used_at = greatest(last_used_at, ?) FROM used WHERE api_keys.id = used.id`,
          [...ids],
          at,
        )
      }),
  }
}

/** The keys of a database that servers may be using. It must have all migrations. */
export function openDatabaseKeys(url: string): KeyStore & { close(): Promise<void> } {
  const pool = openPool({ url, connectionsMax: 1 })
  const guarded = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      throw toPostgresError(error)
    }
  }
  return {
    ...keyStore({
      read: (query) => guarded(query(dbOf(pool))),
      write: (work) => guarded(transaction(pool, true, work)),
    }),
    close: () => pool.end(),
  }
}

// API keys. A command may write them over a connection of its own while a server uses the file: such a write takes
// milliseconds, and nothing of it is cached by the server's connections.

import type { DatabaseSync } from 'node:sqlite'
import type { ApiKeyRow, KeyStore } from '../key-store.ts'
import type { Handlers, KeyCommands } from './commands.ts'
import { openWriter, type Row } from './connection.ts'
import type { PartAccess } from './part-access.ts'
import { toStoreError } from './sqlite-errors.ts'

function toKey(row: Row): ApiKeyRow {
  return {
    id: row.id as string,
    owner: row.owner as string,
    name: row.name as string | null,
    createdAt: row.created_at as number,
    expiresAt: row.expires_at as number | null,
    revokedAt: row.revoked_at as number | null,
    lastUsedAt: row.last_used_at as number | null,
  }
}

type KeyReader = {
  list(filter: { owner?: string; limit: number }): ApiKeyRow[]
  find(hash: string): ApiKeyRow | undefined
}

function keyReader(db: DatabaseSync): KeyReader {
  const all = db.prepare('SELECT * FROM api_keys ORDER BY created_at DESC, id DESC LIMIT ?')
  const ofOwner = db.prepare('SELECT * FROM api_keys WHERE owner = ? ORDER BY created_at DESC, id DESC LIMIT ?')
  const byHash = db.prepare('SELECT * FROM api_keys WHERE hash = ?')
  return {
    list: ({ owner, limit }) => (owner === undefined ? all.all(limit) : ofOwner.all(owner, limit)).map(toKey),
    find(hash) {
      const row = byHash.get(hash)
      return row === undefined ? undefined : toKey(row)
    },
  }
}

export function keyStore({ db, read, write }: PartAccess): KeyStore {
  const reader = keyReader(db)
  return {
    addKey: async (key) => void (await write('addKey', key)),
    listKeys: (filter) => read(() => reader.list(filter)),
    findKey: (hash) => read(() => reader.find(hash)),
    revokeKey: async (id, at) => (await write('revokeKey', { id, at })) ?? undefined,
    recordKeyUse: async (ids, at) => void (await write('recordKeyUse', { ids: [...ids], at }, false)),
  }
}

export function keyHandlers(db: DatabaseSync): Handlers<KeyCommands> {
  const insert = db.prepare(
    'INSERT INTO api_keys (id, owner, name, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const revoke = db.prepare('UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ? RETURNING *')
  const used = db.prepare('UPDATE api_keys SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE id = ?')
  return {
    addKey(key) {
      insert.run(key.id, key.owner, key.name, key.hash, key.createdAt, key.expiresAt)
      return null
    },
    revokeKey({ id, at }) {
      const row = revoke.get(at, id)
      return row === undefined ? null : toKey(row)
    },
    recordKeyUse({ ids, at }) {
      for (const id of ids) used.run(at, id)
      return null
    },
  }
}

/** The keys of a file that a server may be using. The file must have all migrations. */
export function openFileKeys(file: string): KeyStore & { close(): Promise<void> } {
  const db = openWriter(file)
  const reader = keyReader(db)
  const handlers = keyHandlers(db)
  const guarded = async <T>(work: () => T): Promise<T> => {
    try {
      return work()
    } catch (error) {
      throw toStoreError(error, file)
    }
  }
  return {
    addKey: (key) => guarded(() => void handlers.addKey(key)),
    listKeys: (filter) => guarded(() => reader.list(filter)),
    findKey: (hash) => guarded(() => reader.find(hash)),
    revokeKey: (id, at) => guarded(() => handlers.revokeKey({ id, at }) ?? undefined),
    recordKeyUse: (ids, at) => guarded(() => void handlers.recordKeyUse({ ids: [...ids], at })),
    close: async () => db.close(),
  }
}

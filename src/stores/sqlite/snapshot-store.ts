// Snapshots of one-shot runs. They are inserted by the append that ends their run, removed
// with the conversation or contact of their scope (by triggers), and when they are old.

import type { DatabaseSync } from 'node:sqlite'
import type { JsonValue } from '../../journal/event.ts'
import {
  type NewSnapshot,
  type SnapshotFilter,
  type SnapshotKey,
  type SnapshotRow,
  type SnapshotScope,
  snapshotsKept,
  type SnapshotStore,
} from '../snapshot-store.ts'
import type { Handlers, SnapshotCommands } from './commands.ts'
import { type Row, statementCache, type Value } from './connection.ts'
import { fromJson } from './json-column.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'

const ofSubject = 'owner = ? AND agent_id = ? AND operation IS ? AND scope_type = ? AND scope_id IS ?'

function subjectValues(row: SnapshotKey): [string, string, string | null, string, string | null] {
  return [row.owner, row.agentId, row.operation, row.scopeType, row.scopeId]
}

function toSnapshot(row: Row): SnapshotRow {
  return {
    id: row.id as string,
    owner: row.owner as string,
    agentId: row.agent_id as string,
    operation: row.operation as string | null,
    scopeType: row.scope_type as SnapshotScope,
    scopeId: row.scope_id as string | null,
    sourceHash: row.source_hash as string,
    promptVersion: row.prompt_version as string,
    model: row.model as string,
    runId: row.run_id as string,
    output: fromJson<JsonValue>(row.output),
    createdAt: row.created_at as number,
    expiresAt: row.expires_at as number | null,
  }
}

export function snapshotStore({ db, read, write }: PartAccess): SnapshotStore {
  const reader = snapshotReader(db)
  return {
    readSnapshot: (id) => read(() => reader.read(id)),
    findSnapshot: (key, now) => read(() => reader.find(key, now)),
    findSnapshotOfRun: (runId) => read(() => reader.ofRun(runId)),
    snapshotBefore: (id) => read(() => reader.before(id)),
    listSnapshots: (filter) => read(() => reader.list(filter)),
    expireSnapshots: (expiredBefore, limit) => write('expireSnapshots', { expiredBefore, limit }),
  }
}

function snapshotReader(db: DatabaseSync) {
  const statement = statementCache(db)
  const byId = db.prepare('SELECT * FROM snapshots WHERE id = ?')
  const byRun = db.prepare('SELECT * FROM snapshots WHERE run_id = ? ORDER BY position DESC LIMIT 1')
  // A row that no longer parses answers nothing.
  const find = db.prepare(
    `SELECT * FROM snapshots WHERE ${ofSubject} AND source_hash = ? AND prompt_version = ? AND model = ?
       AND (expires_at IS NULL OR expires_at > ?) AND json_valid(output) ORDER BY position DESC LIMIT 1`,
  )
  const before = db.prepare(
    `SELECT * FROM snapshots WHERE ${ofSubject} AND position < (SELECT position FROM snapshots WHERE id = ?)
     ORDER BY position DESC LIMIT 1`,
  )
  const one = (row: Row | undefined) => (row === undefined ? undefined : toSnapshot(row))
  const read = (id: string) => one(byId.get(id))

  return {
    read,
    ofRun: (runId: string) => one(byRun.get(runId)),
    find: (key: SnapshotKey, now: number) =>
      one(find.get(...subjectValues(key), key.sourceHash, key.promptVersion, key.model, now)),
    before(id: string) {
      const row = read(id)
      return row === undefined ? undefined : one(before.get(...subjectValues(row), id))
    },
    list(filter: SnapshotFilter) {
      const conditions = ['owner = ?']
      const values: Value[] = [filter.owner]
      const add = (condition: string, value: Value | undefined) => {
        if (value === undefined) return
        conditions.push(condition)
        values.push(value)
      }
      add('agent_id = ?', filter.agentId)
      add('operation IS ?', filter.operation)
      add('scope_type = ?', filter.scopeType)
      add(
        'scope_id IN (SELECT value FROM json_each(?))',
        filter.scopeIds === undefined ? undefined : JSON.stringify(filter.scopeIds),
      )
      add('position < (SELECT position FROM snapshots WHERE id = ?)', filter.before)
      const sql = `SELECT * FROM snapshots WHERE ${conditions.join(' AND ')} ORDER BY position DESC LIMIT ?`
      return readPage(statement(sql), values, filter.limit, toSnapshot)
    },
  }
}

export type SnapshotWriter = ReturnType<typeof snapshotWriter>

export function snapshotWriter(db: DatabaseSync) {
  const reader = snapshotReader(db)
  const insertRow = db.prepare(
    `INSERT INTO snapshots (id, owner, agent_id, operation, scope_type, scope_id, source_hash, prompt_version, model,
       run_id, output, created_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const prune = db.prepare(
    `DELETE FROM snapshots WHERE position IN (
       SELECT position FROM snapshots WHERE ${ofSubject} ORDER BY position DESC LIMIT -1 OFFSET ?)`,
  )
  const conversation = db.prepare('SELECT 1 FROM conversations WHERE id = ? AND owner = ?')
  const contact = db.prepare('SELECT 1 FROM contacts WHERE id = ? AND owner = ?')
  const expire = db.prepare(
    `DELETE FROM snapshots WHERE position IN (
       SELECT position FROM snapshots WHERE expires_at IS NOT NULL AND expires_at < ? ORDER BY expires_at LIMIT ?)`,
  )

  function scopeExists({ scopeType, scopeId, owner }: NewSnapshot): boolean {
    if (scopeType === 'contact') return contact.get(scopeId, owner) !== undefined
    return scopeType !== 'conversation' || conversation.get(scopeId, owner) !== undefined
  }

  const handlers: Handlers<SnapshotCommands> = {
    expireSnapshots: ({ expiredBefore, limit }) => Number(expire.run(expiredBefore, limit).changes),
  }

  return {
    handlers,
    reader,
    insert(row: NewSnapshot): void {
      if (row.scopeMustExist && !scopeExists(row)) return
      insertRow.run(
        row.id,
        ...subjectValues(row),
        row.sourceHash,
        row.promptVersion,
        row.model,
        row.runId,
        JSON.stringify(row.output),
        row.createdAt,
        row.expiresAt,
      )
      prune.run(...subjectValues(row), snapshotsKept[row.scopeType])
    },
  }
}

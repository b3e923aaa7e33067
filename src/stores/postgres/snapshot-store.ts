// Snapshots of one-shot runs. They are inserted by the append that ends their run, removed with
// the conversation or contact of their scope (by triggers), and when they are old.

import {
  type NewSnapshot,
  type SnapshotKey,
  type SnapshotRow,
  snapshotsKept,
  type SnapshotStore,
} from '../snapshot-store.ts'
import { type Columns, columnsOf, insertRow, rowReader } from './columns.ts'
import type { Db, Row, Value } from './connection.ts'
import { filterOf } from './filter.ts'
import type { PartAccess } from './part-access.ts'
import { readPage } from './row-page.ts'

const ofSubject =
  'owner = ? AND agent_id = ? AND operation IS NOT DISTINCT FROM ? AND scope_type = ? AND scope_id IS NOT DISTINCT FROM ?'

function subjectValues(row: SnapshotKey): Value[] {
  return [row.owner, row.agentId, row.operation, row.scopeType, row.scopeId]
}

const columns: Columns<SnapshotRow> = {
  id: 'value',
  owner: 'value',
  agentId: 'value',
  operation: 'value',
  scopeType: 'value',
  scopeId: 'value',
  sourceHash: 'value',
  promptVersion: 'value',
  model: 'value',
  runId: 'value',
  output: 'json',
  createdAt: 'value',
  expiresAt: 'value',
}
const toSnapshot = rowReader<SnapshotRow>(columns)
const one = (row: Row | undefined) => (row === undefined ? undefined : toSnapshot(row))

export function snapshotStore({ read, write }: PartAccess): SnapshotStore {
  return {
    readSnapshot: (id) => read(async (db) => one(await db.get('SELECT * FROM snapshots WHERE id = ?', id))),
    findSnapshot: (key, now) => read((db) => findSnapshot(db, key, now)),
    findSnapshotOfRun: (runId) =>
      read(async (db) =>
        one(await db.get('SELECT * FROM snapshots WHERE run_id = ? ORDER BY position DESC LIMIT 1', runId)),
      ),
    snapshotBefore: (id) =>
      read(async (db) => {
        const row = one(await db.get('SELECT * FROM snapshots WHERE id = ?', id))
        if (row === undefined) return undefined
        const before = await db.get(
          `SELECT * FROM snapshots WHERE ${ofSubject} AND position < (SELECT position FROM snapshots WHERE id = ?)
           ORDER BY position DESC LIMIT 1`,
          ...subjectValues(row),
          id,
        )
        return one(before)
      }),
    listSnapshots: (filter) =>
      read((db) => {
        const { where, values } = filterOf(
          ['owner = ?', filter.owner],
          ['agent_id = ?', filter.agentId],
          ['operation IS NOT DISTINCT FROM ?', filter.operation],
          ['scope_type = ?', filter.scopeType],
          ['scope_id = ANY (?)', filter.scopeIds],
          ['position < (SELECT position FROM snapshots WHERE id = ?)', filter.before],
        )
        const sql = `SELECT * FROM snapshots WHERE ${where} ORDER BY position DESC`
        return readPage(db, { sql, values, limit: filter.limit, long: ['output'] }, toSnapshot)
      }),
    expireSnapshots: (expiredBefore, limit) =>
      write((db) =>
        db.run(
          `DELETE FROM snapshots WHERE position = ANY (ARRAY(
             SELECT position FROM snapshots WHERE expires_at IS NOT NULL AND expires_at < ? ORDER BY expires_at LIMIT ?
             FOR UPDATE SKIP LOCKED))`,
          expiredBefore,
          limit,
        ),
      ),
  }
}

/** A row that no longer parses answers nothing. */
export async function findSnapshot(db: Db, key: SnapshotKey, now: number): Promise<SnapshotRow | undefined> {
  const row = await db.get(
    `SELECT * FROM snapshots WHERE ${ofSubject} AND source_hash = ? AND prompt_version = ? AND model = ?
       AND (expires_at IS NULL OR expires_at > ?) AND pg_input_is_valid(output, 'json') ORDER BY position DESC LIMIT 1`,
    ...subjectValues(key),
    key.sourceHash,
    key.promptVersion,
    key.model,
    now,
  )
  return one(row)
}

export async function insertSnapshot(db: Db, { scopeMustExist, ...row }: NewSnapshot): Promise<void> {
  if (scopeMustExist && !(await scopeExists(db, row))) return
  await insertRow(db, 'snapshots', { ...columnsOf(columns, row), output: JSON.stringify(row.output) })
  await db.run(
    `DELETE FROM snapshots WHERE position = ANY (ARRAY(
       SELECT position FROM snapshots WHERE ${ofSubject} ORDER BY position DESC OFFSET ?))`,
    ...subjectValues(row),
    snapshotsKept[row.scopeType],
  )
}

/** What exists now cannot be deleted before the transaction ends. */
async function scopeExists(db: Db, { scopeType, scopeId, owner }: SnapshotRow): Promise<boolean> {
  const table = scopeType === 'contact' ? 'contacts' : scopeType === 'conversation' ? 'conversations' : undefined
  if (table === undefined) return true
  return (
    (await db.get(`SELECT id FROM ${table} WHERE id = ? AND owner = ? FOR KEY SHARE`, scopeId, owner)) !== undefined
  )
}

// Two tables of sessions that work in a directory: the versions of files that a session knows,
// and its to-do list. A to-do list that is not a JSON list counts as empty.

import type { FileVersionRow, TodoItem, WorkspaceStore } from '../workspace-store.ts'
import { insertRow } from './columns.ts'
import type { Row } from './connection.ts'
import type { PartAccess } from './part-access.ts'

function toFile(row: Row): FileVersionRow {
  const key = row['write_key'] as string | null
  const before = row['hash_before'] as string | null
  return {
    scope: row['scope'] as string,
    path: row['path'] as string,
    hash: row['hash'] as string,
    write: key === null ? null : { key, before, replacements: row['replacements'] as number },
    at: row['at'] as number,
  }
}

function toTodos(stored: unknown): TodoItem[] {
  try {
    const list: unknown = JSON.parse(String(stored))
    return Array.isArray(list) ? (list as TodoItem[]) : []
  } catch {
    return []
  }
}

export function workspaceStore({ read, write }: PartAccess): WorkspaceStore {
  return {
    readFileVersion: (scope, path) =>
      read(async (db) => {
        const row = await db.get('SELECT * FROM file_versions WHERE scope = ? AND path = ?', scope, path)
        return row === undefined ? undefined : toFile(row)
      }),
    saveFileVersion: ({ scope, path, hash, write: by, at }) =>
      write(async (db) => {
        await insertRow(
          db,
          'file_versions',
          {
            scope,
            path,
            hash,
            write_key: by?.key ?? null,
            hash_before: by?.before ?? null,
            replacements: by?.replacements ?? null,
            at,
          },
          `ON CONFLICT (scope, path) DO UPDATE SET hash = excluded.hash, write_key = excluded.write_key,
             hash_before = excluded.hash_before, replacements = excluded.replacements, at = excluded.at`,
        )
      }),
    readTodos: (scope) =>
      read(async (db) => {
        const row = await db.get('SELECT todos FROM todo_lists WHERE scope = ?', scope)
        return row === undefined ? [] : toTodos(row['todos'])
      }),
    saveTodos: (scope, todos, at) =>
      write(async (db) => {
        await insertRow(
          db,
          'todo_lists',
          { scope, todos: JSON.stringify(todos), at },
          'ON CONFLICT (scope) DO UPDATE SET todos = excluded.todos, at = excluded.at',
        )
      }),
  }
}

// What sessions know of their files, and their to-do lists. A row that no longer
// can be read counts as absent: a session then reads its file again.

import type { DatabaseSync } from 'node:sqlite'
import type { FileVersionRow, TodoItem } from '../workspace-store.ts'
import type { Row } from './connection.ts'

function toFile(row: Row): FileVersionRow {
  const key = row.write_key as string | null
  return {
    scope: row.scope as string,
    path: row.path as string,
    hash: row.hash as string,
    write:
      key === null ? null : { key, before: row.hash_before as string | null, replacements: row.replacements as number },
    at: row.at as number,
  }
}

export function workspaceReader(db: DatabaseSync) {
  const file = db.prepare('SELECT * FROM file_versions WHERE scope = ? AND path = ?')
  const todos = db.prepare('SELECT todos FROM todo_lists WHERE scope = ?')
  return {
    file(scope: string, path: string): FileVersionRow | undefined {
      const row = file.get(scope, path)
      return row === undefined ? undefined : toFile(row)
    },
    todos(scope: string): TodoItem[] {
      const row = todos.get(scope)
      if (row === undefined) return []
      try {
        const list: unknown = JSON.parse(row.todos as string)
        return Array.isArray(list) ? (list as TodoItem[]) : []
      } catch {
        return []
      }
    },
  }
}

export function workspaceWriter(db: DatabaseSync) {
  const saveFile = db.prepare(
    `INSERT INTO file_versions (scope, path, hash, write_key, hash_before, replacements, at) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (scope, path) DO UPDATE SET hash = excluded.hash, write_key = excluded.write_key,
       hash_before = excluded.hash_before, replacements = excluded.replacements, at = excluded.at`,
  )
  const saveTodos = db.prepare(
    `INSERT INTO todo_lists (scope, todos, at) VALUES (?, ?, ?)
     ON CONFLICT (scope) DO UPDATE SET todos = excluded.todos, at = excluded.at`,
  )
  return {
    saveFile({ scope, path, hash, write, at }: FileVersionRow): void {
      saveFile.run(scope, path, hash, write?.key ?? null, write?.before ?? null, write?.replacements ?? null, at)
    },
    saveTodos({ scope, todos, at }: { scope: string; todos: TodoItem[]; at: number }): void {
      saveTodos.run(scope, JSON.stringify(todos), at)
    },
  }
}

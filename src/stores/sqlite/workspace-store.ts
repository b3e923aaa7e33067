// Two tables of sessions that work in a directory: the hash of each file as the session last
// read it or is about to write it (with the key of that write, so that a repeated call can
// tell whether the write happened), and the to-do list. A to-do list that is not a JSON list
// counts as empty.

import type { DatabaseSync } from 'node:sqlite'
import type { FileVersionRow, TodoItem, WorkspaceStore } from '../workspace-store.ts'
import type { Handlers, WorkspaceCommands } from './commands.ts'
import type { Row } from './connection.ts'
import type { PartAccess } from './part-access.ts'

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

export function workspaceStore({ db, read, write }: PartAccess): WorkspaceStore {
  const reader = workspaceReader(db)
  return {
    readFileVersion: (scope, path) => read(() => reader.file(scope, path)),
    saveFileVersion: async (row) => void (await write('saveFileVersion', row)),
    readTodos: (scope) => read(() => reader.todos(scope)),
    saveTodos: async (scope, todos, at) => void (await write('saveTodos', { scope, todos, at })),
  }
}

function workspaceReader(db: DatabaseSync) {
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

export function workspaceHandlers(db: DatabaseSync): Handlers<WorkspaceCommands> {
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
    saveFileVersion({ scope, path, hash, write, at }) {
      saveFile.run(scope, path, hash, write?.key ?? null, write?.before ?? null, write?.replacements ?? null, at)
      return null
    },
    saveTodos({ scope, todos, at }) {
      saveTodos.run(scope, JSON.stringify(todos), at)
      return null
    },
  }
}

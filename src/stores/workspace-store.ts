// The file versions that a session has seen, and its to-do list. Both are removed together
// with their conversation, or with their run if it has no conversation.

/** The version of a file that a session last read or wrote. */
export type FileVersionRow = {
  /** The id of the conversation, or of the run if there is no conversation. */
  scope: string
  /** Relative to the workspace. */
  path: string
  /** SHA-256 of the content that the session knows, or was about to write. */
  hash: string
  /** Set if the session writes: the call's idempotency key, and the hash before the write (null: there was no file). */
  write: { key: string; before: string | null; replacements: number } | null
  at: number
}

/** One line of a to-do list. */
export type TodoItem = {
  id: string
  title: string
  status: 'pending' | 'in_progress' | 'completed'
  assignee?: string
  notes?: string
}

export interface WorkspaceStore {
  readFileVersion(scope: string, path: string): Promise<FileVersionRow | undefined>
  /** Replaces the stored version of the file. */
  saveFileVersion(row: FileVersionRow): Promise<void>
  /** Empty if the scope has no list. */
  readTodos(scope: string): Promise<TodoItem[]>
  /** Replaces the whole list. */
  saveTodos(scope: string, todos: TodoItem[], at: number): Promise<void>
}

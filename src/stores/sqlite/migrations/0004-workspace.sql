-- What a session knows of the files it works on, and its to-do list.

-- `scope` is a conversation, or a run that has none; the triggers below stand in for a reference to either.
CREATE TABLE file_versions (
  scope TEXT NOT NULL,
  path TEXT NOT NULL,
  hash TEXT NOT NULL,
  -- The three of a write: the key of its call, what the file was before (NULL: not there), how much was replaced.
  write_key TEXT,
  hash_before TEXT,
  replacements INTEGER,
  at INTEGER NOT NULL,
  PRIMARY KEY (scope, path)
) WITHOUT ROWID;

CREATE TABLE todo_lists (
  scope TEXT PRIMARY KEY,
  todos TEXT NOT NULL,
  at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER workspace_of_conversation_removed AFTER DELETE ON conversations BEGIN
  DELETE FROM file_versions WHERE scope = old.id;
  DELETE FROM todo_lists WHERE scope = old.id;
END;

CREATE TRIGGER workspace_of_run_removed AFTER DELETE ON runs BEGIN
  DELETE FROM file_versions WHERE scope = old.id;
  DELETE FROM todo_lists WHERE scope = old.id;
END;

-- Files of users. One content may have several names, so names and contents are two tables.

CREATE TABLE file_contents (
  id INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  size INTEGER NOT NULL,
  -- When a part of it was last put; a content without a file that is older was never completed.
  put_at INTEGER NOT NULL,
  UNIQUE (owner, sha256)
);

-- In pieces, so that one large file never holds up the commits of all runs.
CREATE TABLE file_chunks (
  id INTEGER PRIMARY KEY,
  content INTEGER NOT NULL REFERENCES file_contents (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  UNIQUE (content, number)
);

CREATE TABLE files (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  content INTEGER NOT NULL REFERENCES file_contents (id),
  media_type TEXT NOT NULL,
  name TEXT,
  created_at INTEGER NOT NULL,
  put_at INTEGER NOT NULL
);

CREATE INDEX files_by_owner ON files (owner, position);
CREATE INDEX files_by_content ON files (content);
CREATE INDEX files_by_age ON files (put_at);

-- Exactly one of message and run is set.
CREATE TABLE file_references (
  file_id TEXT NOT NULL REFERENCES files (id),
  message_id TEXT REFERENCES messages (id) ON DELETE CASCADE,
  run_id TEXT REFERENCES runs (id) ON DELETE CASCADE
);

CREATE INDEX file_references_by_file ON file_references (file_id);
CREATE UNIQUE INDEX file_references_by_message ON file_references (message_id, file_id) WHERE message_id IS NOT NULL;
CREATE UNIQUE INDEX file_references_by_run ON file_references (run_id, file_id) WHERE run_id IS NOT NULL;

-- The parts of a message as JSON; NULL if it is only text.
ALTER TABLE messages ADD COLUMN parts TEXT;

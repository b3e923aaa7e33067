-- The first tables. A migration that was released is never edited; write the next one.

-- Small numbers about the store itself.
CREATE TABLE store_state (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO store_state (name, value) VALUES ('write_check', 0);

CREATE TABLE conversations (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  title TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX conversations_by_owner ON conversations (owner, updated_at, id);

CREATE TABLE sessions (
  owner TEXT NOT NULL,
  session_key TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  PRIMARY KEY (owner, session_key)
) WITHOUT ROWID;

CREATE INDEX sessions_by_conversation ON sessions (conversation_id);

-- `position` is the order of acceptance. It is never reused (AUTOINCREMENT), since messages outlive their runs and keep it.
CREATE TABLE runs (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  family TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  conversation_id TEXT REFERENCES conversations (id) ON DELETE CASCADE,
  status TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  lease_owner TEXT,
  lease_until INTEGER,
  wake_at INTEGER,
  -- When somebody woke the run since its last claim; a later wake_at of its owner may not undo that.
  woken_at INTEGER,
  -- Behind the journal while only deltas are appended; true again at every change of this row, and after opening.
  last_seq INTEGER NOT NULL,
  cancel_by TEXT,
  cancel_reason TEXT,
  cancel_at INTEGER,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  error TEXT
);

CREATE INDEX runs_by_owner ON runs (owner, position);
CREATE INDEX runs_by_conversation ON runs (conversation_id, position);
-- The queries repeat these conditions word for word; only then may SQLite use a partial index.
CREATE INDEX runs_open ON runs (status, position) WHERE status IN ('queued', 'running', 'waiting_user');
CREATE INDEX runs_open_in_conversation ON runs (conversation_id, position) WHERE status IN ('queued', 'running', 'waiting_user');
CREATE INDEX runs_to_wake ON runs (wake_at) WHERE status = 'waiting_user';
CREATE INDEX runs_to_cancel ON runs (position) WHERE cancel_at IS NOT NULL AND status IN ('queued', 'running', 'waiting_user');
CREATE INDEX runs_leased ON runs (lease_owner, position) WHERE lease_owner IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;

-- Counting a million finished runs takes tens of milliseconds; these six rows do not.
CREATE TABLE run_counts (
  status TEXT PRIMARY KEY,
  count INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO run_counts (status, count)
VALUES ('queued', 0), ('running', 0), ('waiting_user', 0), ('succeeded', 0), ('failed', 0), ('canceled', 0);

CREATE TRIGGER run_counted AFTER INSERT ON runs BEGIN
  UPDATE run_counts SET count = count + 1 WHERE status = new.status;
END;

CREATE TRIGGER run_recounted AFTER UPDATE OF status ON runs WHEN old.status <> new.status BEGIN
  UPDATE run_counts SET count = count - 1 WHERE status = old.status;
  UPDATE run_counts SET count = count + 1 WHERE status = new.status;
END;

CREATE TRIGGER run_uncounted AFTER DELETE ON runs BEGIN
  UPDATE run_counts SET count = count - 1 WHERE status = old.status;
END;

-- What each append wrote, one event a line, in the order of writing. While models talk, nothing but the end of this
-- table grows: with an index on the run, every commit touches a page for every run in it and costs five times as much.
-- Which rows belong to a run is known in memory; after a crash, opening the store looks through all of them. Rows that
-- were folded into `journal` are removed soon after.
CREATE TABLE journal_tail (
  id INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL,
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  body TEXT NOT NULL
);

-- The journal for good: many appends of one run in one row, one event a line, so that reading a run reads few pages.
CREATE TABLE journal (
  position INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL,
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  body TEXT NOT NULL
);

CREATE UNIQUE INDEX journal_by_run ON journal (run_id, last_seq);

-- `turn` is the position of the run with which the message came; `run_id` may outlive its run.
CREATE TABLE messages (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  run_id TEXT,
  turn INTEGER NOT NULL,
  parent_id TEXT,
  role TEXT NOT NULL,
  content TEXT NOT NULL,
  state TEXT NOT NULL,
  tool_call_id TEXT,
  metadata TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE INDEX messages_by_time ON messages (conversation_id, created_at, id);
CREATE INDEX messages_by_turn ON messages (conversation_id, turn, position);

CREATE TABLE interactions (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  number INTEGER NOT NULL,
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  conversation_id TEXT,
  kind TEXT NOT NULL,
  call_id TEXT,
  tool_name TEXT,
  prompt TEXT NOT NULL,
  input TEXT NOT NULL,
  outcome TEXT,
  status TEXT NOT NULL,
  response TEXT,
  reason TEXT,
  decided_by TEXT,
  decided_at INTEGER,
  result TEXT,
  error TEXT,
  executed_at INTEGER,
  deadline_at INTEGER,
  at_deadline TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);

CREATE UNIQUE INDEX interactions_by_run ON interactions (run_id, number);
CREATE INDEX interactions_by_owner ON interactions (owner, position);

CREATE TABLE idempotency_keys (
  owner TEXT NOT NULL,
  route TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  PRIMARY KEY (owner, route, key)
) WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_run ON idempotency_keys (run_id);

CREATE TABLE blobs (
  id TEXT PRIMARY KEY,
  run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  body TEXT NOT NULL
);

CREATE INDEX blobs_by_run ON blobs (run_id);

CREATE TABLE notes (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  text TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE INDEX notes_by_owner ON notes (owner, position);

-- Trigrams find parts of words, and languages that put no spaces between them.
CREATE VIRTUAL TABLE notes_text USING fts5 (text, content = 'notes', content_rowid = 'position', tokenize = 'trigram');

CREATE TRIGGER note_indexed AFTER INSERT ON notes BEGIN
  INSERT INTO notes_text (rowid, text) VALUES (new.position, new.text);
END;

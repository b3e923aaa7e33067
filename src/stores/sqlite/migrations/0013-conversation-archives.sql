-- What an agent extracted from a conversation, for a person to review and apply. `run_id` may outlive its run.
CREATE TABLE conversation_archives (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  snapshot_id TEXT,
  status TEXT NOT NULL,
  revision INTEGER NOT NULL,
  computed INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  applied_at INTEGER,
  discarded_at INTEGER,
  summary TEXT NOT NULL,
  payload TEXT NOT NULL
);

CREATE INDEX conversation_archives_by_conversation ON conversation_archives (conversation_id, position);

-- When an archive of the conversation was applied last.
ALTER TABLE conversations ADD COLUMN archived_at INTEGER;

-- Results of one-shot runs. Rows never change. `run_id` may outlive its run.
CREATE TABLE snapshots (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  operation TEXT,
  scope_type TEXT NOT NULL,
  scope_id TEXT,
  source_hash TEXT NOT NULL,
  prompt_version TEXT NOT NULL,
  model TEXT NOT NULL,
  run_id TEXT NOT NULL,
  output TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER
);

CREATE INDEX snapshots_by_subject ON snapshots (owner, agent_id, operation, scope_type, scope_id, position);
CREATE INDEX snapshots_by_owner ON snapshots (owner, position);
CREATE INDEX snapshots_by_scope ON snapshots (owner, scope_type, scope_id);
CREATE INDEX snapshots_by_run ON snapshots (run_id);
CREATE INDEX snapshots_by_expiry ON snapshots (expires_at) WHERE expires_at IS NOT NULL;

-- The scope is the id of the conversation, or a name of it if the snapshot was made before the conversation existed.
CREATE TRIGGER snapshots_of_conversation_removed BEFORE DELETE ON conversations BEGIN
  DELETE FROM snapshots
  WHERE owner = old.owner AND scope_type = 'conversation'
    AND (scope_id = old.id OR scope_id IN (SELECT name FROM conversation_names WHERE conversation_id = old.id));
END;

-- Equal requests have equal share keys; set while the run is open.
ALTER TABLE runs ADD COLUMN share_key TEXT;

CREATE INDEX runs_by_share_key ON runs (owner, share_key) WHERE share_key IS NOT NULL;

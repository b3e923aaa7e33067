-- The nodes that use the database: here one process at a time, which writes its row at every heartbeat.
CREATE TABLE nodes (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  -- As JSON.
  offers TEXT NOT NULL,
  draining INTEGER NOT NULL,
  capacity INTEGER NOT NULL,
  running INTEGER NOT NULL
) WITHOUT ROWID;

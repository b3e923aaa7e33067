-- Sums of token counts and cost (in millionths of a dollar). `cost` is NULL if no step has a known cost.

-- No reference to runs or conversations: the sums of a user stay when these are removed.
CREATE TABLE usage_days (
  owner TEXT NOT NULL,
  day TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  model TEXT NOT NULL,
  steps INTEGER NOT NULL,
  input INTEGER NOT NULL,
  cached INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  output INTEGER NOT NULL,
  reasoning INTEGER NOT NULL,
  cost INTEGER,
  unpriced INTEGER NOT NULL,
  PRIMARY KEY (owner, day, agent_id, model)
) WITHOUT ROWID;

-- Of all users, so that a budget of the whole server reads one row.
CREATE TABLE usage_totals (
  day TEXT PRIMARY KEY,
  steps INTEGER NOT NULL,
  input INTEGER NOT NULL,
  cached INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  output INTEGER NOT NULL,
  reasoning INTEGER NOT NULL,
  cost INTEGER,
  unpriced INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE usage_conversations (
  conversation_id TEXT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
  steps INTEGER NOT NULL,
  input INTEGER NOT NULL,
  cached INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  output INTEGER NOT NULL,
  reasoning INTEGER NOT NULL,
  cost INTEGER,
  unpriced INTEGER NOT NULL
) WITHOUT ROWID;

-- The sums of the run, as JSON; NULL until a step has ended.
ALTER TABLE runs ADD COLUMN usage TEXT;

-- Turns of several runs, feedback on messages, comparisons.

-- The position of the run whose turn this one joined; NULL where the run has a turn of its own.
ALTER TABLE runs ADD COLUMN turn INTEGER;

-- One reaction for each person and message; comments as many as they like.
CREATE TABLE feedback (
  position INTEGER PRIMARY KEY,
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  text TEXT,
  incorrect INTEGER NOT NULL,
  unhelpful INTEGER NOT NULL,
  inappropriate INTEGER NOT NULL,
  at INTEGER NOT NULL
);

CREATE INDEX feedback_by_message ON feedback (message_id, owner, position);
CREATE UNIQUE INDEX feedback_reactions ON feedback (message_id, owner) WHERE kind IN ('like', 'dislike');

-- Two answers to one question, and a vote. Runs may be gone before their comparison is; the vote stays.
CREATE TABLE comparisons (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  user_message_id TEXT NOT NULL,
  run_a TEXT,
  run_b TEXT,
  message_a TEXT,
  message_b TEXT,
  config_a TEXT NOT NULL,
  config_b TEXT NOT NULL,
  first_side_is_config_a INTEGER NOT NULL,
  state TEXT NOT NULL,
  preference TEXT,
  preference_at INTEGER,
  revisions TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE INDEX comparisons_by_owner ON comparisons (owner, position);
CREATE INDEX comparisons_by_conversation ON comparisons (conversation_id, position);
CREATE INDEX comparisons_by_run_a ON comparisons (run_a) WHERE run_a IS NOT NULL;
CREATE INDEX comparisons_by_run_b ON comparisons (run_b) WHERE run_b IS NOT NULL;
CREATE INDEX comparisons_unsettled ON comparisons (position) WHERE state = 'pending';
-- Everything that the metrics count, so that counting reads the index alone.
CREATE INDEX comparisons_votes ON comparisons (config_a, config_b, first_side_is_config_a, preference, owner)
  WHERE preference IS NOT NULL;


-- Which things of an owner changed last, for GET /v1/feed. Each thing has at most one row, and each change gives it a new
-- number. Triggers write the rows, so that no command can forget one. Numbers are never reused (AUTOINCREMENT), because
-- readers resume after them.
CREATE TABLE feed (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL
);

CREATE UNIQUE INDEX feed_subjects ON feed (subject, kind);
CREATE INDEX feed_by_owner ON feed (owner, number);

-- `feed_epoch` identifies this file in the cursors of readers; `feed_floor` is the highest number that was removed.
INSERT INTO store_state (name, value) VALUES ('feed_epoch', abs(random() % 281474976710656)), ('feed_floor', 0);

CREATE TRIGGER feed_conversation_added AFTER INSERT ON conversations BEGIN
  DELETE FROM feed WHERE subject = new.id AND kind = 'conversation';
  INSERT INTO feed (owner, kind, subject) VALUES (new.owner, 'conversation', new.id);
END;

CREATE TRIGGER feed_conversation_changed AFTER UPDATE OF title, summary, contact_id, activity, archived_at ON conversations BEGIN
  DELETE FROM feed WHERE subject = new.id AND kind = 'conversation';
  INSERT INTO feed (owner, kind, subject) VALUES (new.owner, 'conversation', new.id);
END;

CREATE TRIGGER feed_conversation_removed AFTER DELETE ON conversations BEGIN
  DELETE FROM feed WHERE subject = old.id AND kind = 'conversation';
  INSERT INTO feed (owner, kind, subject) VALUES (old.owner, 'conversation', old.id);
END;

CREATE TRIGGER feed_run_added AFTER INSERT ON runs BEGIN
  DELETE FROM feed WHERE subject = new.id AND kind = 'run';
  INSERT INTO feed (owner, kind, subject) VALUES (new.owner, 'run', new.id);
END;

CREATE TRIGGER feed_run_changed AFTER UPDATE OF status, cancel_at, attempt ON runs
WHEN old.status <> new.status OR old.cancel_at IS NOT new.cancel_at OR old.attempt <> new.attempt BEGIN
  DELETE FROM feed WHERE subject = new.id AND kind = 'run';
  INSERT INTO feed (owner, kind, subject) VALUES (new.owner, 'run', new.id);
END;

-- The runs of a conversation disappear with it or by age; only the end of other runs is told.
CREATE TRIGGER feed_run_removed AFTER DELETE ON runs BEGIN
  DELETE FROM feed WHERE subject = old.id AND kind = 'run';
  INSERT INTO feed (owner, kind, subject) SELECT old.owner, 'run', old.id WHERE old.conversation_id IS NULL;
END;

CREATE TRIGGER feed_interaction_added AFTER INSERT ON interactions BEGIN
  INSERT INTO feed (owner, kind, subject) VALUES (new.owner, 'interaction', new.id);
END;

CREATE TRIGGER feed_interaction_changed AFTER UPDATE OF status, executed_at ON interactions
WHEN old.status <> new.status OR old.executed_at IS NOT new.executed_at BEGIN
  DELETE FROM feed WHERE subject = new.id AND kind = 'interaction';
  INSERT INTO feed (owner, kind, subject) VALUES (new.owner, 'interaction', new.id);
END;

CREATE TRIGGER feed_interaction_removed AFTER DELETE ON interactions BEGIN
  DELETE FROM feed WHERE subject = old.id AND kind = 'interaction';
END;

CREATE TRIGGER feed_comparison_added AFTER INSERT ON comparisons WHEN new.offered = 1 BEGIN
  INSERT INTO feed (owner, kind, subject) VALUES (new.owner, 'comparison', new.id);
END;

CREATE TRIGGER feed_comparison_changed AFTER UPDATE OF state, preference, preference_at ON comparisons WHEN new.offered = 1 BEGIN
  DELETE FROM feed WHERE subject = new.id AND kind = 'comparison';
  INSERT INTO feed (owner, kind, subject) VALUES (new.owner, 'comparison', new.id);
END;

-- The first vote, or the end without one, reveals the two runs, so they change too.
CREATE TRIGGER feed_runs_revealed AFTER UPDATE OF state, preference ON comparisons
WHEN new.offered = 1
  AND ((old.preference IS NULL AND new.preference IS NOT NULL) OR (old.state <> 'failed' AND new.state = 'failed')) BEGIN
  DELETE FROM feed WHERE subject IN (new.run_a, new.run_b) AND kind = 'run';
  INSERT INTO feed (owner, kind, subject) SELECT owner, 'run', id FROM runs WHERE id IN (new.run_a, new.run_b);
END;

CREATE TRIGGER feed_comparison_removed AFTER DELETE ON comparisons BEGIN
  DELETE FROM feed WHERE subject = old.id AND kind = 'comparison';
END;

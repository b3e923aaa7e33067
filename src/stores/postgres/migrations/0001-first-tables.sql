-- The tables of the store. They have the names and columns of the SQLite tables, so that the two can be compared. Times are
-- milliseconds since 1970, flags are 0 or 1, and columns with JSON are TEXT, because JSONB refuses some valid strings.

-- The time by which leases and deadlines are judged, whatever the clocks of the servers say.
CREATE FUNCTION polylog_now() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT
$$;

CREATE TABLE conversations (
  id TEXT COLLATE "C" PRIMARY KEY,
  owner TEXT NOT NULL,
  title TEXT,
  summary TEXT,
  contact_id TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  last_message_at BIGINT,
  archived_at BIGINT,
  -- Which conversation of an owner was used last: the highest. Only the order means anything.
  activity BIGINT NOT NULL,
  -- Set if a chat that named no conversation started it: the highest of an owner is the newest.
  unnamed BIGINT
) WITH (fillfactor = 80);

CREATE SEQUENCE conversation_activity;
CREATE INDEX conversations_by_activity ON conversations (owner, activity, id);
CREATE INDEX conversations_unnamed ON conversations (owner, unnamed) WHERE unnamed IS NOT NULL;
CREATE INDEX conversations_by_last_message ON conversations (owner, coalesce(last_message_at, created_at), id);
CREATE INDEX conversations_by_contact ON conversations (owner, contact_id, activity) WHERE contact_id IS NOT NULL;

CREATE TABLE conversation_names (
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  PRIMARY KEY (owner, name)
);
CREATE INDEX conversation_names_by_conversation ON conversation_names (conversation_id);

-- The row of a run is also its lease. Every append changes `last_seq`, so no index holds that column, and pages keep free
-- space: PostgreSQL can then update the row in place.
CREATE TABLE runs (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  family TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  conversation_id TEXT COLLATE "C" REFERENCES conversations (id) ON DELETE CASCADE,
  skill_id TEXT,
  status TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  epoch BIGINT NOT NULL,
  lease_owner TEXT,
  lease_until BIGINT,
  wake_at BIGINT,
  woken_at BIGINT,
  last_seq BIGINT NOT NULL,
  cancel_by TEXT,
  cancel_reason TEXT,
  cancel_at BIGINT,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  ended_at BIGINT,
  error TEXT,
  turn BIGINT,
  held INTEGER NOT NULL,
  cache_key TEXT,
  share_key TEXT,
  usage TEXT,
  engine TEXT,
  -- What a node must offer to execute the run; NULL if nothing.
  needs TEXT[]
) WITH (fillfactor = 60);

CREATE INDEX runs_by_owner ON runs (owner, position);
CREATE INDEX runs_by_conversation ON runs (conversation_id, position);
CREATE INDEX runs_by_family ON runs (owner, family, position);
CREATE INDEX runs_by_skill ON runs (owner, skill_id, position) WHERE skill_id IS NOT NULL;
CREATE INDEX runs_by_cache_key ON runs (owner, cache_key, position) WHERE cache_key IS NOT NULL;
CREATE INDEX runs_by_share_key ON runs (owner, share_key) WHERE share_key IS NOT NULL;
CREATE INDEX runs_open ON runs (status, position) WHERE status IN ('queued', 'running', 'waiting_user');
CREATE INDEX runs_open_in_conversation ON runs (conversation_id, position) WHERE status IN ('queued', 'running', 'waiting_user');
CREATE INDEX runs_to_wake ON runs (wake_at) WHERE status = 'waiting_user';
CREATE INDEX runs_held ON runs (wake_at) WHERE held = 1 AND status = 'queued';
CREATE INDEX runs_to_cancel ON runs (position) WHERE cancel_at IS NOT NULL AND status IN ('queued', 'running', 'waiting_user');
-- Without `lease_until`, which every heartbeat changes.
CREATE INDEX runs_leased ON runs (position) WHERE lease_owner IS NOT NULL;
CREATE INDEX runs_with_needs ON runs (position) WHERE needs IS NOT NULL AND status IN ('queued', 'running', 'waiting_user');
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;

-- How many runs have each status, as sums over shards: one row for all nodes would make every change of a status wait for the
-- commit before it.
CREATE TABLE run_counts (
  status TEXT NOT NULL,
  shard INTEGER NOT NULL,
  count BIGINT NOT NULL,
  PRIMARY KEY (status, shard)
) WITH (fillfactor = 50);

CREATE FUNCTION count_run(counted TEXT, difference INTEGER) RETURNS void LANGUAGE sql AS $$
  INSERT INTO run_counts (status, shard, count) VALUES (counted, pg_backend_pid() % 64, difference)
  ON CONFLICT (status, shard) DO UPDATE SET count = run_counts.count + excluded.count
$$;

CREATE FUNCTION run_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- In one order, so that two transactions cannot wait for each other.
  IF TG_OP = 'UPDATE' THEN
    PERFORM count_run(change.status, change.difference)
    FROM (VALUES (OLD.status, -1), (NEW.status, 1)) AS change (status, difference) ORDER BY change.status;
  ELSIF TG_OP = 'INSERT' THEN PERFORM count_run(NEW.status, 1);
  ELSE PERFORM count_run(OLD.status, -1);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER run_counted AFTER INSERT OR DELETE ON runs FOR EACH ROW EXECUTE FUNCTION run_counted();
CREATE TRIGGER run_recounted AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION run_counted();

-- The slots of all nodes together: a run that is executed has one. A slot is taken by locking its row, and rows that others have
-- locked are skipped, so that nodes do not wait for each other.
CREATE TABLE slots (
  number INTEGER PRIMARY KEY,
  run_id TEXT COLLATE "C"
) WITH (fillfactor = 50);
CREATE INDEX slots_free ON slots (number) WHERE run_id IS NULL;
CREATE UNIQUE INDEX slots_by_run ON slots (run_id) WHERE run_id IS NOT NULL;

CREATE FUNCTION run_left_slot() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE slots SET run_id = NULL WHERE run_id = OLD.id;
  RETURN NULL;
END $$;

CREATE TRIGGER slot_released AFTER UPDATE OF lease_owner, ended_at ON runs FOR EACH ROW
  WHEN (OLD.lease_owner IS NOT NULL AND (NEW.lease_owner IS NULL OR NEW.ended_at IS NOT NULL))
  EXECUTE FUNCTION run_left_slot();

-- When the database began to work after a crash. A crash empties the table, and so does the promotion of a replica.
CREATE UNLOGGED TABLE database_starts (
  id INTEGER PRIMARY KEY DEFAULT 1 CHECK (id = 1),
  at BIGINT NOT NULL
);

-- Leases that ended by this time may be taken. After a crash it is none for the time of one lease, so that living nodes keep their
-- runs: they have deltas that the crash has lost.
CREATE FUNCTION last_lease_end(lease_ms BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
  now BIGINT := polylog_now();
  started BIGINT := (SELECT at FROM database_starts);
BEGIN
  IF started IS NULL THEN
    INSERT INTO database_starts (at) VALUES (now) ON CONFLICT DO NOTHING;
    started := now;
  END IF;
  RETURN CASE WHEN now < started + lease_ms THEN 0 ELSE now END;
END $$;

-- The oldest runs that a node may take and that need a slot, at most `most` of each kind. Each part uses its own index, so that the
-- cost grows with the claimable runs and not with the parked ones.
CREATE FUNCTION claimable_runs(at BIGINT, lease_end BIGINT, offered TEXT[], most INTEGER) RETURNS TABLE (id TEXT, place BIGINT)
LANGUAGE sql STABLE AS $$
  (SELECT id, position FROM runs
   WHERE status IN ('queued', 'running', 'waiting_user') AND (lease_owner IS NULL OR lease_until <= lease_end) AND cancel_at IS NULL
     AND (needs IS NULL OR needs <@ offered)
     AND status = 'queued' AND held = 0 AND NOT EXISTS (
       SELECT 1 FROM runs AS before
       WHERE before.conversation_id = runs.conversation_id
         AND coalesce(before.turn, before.position) < coalesce(runs.turn, runs.position)
         AND before.status IN ('queued', 'running', 'waiting_user'))
   ORDER BY position LIMIT most)
  UNION ALL
  (SELECT id, position FROM runs
   WHERE status IN ('queued', 'running', 'waiting_user') AND (lease_owner IS NULL OR lease_until <= lease_end) AND cancel_at IS NULL
     AND (needs IS NULL OR needs <@ offered) AND status = 'running'
   ORDER BY position LIMIT most)
  UNION ALL
  (SELECT id, position FROM runs
   WHERE (lease_owner IS NULL OR lease_until <= lease_end) AND cancel_at IS NULL
     AND (needs IS NULL OR needs <@ offered) AND status = 'waiting_user' AND wake_at <= at
   ORDER BY wake_at LIMIT most)
  UNION ALL
  (SELECT id, position FROM runs
   WHERE (lease_owner IS NULL OR lease_until <= lease_end) AND cancel_at IS NULL
     AND (needs IS NULL OR needs <@ offered) AND held = 1 AND status = 'queued' AND wake_at <= at
   ORDER BY wake_at LIMIT most)
$$;

-- Gives runs to a node: one call, so that a node that freezes in the middle cannot keep the lock. Claims wait for each other if
-- there is something to claim: otherwise one could miss a slot that another one locks and then does not need.
CREATE FUNCTION claim_runs(node TEXT, lease_ms BIGINT, most INTEGER, slots_max INTEGER, offered TEXT[])
RETURNS TABLE (run runs, taken_from TEXT) LANGUAGE plpgsql AS $$
DECLARE
  at BIGINT := polylog_now();
  lease_end BIGINT := last_lease_end(lease_ms);
  wanted TEXT[];
  taken TEXT[];
  canceled TEXT[];
  free INTEGER[];
BEGIN
  IF NOT EXISTS (SELECT 1 FROM claimable_runs(at, lease_end, offered, least(most, 1))) AND NOT EXISTS (
    SELECT 1 FROM runs WHERE cancel_at IS NOT NULL AND status IN ('queued', 'running', 'waiting_user')
      AND (lease_owner IS NULL OR lease_until <= lease_end))
  THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock(1886154599, 1);
  at := polylog_now();
  lease_end := last_lease_end(lease_ms);
  wanted := ARRAY(SELECT due.id FROM claimable_runs(at, lease_end, offered, most) AS due ORDER BY due.place LIMIT most);
  IF slots_max IS NOT NULL THEN
    free := free_slots(slots_max, cardinality(wanted));
    IF cardinality(free) < cardinality(wanted) THEN
      -- The slots of runs whose lease has run out are free too.
      UPDATE slots SET run_id = NULL WHERE number IN (
        SELECT held.number FROM slots AS held WHERE held.run_id IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM runs WHERE runs.id = held.run_id AND runs.lease_owner IS NOT NULL AND runs.lease_until > lease_end)
        FOR UPDATE OF held SKIP LOCKED);
      free := free_slots(slots_max, cardinality(wanted));
    END IF;
    wanted := wanted[:cardinality(free)];
  END IF;
  taken := ARRAY(
    SELECT id FROM runs WHERE id = ANY (wanted) AND status IN ('queued', 'running', 'waiting_user')
      AND (lease_owner IS NULL OR lease_until <= lease_end)
    ORDER BY position FOR NO KEY UPDATE SKIP LOCKED);
  IF slots_max IS NOT NULL THEN
    UPDATE slots SET run_id = NULL WHERE run_id = ANY (taken);
    UPDATE slots SET run_id = seat.run_id
    FROM (SELECT unnest(taken) AS run_id, unnest(free[:cardinality(taken)]) AS number) AS seat WHERE slots.number = seat.number;
  END IF;
  canceled := ARRAY(
    SELECT id FROM runs WHERE cancel_at IS NOT NULL AND status IN ('queued', 'running', 'waiting_user')
      AND (lease_owner IS NULL OR lease_until <= lease_end)
    ORDER BY position FOR NO KEY UPDATE SKIP LOCKED);
  RETURN QUERY
    WITH former AS (SELECT id, lease_owner FROM runs WHERE id = ANY (taken || canceled))
    UPDATE runs SET epoch = epoch + 1, lease_owner = node, lease_until = at + lease_ms, woken_at = NULL
    FROM former WHERE runs.id = former.id RETURNING runs, former.lease_owner;
END $$;

-- Locks free slots until the transaction ends.
CREATE FUNCTION free_slots(slots_max INTEGER, most INTEGER) RETURNS INTEGER[] LANGUAGE sql AS $$
  SELECT ARRAY(
    SELECT number FROM slots WHERE run_id IS NULL AND number <= slots_max ORDER BY number LIMIT most FOR UPDATE SKIP LOCKED)
$$;

-- One row for each append: the events with the numbers `first_seq` to `last_seq`, one JSON text a line. The id of a run begins
-- with the time of its acceptance, so each partition holds the runs of some days, and old journals leave with their partition.
-- The server makes the partitions (journal-partitions.ts); these two hold what is not a ULID. There is no default partition,
-- because a new partition would have to lock and search it.
CREATE TABLE journal (
  run_id TEXT COLLATE "C" NOT NULL,
  first_seq BIGINT NOT NULL,
  last_seq BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (run_id, last_seq)
) PARTITION BY RANGE (run_id);
CREATE TABLE journal_low PARTITION OF journal FOR VALUES FROM (MINVALUE) TO ('0000000000');
CREATE TABLE journal_high PARTITION OF journal FOR VALUES FROM ('8') TO (MAXVALUE);

CREATE TABLE messages (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  run_id TEXT,
  turn BIGINT NOT NULL,
  parent_id TEXT,
  role TEXT NOT NULL,
  content TEXT NOT NULL,
  -- As JSON; NULL if the message is only text.
  parts TEXT,
  state TEXT NOT NULL,
  tool_call_id TEXT,
  metadata TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX messages_by_turn ON messages (conversation_id, turn, position);

CREATE FUNCTION message_dated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE conversations SET last_message_at = NEW.created_at WHERE id = NEW.conversation_id;
  RETURN NULL;
END $$;

CREATE TRIGGER message_dated AFTER INSERT ON messages FOR EACH ROW
  WHEN (NEW.role IN ('user', 'assistant') AND NEW.state <> 'abandoned' AND NEW.content <> '')
  EXECUTE FUNCTION message_dated();

CREATE TABLE interactions (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  number INTEGER NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
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
  decided_at BIGINT,
  result TEXT,
  error TEXT,
  executed_at BIGINT,
  deadline_at BIGINT,
  at_deadline TEXT,
  reply_key TEXT,
  reply_fingerprint TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX interactions_by_run ON interactions (run_id, number);
CREATE INDEX interactions_by_owner ON interactions (owner, position);

CREATE TABLE idempotency_keys (
  owner TEXT NOT NULL,
  route TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  reused INTEGER NOT NULL,
  PRIMARY KEY (owner, route, key)
);
CREATE INDEX idempotency_keys_by_run ON idempotency_keys (run_id);

CREATE TABLE blobs (
  id TEXT COLLATE "C" PRIMARY KEY,
  run_id TEXT COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  body TEXT NOT NULL
);
CREATE INDEX blobs_by_run ON blobs (run_id);

CREATE TABLE notes (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  text TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX notes_by_owner ON notes (owner, position);

CREATE TABLE feedback (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  message_id TEXT COLLATE "C" NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  kind TEXT NOT NULL,
  text TEXT,
  incorrect INTEGER NOT NULL,
  unhelpful INTEGER NOT NULL,
  inappropriate INTEGER NOT NULL,
  at BIGINT NOT NULL
);
CREATE INDEX feedback_by_message ON feedback (message_id, owner, position);
CREATE UNIQUE INDEX feedback_reactions ON feedback (message_id, owner) WHERE kind IN ('like', 'dislike');

CREATE TABLE comparisons (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  user_message_id TEXT NOT NULL,
  run_a TEXT,
  run_b TEXT,
  message_a TEXT,
  message_b TEXT,
  config_a TEXT NOT NULL,
  config_b TEXT NOT NULL,
  first_side_is_config_a INTEGER NOT NULL,
  -- 0: the server noticed two answers to one question; no vote is asked until the client makes a comparison of them.
  offered INTEGER NOT NULL,
  state TEXT NOT NULL,
  preference TEXT,
  preference_at BIGINT,
  revisions TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX comparisons_by_owner ON comparisons (owner, position);
CREATE INDEX comparisons_by_conversation ON comparisons (conversation_id, position);
CREATE INDEX comparisons_by_run_a ON comparisons (run_a) WHERE run_a IS NOT NULL;
CREATE INDEX comparisons_by_run_b ON comparisons (run_b) WHERE run_b IS NOT NULL;
CREATE INDEX comparisons_unsettled ON comparisons (position) WHERE state = 'pending';
CREATE INDEX comparisons_votes ON comparisons (config_a, config_b, first_side_is_config_a, preference, owner)
  WHERE preference IS NOT NULL;

-- `scope` is a conversation, or a run that has none; the triggers below stand in for a reference to either.
CREATE TABLE file_versions (
  scope TEXT NOT NULL,
  path TEXT NOT NULL,
  hash TEXT NOT NULL,
  write_key TEXT,
  hash_before TEXT,
  replacements BIGINT,
  at BIGINT NOT NULL,
  PRIMARY KEY (scope, path)
);

CREATE TABLE todo_lists (
  scope TEXT PRIMARY KEY,
  todos TEXT NOT NULL,
  at BIGINT NOT NULL
);

-- Results of one-shot runs. Rows never change. `run_id` may outlive its run.
CREATE TABLE snapshots (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
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
  created_at BIGINT NOT NULL,
  expires_at BIGINT
);
CREATE INDEX snapshots_by_subject ON snapshots (owner, agent_id, operation, scope_type, scope_id, position);
CREATE INDEX snapshots_by_owner ON snapshots (owner, position);
CREATE INDEX snapshots_by_scope ON snapshots (owner, scope_type, scope_id);
CREATE INDEX snapshots_by_run ON snapshots (run_id);
CREATE INDEX snapshots_by_expiry ON snapshots (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE contacts (
  serial BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner TEXT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  uid TEXT,
  name TEXT NOT NULL,
  -- What a search looks at, in lower case and bounded.
  search TEXT NOT NULL,
  alias TEXT,
  email TEXT,
  phone TEXT,
  company TEXT,
  position TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  tags TEXT NOT NULL,
  note TEXT,
  profile TEXT NOT NULL,
  UNIQUE (owner, id)
);
CREATE UNIQUE INDEX contacts_by_uid ON contacts (owner, uid) WHERE uid IS NOT NULL;
CREATE INDEX contacts_by_name ON contacts (owner, name, phone);
CREATE INDEX contacts_by_email ON contacts (owner, lower(email)) WHERE email IS NOT NULL;
CREATE INDEX contacts_by_serial ON contacts (owner, serial);
CREATE INDEX contacts_by_update ON contacts (owner, updated_at, serial);

CREATE TABLE contact_tags (
  owner TEXT NOT NULL,
  tag TEXT NOT NULL,
  serial BIGINT NOT NULL REFERENCES contacts (serial) ON DELETE CASCADE,
  PRIMARY KEY (owner, tag, serial)
);
CREATE INDEX contact_tags_by_contact ON contact_tags (serial);

CREATE TABLE contact_facts (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  contact_id TEXT COLLATE "C" NOT NULL,
  content TEXT NOT NULL,
  metadata TEXT NOT NULL,
  source_conversation_id TEXT COLLATE "C" REFERENCES conversations (id) ON DELETE SET NULL,
  source_message_ids TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  FOREIGN KEY (owner, contact_id) REFERENCES contacts (owner, id) ON DELETE CASCADE
);
CREATE INDEX contact_facts_by_contact ON contact_facts (owner, contact_id, position);
CREATE INDEX contact_facts_by_source ON contact_facts (source_conversation_id) WHERE source_conversation_id IS NOT NULL;

CREATE TABLE contact_todos (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  contact_id TEXT COLLATE "C" NOT NULL,
  content TEXT NOT NULL,
  status TEXT NOT NULL,
  due_at BIGINT,
  source_conversation_id TEXT COLLATE "C" REFERENCES conversations (id) ON DELETE SET NULL,
  source_message_ids TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  FOREIGN KEY (owner, contact_id) REFERENCES contacts (owner, id) ON DELETE CASCADE
);
CREATE INDEX contact_todos_by_contact ON contact_todos (owner, contact_id, position);
CREATE INDEX contact_todos_by_due_time ON contact_todos (owner, contact_id, status, due_at NULLS LAST, position);
CREATE INDEX contact_todos_by_source ON contact_todos (source_conversation_id) WHERE source_conversation_id IS NOT NULL;

CREATE TABLE contact_events (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  contact_id TEXT COLLATE "C" NOT NULL,
  title TEXT NOT NULL,
  description TEXT,
  details TEXT NOT NULL,
  event_date BIGINT,
  source_conversation_id TEXT COLLATE "C" REFERENCES conversations (id) ON DELETE SET NULL,
  source_message_ids TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  FOREIGN KEY (owner, contact_id) REFERENCES contacts (owner, id) ON DELETE CASCADE
);
CREATE INDEX contact_events_by_date ON contact_events (owner, contact_id, coalesce(event_date, created_at), position);
CREATE INDEX contact_events_by_source ON contact_events (source_conversation_id) WHERE source_conversation_id IS NOT NULL;

CREATE TABLE conversation_archives (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  snapshot_id TEXT,
  status TEXT NOT NULL,
  revision INTEGER NOT NULL,
  computed INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  applied_at BIGINT,
  discarded_at BIGINT,
  summary TEXT NOT NULL,
  payload TEXT NOT NULL
);
CREATE INDEX conversation_archives_by_conversation ON conversation_archives (conversation_id, position);

-- Sums of token counts and cost (in millionths of a dollar). `cost` is NULL if no step has a known cost. No reference to runs
-- or conversations: the sums of a user stay when these are removed.
CREATE TABLE usage_days (
  owner TEXT NOT NULL,
  day TEXT COLLATE "C" NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  steps BIGINT NOT NULL,
  input BIGINT NOT NULL,
  cached BIGINT NOT NULL,
  cache_write BIGINT NOT NULL,
  output BIGINT NOT NULL,
  reasoning BIGINT NOT NULL,
  cost BIGINT,
  unpriced BIGINT NOT NULL,
  PRIMARY KEY (owner, day, agent_id, model)
) WITH (fillfactor = 80);

-- Of all users, so that a budget of the whole server reads few rows; in shards, as `run_counts`.
CREATE TABLE usage_totals (
  day TEXT COLLATE "C" NOT NULL,
  shard INTEGER NOT NULL,
  steps BIGINT NOT NULL,
  input BIGINT NOT NULL,
  cached BIGINT NOT NULL,
  cache_write BIGINT NOT NULL,
  output BIGINT NOT NULL,
  reasoning BIGINT NOT NULL,
  cost BIGINT,
  unpriced BIGINT NOT NULL,
  PRIMARY KEY (day, shard)
) WITH (fillfactor = 50);

CREATE TABLE usage_conversations (
  conversation_id TEXT COLLATE "C" PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
  steps BIGINT NOT NULL,
  input BIGINT NOT NULL,
  cached BIGINT NOT NULL,
  cache_write BIGINT NOT NULL,
  output BIGINT NOT NULL,
  reasoning BIGINT NOT NULL,
  cost BIGINT,
  unpriced BIGINT NOT NULL
) WITH (fillfactor = 80);

-- The retention removes many runs and sets `polylog.keep_journal`: their events leave later, with their partition.
CREATE FUNCTION run_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('polylog.keep_journal', true) IS DISTINCT FROM 'on' THEN
    DELETE FROM journal WHERE run_id = OLD.id;
  END IF;
  DELETE FROM file_versions WHERE scope = OLD.id;
  DELETE FROM todo_lists WHERE scope = OLD.id;
  RETURN NULL;
END $$;
CREATE TRIGGER run_removed AFTER DELETE ON runs FOR EACH ROW EXECUTE FUNCTION run_removed();

-- The scope of a snapshot is the id of the conversation, or a name of it if the snapshot was made before the conversation.
CREATE FUNCTION conversation_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM file_versions WHERE scope = OLD.id;
  DELETE FROM todo_lists WHERE scope = OLD.id;
  DELETE FROM snapshots
  WHERE owner = OLD.owner AND scope_type = 'conversation'
    AND (scope_id = OLD.id OR scope_id IN (SELECT name FROM conversation_names WHERE conversation_id = OLD.id));
  RETURN OLD;
END $$;
CREATE TRIGGER conversation_removed BEFORE DELETE ON conversations FOR EACH ROW EXECUTE FUNCTION conversation_removed();

CREATE FUNCTION contact_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM snapshots WHERE owner = OLD.owner AND scope_type = 'contact' AND scope_id = OLD.id;
  RETURN NULL;
END $$;
CREATE TRIGGER contact_removed AFTER DELETE ON contacts FOR EACH ROW EXECUTE FUNCTION contact_removed();

-- Work that one node at a time does for all, such as the retention.
CREATE TABLE duties (
  name TEXT PRIMARY KEY,
  node TEXT NOT NULL,
  until BIGINT NOT NULL
);

-- One row while a copy into this database has not ended: no server starts on it.
CREATE TABLE unfinished_copies (
  id INTEGER PRIMARY KEY DEFAULT 1,
  started_at BIGINT NOT NULL
);

-- One row, which the health check writes.
CREATE TABLE store_checks (
  id INTEGER PRIMARY KEY DEFAULT 1,
  at TIMESTAMPTZ NOT NULL
);

-- Files of users. One content may have several names, so names and contents are two tables.
CREATE TABLE file_contents (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  size BIGINT NOT NULL,
  UNIQUE (owner, sha256)
);

-- In pieces, so that reading a large file does not block other work of a server for long.
CREATE TABLE file_chunks (
  content BIGINT NOT NULL REFERENCES file_contents (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  bytes BYTEA NOT NULL,
  PRIMARY KEY (content, number)
);
-- Most files are compressed already.
ALTER TABLE file_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE files (
  position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  content BIGINT NOT NULL REFERENCES file_contents (id),
  media_type TEXT NOT NULL,
  name TEXT,
  created_at BIGINT NOT NULL,
  put_at BIGINT NOT NULL
);
CREATE INDEX files_by_owner ON files (owner, position);
CREATE INDEX files_by_content ON files (content);
CREATE INDEX files_by_age ON files (put_at);

-- Exactly one of message and run is set.
CREATE TABLE file_references (
  file_id TEXT COLLATE "C" NOT NULL REFERENCES files (id),
  message_id TEXT COLLATE "C" REFERENCES messages (id) ON DELETE CASCADE,
  run_id TEXT COLLATE "C" REFERENCES runs (id) ON DELETE CASCADE
);
CREATE INDEX file_references_by_file ON file_references (file_id);
CREATE UNIQUE INDEX file_references_by_message ON file_references (message_id, file_id) WHERE message_id IS NOT NULL;
CREATE UNIQUE INDEX file_references_by_run ON file_references (run_id, file_id) WHERE run_id IS NOT NULL;

-- The nodes that use the database. A node writes its row at every heartbeat.
CREATE TABLE nodes (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  lease_ms BIGINT NOT NULL,
  offers TEXT NOT NULL,
  draining INTEGER NOT NULL,
  capacity BIGINT NOT NULL,
  running BIGINT NOT NULL
) WITH (fillfactor = 50);

-- Which things of an owner changed last, for GET /v1/feed. Each thing has at most one row; each change gives it the id of
-- its transaction and a new number. Triggers write the rows, so that no statement can forget one.
CREATE TABLE feed (
  subject TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  owner TEXT NOT NULL,
  txid BIGINT NOT NULL,
  number BIGINT NOT NULL,
  PRIMARY KEY (subject, kind)
) WITH (fillfactor = 80);
CREATE SEQUENCE feed_number;
CREATE INDEX feed_by_owner ON feed (owner, txid, number);
CREATE INDEX feed_by_number ON feed (number);

-- One row, written at the first start: `epoch` identifies this database in the cursors of readers, and the floor is the
-- highest position that was removed.
CREATE TABLE feed_state (
  id INTEGER PRIMARY KEY DEFAULT 1,
  epoch BIGINT NOT NULL,
  floor_txid BIGINT NOT NULL,
  floor_number BIGINT NOT NULL
);

-- A transaction that changes a thing several times writes once.
CREATE FUNCTION mark_feed(changed_owner TEXT, changed_kind TEXT, changed TEXT) RETURNS void LANGUAGE sql AS $$
  INSERT INTO feed (subject, kind, owner, txid, number)
  VALUES (changed, changed_kind, changed_owner, pg_current_xact_id()::TEXT::BIGINT, nextval('feed_number'))
  ON CONFLICT (subject, kind) DO UPDATE SET owner = excluded.owner, txid = excluded.txid, number = excluded.number
    WHERE feed.txid <> excluded.txid
$$;

-- The runs of a conversation disappear with it or by age; only the end of other runs is told.
CREATE FUNCTION feed_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  kind_of_thing TEXT := TG_ARGV[0];
BEGIN
  IF TG_OP <> 'DELETE' THEN PERFORM mark_feed(NEW.owner, kind_of_thing, NEW.id);
  ELSIF kind_of_thing = 'conversation' THEN PERFORM mark_feed(OLD.owner, kind_of_thing, OLD.id);
  ELSIF kind_of_thing = 'run' AND OLD.conversation_id IS NULL THEN PERFORM mark_feed(OLD.owner, kind_of_thing, OLD.id);
  ELSE DELETE FROM feed WHERE subject = OLD.id AND kind = kind_of_thing;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER feed_conversation_added AFTER INSERT OR DELETE ON conversations FOR EACH ROW EXECUTE FUNCTION feed_changed('conversation');
CREATE TRIGGER feed_conversation_changed AFTER UPDATE OF title, summary, contact_id, activity, archived_at ON conversations
  FOR EACH ROW EXECUTE FUNCTION feed_changed('conversation');
CREATE TRIGGER feed_run_added AFTER INSERT OR DELETE ON runs FOR EACH ROW EXECUTE FUNCTION feed_changed('run');
CREATE TRIGGER feed_run_changed AFTER UPDATE OF status, cancel_at, attempt ON runs FOR EACH ROW
  WHEN (OLD.status <> NEW.status OR OLD.cancel_at IS DISTINCT FROM NEW.cancel_at OR OLD.attempt <> NEW.attempt)
  EXECUTE FUNCTION feed_changed('run');
CREATE TRIGGER feed_interaction_added AFTER INSERT OR DELETE ON interactions FOR EACH ROW EXECUTE FUNCTION feed_changed('interaction');
CREATE TRIGGER feed_interaction_changed AFTER UPDATE OF status, executed_at ON interactions FOR EACH ROW
  WHEN (OLD.status <> NEW.status OR OLD.executed_at IS DISTINCT FROM NEW.executed_at)
  EXECUTE FUNCTION feed_changed('interaction');
CREATE TRIGGER feed_comparison_added AFTER INSERT ON comparisons FOR EACH ROW WHEN (NEW.offered = 1)
  EXECUTE FUNCTION feed_changed('comparison');
CREATE TRIGGER feed_comparison_removed AFTER DELETE ON comparisons FOR EACH ROW EXECUTE FUNCTION feed_changed('comparison');
CREATE TRIGGER feed_comparison_changed AFTER UPDATE OF state, preference, preference_at ON comparisons FOR EACH ROW
  WHEN (NEW.offered = 1) EXECUTE FUNCTION feed_changed('comparison');

-- The first vote, or the end without one, reveals the two runs, so they change too.
CREATE FUNCTION feed_runs_revealed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM mark_feed(owner, 'run', id) FROM runs WHERE id IN (NEW.run_a, NEW.run_b);
  RETURN NULL;
END $$;
CREATE TRIGGER feed_runs_revealed AFTER UPDATE OF state, preference ON comparisons FOR EACH ROW
  WHEN (NEW.offered = 1 AND ((OLD.preference IS NULL AND NEW.preference IS NOT NULL) OR (OLD.state <> 'failed' AND NEW.state = 'failed')))
  EXECUTE FUNCTION feed_runs_revealed();

-- Windows of rate limits. A crash of the database empties the table, which only lets callers do more.
CREATE UNLOGGED TABLE rate_windows (
  key TEXT COLLATE "C" PRIMARY KEY,
  hits BIGINT NOT NULL,
  until BIGINT NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX rate_windows_by_end ON rate_windows (until);

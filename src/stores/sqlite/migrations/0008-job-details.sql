-- What jobs are found by: their skill, the request that a result answers, the time until which an upload may come.

ALTER TABLE runs ADD COLUMN skill_id TEXT;
-- Set when a job has succeeded and its result may be given to the same request again.
ALTER TABLE runs ADD COLUMN cache_key TEXT;

CREATE INDEX runs_by_family ON runs (owner, family, position);
CREATE INDEX runs_by_skill ON runs (owner, skill_id, position) WHERE skill_id IS NOT NULL;
CREATE INDEX runs_by_cache_key ON runs (owner, cache_key, position) WHERE cache_key IS NOT NULL;
-- `wake_at` of a held run is when it is given up. Runs that were held before this migration have none and wait for ever.
CREATE INDEX runs_held ON runs (wake_at) WHERE held = 1 AND status = 'queued';

-- 1: the request was answered with the result of an earlier run, and not with a run of its own.
ALTER TABLE idempotency_keys ADD COLUMN reused INTEGER NOT NULL DEFAULT 0;

-- What a node must offer to execute the run, as JSON; NULL if nothing.
ALTER TABLE runs ADD COLUMN needs TEXT;

-- 1 while the run is executed and counts towards the number of runs that may be executed at the same time.
ALTER TABLE runs ADD COLUMN slot INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_with_slot ON runs (lease_until) WHERE slot = 1;

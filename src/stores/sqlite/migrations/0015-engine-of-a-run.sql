-- The engine that executes a run; null until the run has started, and for runs of earlier versions.
ALTER TABLE runs ADD COLUMN engine TEXT;

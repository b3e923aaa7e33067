-- 0: the server noticed two answers to one question; no vote is asked until the client makes a comparison of them.
ALTER TABLE comparisons ADD COLUMN offered INTEGER NOT NULL DEFAULT 1;

-- Runs that exist before they can start, and replies that are sent twice.

-- 1: accepted, and something that the run needs has not come yet. Nobody claims it, except to cancel it.
ALTER TABLE runs ADD COLUMN held INTEGER NOT NULL DEFAULT 0;

-- The key and the fingerprint of the reply that decided it.
ALTER TABLE interactions ADD COLUMN reply_key TEXT;
ALTER TABLE interactions ADD COLUMN reply_fingerprint TEXT;

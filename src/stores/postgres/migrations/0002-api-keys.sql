-- Keys that were made with `polylog keys`; only their hashes.
CREATE TABLE api_keys (
  id TEXT COLLATE "C" PRIMARY KEY,
  owner TEXT NOT NULL,
  name TEXT,
  hash TEXT COLLATE "C" NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  last_used_at BIGINT
);

CREATE INDEX api_keys_by_owner ON api_keys (owner, created_at);

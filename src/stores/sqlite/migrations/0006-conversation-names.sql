-- Names that clients choose for conversations count per owner. Before, a client's `conversationId` was the id itself,
-- and `sessionId` had a table of its own; now both are rows here.
CREATE TABLE conversation_names (
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  PRIMARY KEY (owner, name)
) WITHOUT ROWID;

CREATE INDEX conversation_names_by_conversation ON conversation_names (conversation_id);

-- Ids that are not ULIDs (with `agt-` before them for sessions of the session API) were chosen by clients.
INSERT INTO conversation_names (owner, name, conversation_id)
SELECT owner, id, id FROM conversations
WHERE id NOT GLOB '[0-7]' || replace(hex(zeroblob(25)), '00', '[0-9A-HJKMNP-TV-Z]')
  AND id NOT GLOB 'agt-[0-7]' || replace(hex(zeroblob(25)), '00', '[0-9A-HJKMNP-TV-Z]');

-- If one owner used the same text as both, the conversation id wins.
INSERT OR IGNORE INTO conversation_names (owner, name, conversation_id)
SELECT owner, session_key, conversation_id FROM sessions;

DROP TABLE sessions;

-- Set if a chat that named no conversation started it: the highest of an owner is the newest. Only the order means anything.
ALTER TABLE conversations ADD COLUMN unnamed INTEGER;

-- A conversation that was created together with its first run has the same time as that run.
UPDATE conversations SET unnamed = created_at
WHERE id NOT LIKE 'agt-%'
  AND NOT EXISTS (SELECT 1 FROM conversation_names WHERE conversation_id = conversations.id)
  AND EXISTS (SELECT 1 FROM runs WHERE conversation_id = conversations.id AND runs.created_at = conversations.created_at);

CREATE INDEX conversations_unnamed ON conversations (owner, unnamed) WHERE unnamed IS NOT NULL;

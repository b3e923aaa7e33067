-- When the last message of a conversation was written; null if it has none. `updated_at` also moves when a conversation is
-- renamed or a run ends without an answer.
ALTER TABLE conversations ADD COLUMN last_message_at INTEGER;

-- A message is what a person sees as one: no tool results, no steps that only call tools, nothing that broke off.
UPDATE conversations SET last_message_at = (
  SELECT created_at FROM messages
  WHERE messages.conversation_id = conversations.id
    AND role IN ('user', 'assistant') AND state <> 'abandoned' AND content <> ''
  ORDER BY turn DESC, position DESC LIMIT 1
);

CREATE INDEX conversations_by_last_message ON conversations (owner, coalesce(last_message_at, created_at), id);

CREATE TRIGGER message_dated AFTER INSERT ON messages
WHEN new.role IN ('user', 'assistant') AND new.state <> 'abandoned' AND new.content <> '' BEGIN
  UPDATE conversations SET last_message_at = new.created_at WHERE id = new.conversation_id;
END;

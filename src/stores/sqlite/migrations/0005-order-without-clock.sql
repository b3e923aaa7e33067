-- Lists in the order in which things happened, whatever the system clock said meanwhile.

-- Which conversation of an owner was used last: the highest. Only the order means anything.
ALTER TABLE conversations ADD COLUMN activity INTEGER NOT NULL DEFAULT 0;

UPDATE conversations SET activity = ranked.place
FROM (SELECT id, row_number() OVER (PARTITION BY owner ORDER BY updated_at, id) AS place FROM conversations) AS ranked
WHERE ranked.id = conversations.id;

DROP INDEX conversations_by_owner;
CREATE INDEX conversations_by_activity ON conversations (owner, activity);

-- Pages of messages follow their turns. The time of the last message is read from the index alone: in the table it stands
-- behind the text, which may be long.
DROP INDEX messages_by_time;
DROP INDEX messages_by_turn;
CREATE INDEX messages_by_turn ON messages (conversation_id, turn, position, created_at);

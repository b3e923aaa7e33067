-- Contacts, the records about them, and conversations that are linked to a contact.

-- `serial` is the order of creation. `search` is what a search looks at, in lower case and bounded; it stands before the
-- long columns, so that reading it reads no overflow page.
CREATE TABLE contacts (
  serial INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  id TEXT NOT NULL,
  uid TEXT,
  name TEXT NOT NULL,
  search TEXT NOT NULL,
  alias TEXT,
  email TEXT,
  phone TEXT,
  company TEXT,
  position TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  tags TEXT NOT NULL,
  note TEXT,
  profile TEXT NOT NULL,
  UNIQUE (owner, id)
);

CREATE UNIQUE INDEX contacts_by_uid ON contacts (owner, uid) WHERE uid IS NOT NULL;
CREATE INDEX contacts_by_name ON contacts (owner, name);
CREATE INDEX contacts_by_email ON contacts (owner, email COLLATE NOCASE) WHERE email IS NOT NULL;
CREATE INDEX contacts_by_serial ON contacts (owner, serial);
-- Holds `search` too, so that a search reads this index alone, in the order of the list.
CREATE INDEX contacts_by_update ON contacts (owner, updated_at, serial, search);

CREATE TABLE contact_tags (
  owner TEXT NOT NULL,
  tag TEXT NOT NULL,
  serial INTEGER NOT NULL REFERENCES contacts (serial) ON DELETE CASCADE,
  PRIMARY KEY (owner, tag, serial)
) WITHOUT ROWID;

CREATE INDEX contact_tags_by_contact ON contact_tags (serial);

CREATE TABLE contact_facts (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  contact_id TEXT NOT NULL,
  content TEXT NOT NULL,
  metadata TEXT NOT NULL,
  source_conversation_id TEXT REFERENCES conversations (id) ON DELETE SET NULL,
  source_message_ids TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  FOREIGN KEY (owner, contact_id) REFERENCES contacts (owner, id) ON DELETE CASCADE
);

CREATE INDEX contact_facts_by_contact ON contact_facts (owner, contact_id, position);
CREATE INDEX contact_facts_by_source ON contact_facts (source_conversation_id) WHERE source_conversation_id IS NOT NULL;

CREATE TABLE contact_todos (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  contact_id TEXT NOT NULL,
  content TEXT NOT NULL,
  status TEXT NOT NULL,
  due_at INTEGER,
  source_conversation_id TEXT REFERENCES conversations (id) ON DELETE SET NULL,
  source_message_ids TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  FOREIGN KEY (owner, contact_id) REFERENCES contacts (owner, id) ON DELETE CASCADE
);

CREATE INDEX contact_todos_by_contact ON contact_todos (owner, contact_id, position);
-- The large number stands for "no due time": these come last.
CREATE INDEX contact_todos_by_due_time
  ON contact_todos (owner, contact_id, status, coalesce(due_at, 9007199254740991), position);
CREATE INDEX contact_todos_by_source ON contact_todos (source_conversation_id) WHERE source_conversation_id IS NOT NULL;

CREATE TABLE contact_events (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  contact_id TEXT NOT NULL,
  title TEXT NOT NULL,
  description TEXT,
  details TEXT NOT NULL,
  event_date INTEGER,
  source_conversation_id TEXT REFERENCES conversations (id) ON DELETE SET NULL,
  source_message_ids TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  FOREIGN KEY (owner, contact_id) REFERENCES contacts (owner, id) ON DELETE CASCADE
);

CREATE INDEX contact_events_by_date ON contact_events (owner, contact_id, coalesce(event_date, created_at), position);
CREATE INDEX contact_events_by_source ON contact_events (source_conversation_id) WHERE source_conversation_id IS NOT NULL;

ALTER TABLE conversations ADD COLUMN summary TEXT;
-- One of the contacts of the conversation's owner. A contact is deleted after its conversations, so it always exists.
ALTER TABLE conversations ADD COLUMN contact_id TEXT;
CREATE INDEX conversations_by_contact ON conversations (owner, contact_id, activity) WHERE contact_id IS NOT NULL;

CREATE TRIGGER snapshots_of_contact_removed AFTER DELETE ON contacts BEGIN
  DELETE FROM snapshots WHERE owner = old.owner AND scope_type = 'contact' AND scope_id = old.id;
END;

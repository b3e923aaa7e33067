-- An imported contact is looked up by name and phone; many people share a name.
CREATE INDEX contacts_by_name_and_phone ON contacts (owner, name, phone) WHERE phone IS NOT NULL;

-- The log in front of the database: which one belongs to it, and up to which record it has everything.
INSERT INTO store_state (name, value) VALUES ('log_lineage', abs(random() % 281474976710656)), ('log_applied', 0);

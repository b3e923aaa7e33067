-- The sum of the sizes of an owner's files is read for every new file; with this index, without reading the table.
CREATE INDEX file_contents_by_size ON file_contents (owner, size);

-- The connection over which a memory was written that names no session: by it those within half an hour are neighbours.
ALTER TABLE documents ADD COLUMN connection VARCHAR;

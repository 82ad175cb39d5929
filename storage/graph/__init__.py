"""The graph projection: one namespace in a ladybug file, built from DuckDB and queried in Cypher."""

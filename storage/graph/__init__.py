"""The graph projection: nodes and edges of one namespace in a ladybug file, built from DuckDB and queried in Cypher."""

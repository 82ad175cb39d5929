"""What DuckDB keeps in memory of its file: a quarter of the machine, and none of it goes by itself."""

from __future__ import annotations

import duckdb

BUFFER_LIMIT = "24MB"


def cached_bytes(cursor: duckdb.DuckDBPyConnection) -> int:
    """How much of its file DuckDB keeps in memory: what was read or written since the last release."""
    row = cursor.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory() WHERE tag = 'BASE_TABLE'").fetchone()
    return int(row[0] or 0) if row is not None else 0


def release_buffers(cursor: duckdb.DuckDBPyConnection) -> None:
    """Make DuckDB free what nobody uses at the moment, down to BUFFER_LIMIT.

    The vectors of 100,000 memories, say, have 200 MB there, and the indexes have copies of them. What is not folded
    into the file yet goes to DuckDB's temporary files.
    """
    limit = cursor.execute("SELECT current_setting('memory_limit')").fetchone()
    try:
        cursor.execute(f"SET memory_limit = '{BUFFER_LIMIT}'")
    except duckdb.Error:
        pass  # somebody reads at the moment, or the disk is full: what could go has gone
    finally:
        if limit is not None:
            cursor.execute(f"SET memory_limit = '{limit[0]}'")

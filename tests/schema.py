"""The program's schema in a database in memory, without migrating each time: migrated once in a file, then copied (tests/sql tests migrating)."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import duckdb

from storage.database import Database
from storage.migrate import migrate

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


@cache
def migrated_file() -> Path:
    """An empty store of today's schema, once per process."""
    folder = Path(tempfile.mkdtemp(prefix="thalweg-schema-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    database = Database(folder)
    assert database.path is not None
    migrate(database.cursor(), NOW)
    database.close()
    return database.path


def copy_into(connection: duckdb.DuckDBPyConnection, file: Path | None = None) -> None:
    """Everything of that file, else the bare schema, into an empty database in memory."""
    connection.execute(f"ATTACH '{file or migrated_file()}' AS template (READ_ONLY)")
    connection.execute("COPY FROM DATABASE template TO memory")
    connection.execute("DETACH template")


def fresh_database() -> Database:
    """In memory, migrated, empty."""
    database = Database(None)
    copy_into(database.cursor())
    return database

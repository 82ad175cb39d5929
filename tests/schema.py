"""The program's schema without migrating each time.

Migrated once in a file, then copied (tests/sql tests migrating).
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import duckdb

from storage.database import Database
from storage.migrate import migrate
from storage.tables import Table, read_tables

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


@cache
def tables() -> Mapping[str, Table]:
    """What `read_tables` says of every store of today's schema."""
    with duckdb.connect(migrated_file(), read_only=True) as connection:
        return read_tables(connection)


@cache
def _filled() -> list[str]:
    """The tables in which there is something from the beginning."""
    with duckdb.connect(migrated_file(), read_only=True) as connection:
        return [name for name in tables() if connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()]


def copy_into(connection: duckdb.DuckDBPyConnection, file: Path | None = None) -> None:
    """Everything of that file, else a store's schema and what is in it from the beginning, into an empty database in
    memory.
    """
    filled = [] if file else _filled()
    connection.execute(f"ATTACH '{file or migrated_file()}' AS template (READ_ONLY)")
    connection.execute(f"COPY FROM DATABASE template TO memory{'' if file else ' (SCHEMA)'}")
    for name in filled:  # a copy of everything takes twice as long: it looks into every table
        connection.execute(f"INSERT INTO memory.{name} FROM template.{name}")
    connection.execute("DETACH template")


def migrated_home(home: Path) -> Path:
    """A data directory in which a store of today's schema lies."""
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(migrated_file(), home)
    return home


def fresh_database() -> Database:
    """In memory, migrated, empty."""
    database = Database(None)
    copy_into(database.cursor())
    return database

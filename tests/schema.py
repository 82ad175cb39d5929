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
from typing import Any

import duckdb
import orjson

from storage.database import SETTINGS, Database
from storage.migrate import migrate
from storage.statements import StatementCache
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


def fresh_database() -> FreshDatabase:
    """In memory, migrated, empty."""
    return FreshDatabase(*_SPARE.pop()) if _SPARE else FreshDatabase(_made())


class FreshDatabase(Database):
    """A store in memory that is emptied when it is closed, and given out again.

    Making one takes five times as long. After `close` no cursor of it works. One that is then not as it was made is not
    given out again. `statements`: for its writer, with what former writers have prepared.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, statements: StatementCache | None = None) -> None:
        self.path = self.recovered = self._lock = None
        self._connection = connection
        self._cursors: list[duckdb.DuckDBPyConnection] = []
        self.statements = statements or StatementCache(connection.cursor())

    def cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = super().cursor()
        self._cursors.append(cursor)
        return cursor

    def close(self) -> None:
        connection, self._connection = self._connection, _CLOSED
        for cursor in self._cursors:
            cursor.close()
        if connection is not _CLOSED and _empty(connection):
            _SPARE.append((connection, self.statements))


_SPARE: list[tuple[duckdb.DuckDBPyConnection, StatementCache]] = []
_CLOSED = duckdb.connect()
_CLOSED.close()


def _made() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config=SETTINGS)
    copy_into(connection)
    return connection


def _empty(connection: duckdb.DuckDBPyConnection) -> bool:
    """Delete what was written; whether the store is then as it was made."""
    found, made = _shape(connection), _made_shape()
    if found == made:
        return True
    if [one[:-1] for one in found] != [one[:-1] for one in made]:
        return False
    filled = [table for (table, *_, rows), (*_, before) in zip(found, made, strict=True) if rows != before]
    if not set(filled).isdisjoint(_filled()):
        return False
    deleting = "".join(f"TRUNCATE {table}; " for table in filled)
    connection.execute(f"BEGIN; {deleting}COMMIT; CHECKPOINT")  # which forgets the deleted rows
    return True


@cache
def _made_shape() -> list[tuple[Any, ...]]:
    with _made() as connection:
        return _shape(connection)


def _shape(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """Name, columns, indexes, and rows with the deleted ones, of each table; of all views, which they are."""
    sizes = "SELECT table_name, column_count, index_count, estimated_size FROM duckdb_tables() ORDER BY ALL"
    views = "SELECT '', bit_xor(hash(view_name, view_oid)), count(*), 0 FROM duckdb_views() WHERE NOT internal"
    return connection.execute(sizes).fetchall() + connection.execute(views).fetchall()


def set_progress(cursor: duckdb.DuckDBPyConnection, **tokens: Mapping[str, Mapping[str, int]]) -> None:
    """How far each stage of an empty store has come, as a freshness token."""
    cursor.execute("INSERT INTO progress_tokens VALUES (?)", [orjson.dumps(tokens).decode()])

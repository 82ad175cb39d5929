"""Migrations of the schema: numbered SQL files, each applied and recorded in one transaction."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from importlib import resources
from typing import NamedTuple

import duckdb

from streams.errors import StoreError

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


class Migration(NamedTuple):
    """One numbered file of storage/migrations."""

    version: int
    name: str
    sql: str


def known_migrations() -> list[Migration]:
    """Every migration of this program, in order."""
    found = []
    for entry in resources.files("storage.migrations").iterdir():
        match = _FILE.fullmatch(entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    return sorted(found)


def migrate(cursor: duckdb.DuckDBPyConnection, now: datetime, migrations: list[Migration] | None = None) -> list[int]:
    """Apply the missing migrations; returns their versions.

    Raises StoreError when another version of the program, or another program, made the store.
    """
    todo = known_migrations() if migrations is None else migrations
    cursor.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations "
        "(version INTEGER PRIMARY KEY, name VARCHAR NOT NULL, applied_at TIMESTAMP NOT NULL)"
    )
    applied = {version for (version,) in cursor.execute("SELECT version FROM schema_migrations").fetchall()}
    unknown = applied - {migration.version for migration in todo}
    if unknown:
        raise StoreError(
            f"The store has schema version {max(unknown)}, which this program does not know: "
            "install the newer thalweg again, or make a fresh store from the log with `thalweg rebuild --from-log`."
        )
    fresh = [migration for migration in todo if migration.version not in applied]
    if fresh and applied and fresh[0].version < max(applied):
        raise StoreError(
            f"The store was made by another thalweg: its schema lacks version {fresh[0].version} "
            f"and has {max(applied)}. Make a fresh one from the log with `thalweg rebuild --from-log`."
        )
    for migration in fresh:
        try:
            _apply(cursor, migration, now)
        except (duckdb.CatalogException, duckdb.BinderException) as error:
            # something that an earlier migration makes does not exist
            if not applied:
                raise
            raise StoreError(
                f"The store was made by another thalweg: schema version {migration.version} does not fit it. "
                "Make a fresh one from the log with `thalweg rebuild --from-log`."
            ) from error
    return [migration.version for migration in fresh]


def _apply(cursor: duckdb.DuckDBPyConnection, migration: Migration, now: datetime) -> None:
    cursor.execute("BEGIN")
    try:
        cursor.execute(migration.sql)
        moment = now.astimezone(UTC).replace(tzinfo=None)
        cursor.execute("INSERT INTO schema_migrations VALUES (?, ?, ?)", [migration.version, migration.name, moment])
        cursor.execute("COMMIT")
    except BaseException:
        cursor.execute("ROLLBACK")
        raise

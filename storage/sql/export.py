"""The export to Parquet: one file for each public table and view."""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb

from storage.disk import is_full
from streams.errors import Refused
from streams.files import sync


def export_parquet(cursor: duckdb.DuckDBPyConnection, directory: Path) -> dict[str, int]:
    """Write `<table>.parquet` (zstd) for each table and view, all of one transaction. Returns rows by name.

    A file appears whole or not at all, readable by its owner only, and replaces that of an earlier export. Raises
    Refused when the directory is a file or cannot be written to.
    """
    if directory.is_file():
        raise Refused(f"{directory.name} is a file: name a directory to export into.")
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        # a directory of our own, in which no other user can lay a link
        with tempfile.TemporaryDirectory(prefix=".export-", dir=directory) as partial:
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            try:
                return {name: _export(cursor, name, Path(partial), directory) for name in public_tables(cursor)}
            finally:
                cursor.execute("ROLLBACK")
    except (OSError, duckdb.IOException) as error:
        reason = (
            "the disk is full" if is_full(error) else getattr(error, "strerror", None) or str(error).splitlines()[0]
        )
        raise Refused(
            f"The directory {directory} cannot be written to: {reason}. "
            "Make room, correct its rights, or choose another."
        ) from error


def public_tables(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    """The names of the tables and views for analysts, in alphabetical order."""
    rows = cursor.execute(
        "SELECT table_name FROM information_schema.tables "
        "WHERE table_catalog = current_database() AND table_schema = 'main' AND table_name <> 'schema_migrations' "
        "ORDER BY table_name"
    ).fetchall()
    return [name for (name,) in rows]


def _export(cursor: duckdb.DuckDBPyConnection, name: str, partial: Path, directory: Path) -> int:
    file = partial / f"{name}.parquet"
    quoted = str(file).replace("'", "''")
    (rows,) = cursor.execute(f"COPY (FROM \"{name}\") TO '{quoted}' (FORMAT parquet, COMPRESSION zstd)").fetchall()[0]
    file.chmod(0o600)
    sync(file)
    file.replace(directory / file.name)
    return int(rows)

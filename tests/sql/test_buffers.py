"""What DuckDB keeps in memory of its file can go, and what is not in its file yet goes there."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import buffers, writer
from storage.database import Database
from storage.migrate import migrate
from storage.writer import Changes, Writer
from streams.clock import SystemClock

ROWS = [{"number": number, "text": f"{number:064}" * 4} for number in range(10_000)]


def kept_mb(database: Database) -> float:
    """What DuckDB has in memory of tables, in MB."""
    tags = "('BASE_TABLE', 'IN_MEMORY_TABLE', 'OVERFLOW_STRINGS')"
    query = f"SELECT sum(memory_usage_bytes) FROM duckdb_memory() WHERE tag IN {tags}"
    [kept] = database.cursor().execute(query).fetchone() or [0]
    return float(kept) / 1e6


def test_what_duckdb_keeps_of_its_file_is_large_after_an_intake_and_goes_and_every_row_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LARGE_CACHE_BYTES", 1 << 20)
    monkeypatch.setattr(buffers, "BUFFER_LIMIT", "1MB")
    database = Database(tmp_path)
    migrate(database.cursor(), SystemClock().now())
    database.cursor().execute("CREATE TABLE texts (number INTEGER, text VARCHAR)")
    filling = Writer(database)
    filling.checkpoint()
    filling.release_cache()
    assert not filling.has_large_cache
    for _ in range(2):
        filling.commit(Changes(appended={"texts": ROWS}))
    filling.checkpoint()
    assert kept_mb(database) > 1 and filling.has_large_cache
    filling.release_cache()
    assert kept_mb(database) < 1 and not filling.has_large_cache
    count = "SELECT count(*), count(DISTINCT text), max(length(text)) FROM texts"
    assert database.cursor().execute(count).fetchone() == (20_000, 10_000, 256)
    filling.close()
    database.close()


def test_a_checkpoint_beside_another_one_is_left_for_later(tmp_path: Path) -> None:
    database = Database(tmp_path)
    migrate(database.cursor(), SystemClock().now())
    filling, other = Writer(database), database.cursor()
    filling.checkpoint()
    other.execute("BEGIN")
    other.execute("CREATE TABLE texts (number INTEGER)")  # as a checkpoint does, it keeps others from folding
    filling.checkpoint()
    other.execute("COMMIT")
    assert database.log_bytes > 0
    filling.checkpoint()
    assert database.log_bytes == 0
    other.close()
    filling.close()
    database.close()

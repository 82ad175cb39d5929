"""The store's one file: owned by one process (R18), moved aside when damaged (R10), migrated step by step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from storage.database import FILE_NAME, Database, is_damage
from storage.directory_lock import LOCK_NAME
from storage.migrate import Migration, known_migrations, migrate
from storage.sql import child
from streams.errors import StoreError

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ROWS = 200_000


class FixedClock:
    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return 0.0


def open_store(home: Path) -> Database:
    return Database(home, clock=FixedClock())


def fill(home: Path) -> Path:
    """A closed store with some blocks of data."""
    database = open_store(home)
    database.cursor().execute(f"CREATE TABLE t AS SELECT i, md5(i::VARCHAR) AS v FROM range({ROWS}) r(i)")
    database.close()
    return home / FILE_NAME


def test_a_second_process_is_refused_and_told_who_owns_the_directory(tmp_path: Path) -> None:
    program = (
        "import sys, storage.database as d, pathlib; d.Database(pathlib.Path(sys.argv[1])); "
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == b"open\n"
        with pytest.raises(StoreError, match=str(owner.pid)):
            open_store(tmp_path)
        owner.send_signal(signal.SIGKILL)
    open_store(tmp_path).close()


def test_opening_and_closing_the_file_elsewhere_in_the_process_does_not_give_the_directory_away(tmp_path: Path) -> None:
    database = open_store(tmp_path)
    (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(StoreError, match=str(os.getpid())):
        open_store(tmp_path)
    database.close()


def test_a_closed_store_opens_again_with_what_was_in_it(tmp_path: Path) -> None:
    fill(tmp_path)
    database = open_store(tmp_path)
    assert database.recovered is None
    assert database.cursor().execute("SELECT count(*) FROM t").fetchone() == (ROWS,)
    database.close()


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def empty(content: bytes) -> bytes:
    return b""


def garbage_header(content: bytes) -> bytes:
    return os.urandom(12_288) + content[12_288:]


def flipped(position: float) -> Callable[[bytes], bytes]:
    def flip(content: bytes) -> bytes:
        at = int(len(content) * position)
        return content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]

    return flip


@pytest.mark.parametrize("damage", [truncated, empty, garbage_header, flipped(0.0001), flipped(0.001)])
def test_a_damaged_file_is_kept_under_another_name_and_a_fresh_one_opened(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    file = fill(tmp_path)
    damaged = damage(file.read_bytes())
    file.write_bytes(damaged)
    database = open_store(tmp_path)
    assert database.recovered == tmp_path / "thalweg.duckdb.damaged-20260301T120000.000000Z"
    assert database.recovered.read_bytes() == damaged
    assert database.cursor().execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (0,)
    database.close()


@pytest.mark.parametrize("position", [0.3, 0.6])
def test_after_an_unclean_end_damage_deep_in_the_data_is_found_at_the_start(tmp_path: Path, position: float) -> None:
    file = fill(tmp_path)
    file.write_bytes(flipped(position)(file.read_bytes()))
    (tmp_path / LOCK_NAME).write_text("12345\n")
    database = open_store(tmp_path)
    assert database.recovered is not None
    database.close()


def test_a_guest_leaves_a_damaged_file_and_the_sign_of_an_unclean_end_for_the_next_node(tmp_path: Path) -> None:
    file = fill(tmp_path)
    (tmp_path / LOCK_NAME).write_text("12345\n")
    Database(tmp_path, guest=True).close()
    assert (tmp_path / LOCK_NAME).read_text() == "12345\n"
    file.write_bytes(flipped(0.5)(file.read_bytes()))
    with pytest.raises(StoreError, match="thalweg up"):
        Database(tmp_path, guest=True)
    assert file.exists() and (tmp_path / LOCK_NAME).read_text() == "12345\n"


def test_a_store_condemned_by_its_owner_is_moved_aside_at_the_next_start(tmp_path: Path) -> None:
    file = fill(tmp_path)
    file.write_bytes(flipped(0.5)(file.read_bytes()))
    database = open_store(tmp_path)
    with pytest.raises(duckdb.Error) as met:
        database.cursor().execute("SELECT bit_xor(hash(t)) FROM t").fetchall()
    assert is_damage(met.value)
    database.condemn()
    database.close()
    database = open_store(tmp_path)
    assert database.recovered is not None
    database.close()
    assert open_store(tmp_path).recovered is None


def test_a_file_that_cannot_be_opened_for_another_reason_is_left_where_it_is(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(tmp_path)
    assert (tmp_path / FILE_NAME).is_dir()
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(tmp_path)


def test_nothing_is_downloaded_and_no_variable_of_the_program_is_a_table() -> None:
    cursor = Database(None).cursor()
    frame = [1]  # a name that DuckDB must not find
    with pytest.raises(duckdb.CatalogException):
        cursor.execute("SELECT * FROM frame")
    assert frame
    settings = dict(
        cursor.execute("SELECT name, value FROM duckdb_settings() WHERE name LIKE 'auto%known%'").fetchall()
    )
    assert set(settings.values()) == {"false"}


def test_each_migration_is_applied_once_and_recorded() -> None:
    cursor = Database(None).cursor()
    versions = [migration.version for migration in known_migrations()]
    assert migrate(cursor, NOW) == versions
    assert migrate(cursor, NOW) == []
    recorded = cursor.execute("SELECT version, applied_at FROM schema_migrations ORDER BY version").fetchall()
    assert recorded == [(version, NOW.replace(tzinfo=None)) for version in versions]


def test_a_migration_that_fails_leaves_nothing_of_itself() -> None:
    cursor = Database(None).cursor()
    with pytest.raises(duckdb.Error):
        migrate(
            cursor,
            NOW,
            [
                Migration(1, "good", "CREATE TABLE a (x INTEGER)"),
                Migration(2, "bad", "CREATE TABLE b (x INTEGER); SELECT nothing"),
            ],
        )
    assert cursor.execute("SELECT table_name FROM duckdb_tables() WHERE table_name IN ('a', 'b')").fetchall() == [
        ("a",)
    ]
    assert migrate(cursor, NOW, [Migration(1, "good", ""), Migration(2, "mended", "CREATE TABLE b (x INTEGER)")]) == [2]


def test_a_store_of_before_keeps_how_far_it_has_come() -> None:
    cursor = Database(None).cursor()
    migrate(cursor, NOW, [each for each in known_migrations() if each.version < 58])
    rows = [("embed", "thalweg.memory.v1", 0, 3), ("materialise", "thalweg.memory.v1", 0, 4)]
    rows += [("materialise", "thalweg.memory.v1", 11, 9), ("materialise", "thalweg.telemetry.v1", 0, 1)]
    cursor.executemany("INSERT INTO progress VALUES (?, ?, ?, ?, ?)", [(at, *row) for at, row in enumerate(rows)])
    migrate(cursor, NOW)
    assert cursor.execute("FROM progress ORDER BY ALL").fetchall() == rows
    assert cursor.execute("FROM positions ORDER BY ALL").fetchall() == [row[1:] for row in rows[1:]]


def test_a_store_whose_schema_has_a_gap_is_of_another_program_and_is_refused_with_what_to_do() -> None:
    cursor = Database(None).cursor()
    migrate(cursor, NOW, [each for each in known_migrations() if each.version != 6])
    with pytest.raises(StoreError, match=r"lacks version 6 .*rebuild --from-log"):
        migrate(cursor, NOW)


def test_a_store_on_which_no_later_migration_fits_is_refused_with_what_to_do() -> None:
    cursor = Database(None).cursor()
    migrate(cursor, NOW, [Migration(1, "other", "CREATE TABLE other (x INTEGER)")])
    with pytest.raises(StoreError, match=r"version 2 does not fit it\. .*rebuild --from-log"):
        migrate(cursor, NOW)
    assert cursor.execute("SELECT count(*) FROM schema_migrations").fetchone() == (1,)


def test_a_store_of_a_newer_program_is_refused_with_what_to_do() -> None:
    cursor = Database(None).cursor()
    migrate(cursor, NOW, [*known_migrations(), Migration(9000, "future", "CREATE TABLE future (x INTEGER)")])
    with pytest.raises(StoreError, match=r"9000.*install the newer thalweg"):
        migrate(cursor, NOW)


def test_a_limit_holds_beside_a_table_that_is_empty(tmp_path: Path) -> None:
    """Of DuckDB's optimizers one drops it (`storage/optimizers.py`); the node and an analyst's process go without."""
    database = open_store(tmp_path)
    cursor = database.cursor()
    cursor.execute("CREATE TABLE said AS SELECT 'default' AS namespace, i AS id FROM range(50) t(i)")
    cursor.execute("CREATE TABLE ended (namespace VARCHAR, id BIGINT)")
    database.cursor().execute("CHECKPOINT")
    joined = "SELECT said.id FROM said LEFT JOIN ended e ON e.namespace = said.namespace AND e.id = said.id"
    asked = f"{joined} WHERE said.namespace = 'default' LIMIT 2"
    assert len(cursor.execute(asked).fetchall()) == 2
    database.close()
    with duckdb.connect(tmp_path / FILE_NAME, read_only=True) as plain:
        assert len(plain.execute(asked).fetchall()) == 50, "DuckDB needs no setting any more: take ours out"
    analyst = child.connect(str(tmp_path / FILE_NAME), memory_mb=200, threads=1)
    assert len(analyst.execute(asked).fetchall()) == 2
    analyst.close()

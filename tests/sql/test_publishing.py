"""Snapshots, queries over them, and the Parquet export."""

from __future__ import annotations

import os
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import duckdb
import pytest

from storage.atomic_file import SUFFIX
from storage.database import Database
from storage.sql.copy_file import HEADER_BYTES, copy
from storage.sql.export import export_parquet, public_tables
from storage.sql.run import run_sql
from storage.sql.snapshot import Snapshots, find_snapshot
from streams.errors import Refused, Unavailable


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path)
    database.cursor().execute(
        "CREATE TABLE counted (id BIGINT PRIMARY KEY); CREATE TABLE total (n BIGINT); INSERT INTO total VALUES (0)"
    )
    yield database
    database.close()


def age(path: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


def test_a_snapshot_is_reused_while_it_is_young_enough(database: Database, tmp_path: Path) -> None:
    snapshots = Snapshots(database)
    assert find_snapshot(tmp_path) is None
    first = snapshots.get(max_age_s=60)
    database.cursor().execute("INSERT INTO counted VALUES (1)")
    age(first.path, 30)
    assert 29 < snapshots.get(max_age_s=60).age_s < 60
    assert run_sql(first.path, "SELECT count(*) FROM counted").rows == [[0]]
    assert snapshots.get(max_age_s=10).age_s == 0
    assert run_sql(first.path, "SELECT count(*) FROM counted").rows == [[1]]


def test_a_snapshot_from_the_future_is_not_trusted(database: Database, tmp_path: Path) -> None:
    path = Snapshots(database).get().path
    age(path, -3600)
    assert find_snapshot(tmp_path) is None


def test_the_answer_says_how_old_the_snapshot_is(database: Database) -> None:
    path = Snapshots(database).get().path
    age(path, 30)
    assert 29 < run_sql(path, "SELECT 1").snapshot_age_s < 60


@pytest.mark.process
def test_a_snapshot_taken_under_writes_shows_one_moment_and_stops_no_writer(database: Database) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        cursor = database.cursor()
        try:
            for start in range(0, 10**9, 50):
                if stop.is_set():
                    return
                cursor.execute("BEGIN")
                cursor.execute(f"INSERT INTO counted SELECT * FROM range({start}, {start + 50})")
                cursor.execute(f"UPDATE total SET n = {start + 50}")
                cursor.execute("COMMIT")
        except BaseException as failure:
            failures.append(failure)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        snapshots = Snapshots(database)
        for _ in range(5):
            path = snapshots.get(max_age_s=0).path
            ((rows, total),) = run_sql(path, "SELECT (SELECT count(*) FROM counted), (SELECT n FROM total)").rows
            assert rows == total
    finally:
        stop.set()
        writer.join(30)
    assert not failures


def test_a_copy_during_which_the_owner_wrote_a_new_header_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"header of the first".ljust(HEADER_BYTES, b".") + b"blocks")
    copy_blocks = shutil.copyfileobj

    def copy_while_it_is_written(reader: IO[bytes], writer: IO[bytes], size: int) -> None:
        copy_blocks(reader, writer, size)
        with source.open("r+b") as owner:
            owner.write(b"header of the second")

    assert copy(source, target) and target.read_bytes() == source.read_bytes()
    target.unlink()
    monkeypatch.setattr(shutil, "copyfileobj", copy_while_it_is_written)
    assert not copy(source, target)
    assert [entry.name for entry in tmp_path.iterdir()] == ["source"]


def test_an_open_result_of_a_reader_does_not_hold_a_snapshot_up(database: Database) -> None:
    reader = database.cursor()
    reader.execute("INSERT INTO counted SELECT * FROM range(100000)")
    reader.execute("SELECT * FROM counted")
    assert reader.fetchone() is not None
    database.cursor().execute("INSERT INTO counted VALUES (-1)")
    path = Snapshots(database).get(max_age_s=0).path
    assert run_sql(path, "SELECT count(*) FROM counted").rows == [[100_001]]


def test_what_a_killed_copy_left_is_removed_by_the_next(database: Database, tmp_path: Path) -> None:
    snapshots = Snapshots(database)
    path = snapshots.get().path
    left_over = path.with_name(f".{path.name}.x7y8z9{SUFFIX}")
    left_over.write_bytes(b"half")
    snapshots.get(max_age_s=0)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_discarded_snapshot_is_gone(database: Database, tmp_path: Path) -> None:
    snapshots = Snapshots(database)
    path = snapshots.get().path
    snapshots.discard()
    assert find_snapshot(tmp_path) is None
    with pytest.raises(Unavailable, match="no snapshot yet"):
        run_sql(path, "SELECT 1")


def test_a_damaged_snapshot_is_unavailable_not_the_analysts_fault(tmp_path: Path) -> None:
    (tmp_path / "x.duckdb").write_bytes(b"nonsense")
    with pytest.raises(Unavailable, match="cannot be opened"):
        run_sql(tmp_path / "x.duckdb", "SELECT 1")


def test_plain_duckdb_sees_every_table_and_view_in_a_snapshot_file(store: Database, tmp_path: Path) -> None:
    file = tmp_path / "mine.duckdb"
    assert Snapshots(store).snapshot_to(file) == file.stat().st_size
    with duckdb.connect(file) as plain:
        assert public_tables(plain) == public_tables(store.cursor())
        assert plain.execute("SELECT count(*) FROM sessions").fetchone() == (4,)
    with pytest.raises(Refused, match="exists already"):
        Snapshots(store).snapshot_to(file)
    Snapshots(store).snapshot_to(file, overwrite=True)


def test_every_table_and_view_becomes_a_parquet_file(store: Database, tmp_path: Path) -> None:
    counts = export_parquet(store.cursor(), tmp_path / "it's here")
    assert sorted(counts) == public_tables(store.cursor())
    assert counts["tool_calls"] == 5 and counts["sessions"] == 4
    assert sorted(entry.name for entry in (tmp_path / "it's here").iterdir()) == [
        f"{name}.parquet" for name in sorted(counts)
    ]
    with duckdb.connect() as plain:
        file = str(tmp_path / "it's here" / "tool_calls.parquet").replace("'", "''")
        assert plain.execute(f"SELECT max(duration_ms) FROM '{file}'").fetchone() == (2000.0,)
        assert plain.execute(f"SELECT DISTINCT compression FROM parquet_metadata('{file}')").fetchall() == [("ZSTD",)]


def test_exporting_into_a_file_or_where_nothing_can_be_written_is_refused(store: Database, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="is a file"):
        export_parquet(store.cursor(), tmp_path / "file")
    with pytest.raises(Refused, match="cannot be written to: Not a directory"):
        export_parquet(store.cursor(), tmp_path / "file" / "below")


@pytest.fixture
def wide_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_snapshots_and_exports_are_for_their_owner_alone_whatever_was_there(
    database: Database, tmp_path: Path, wide_umask: None
) -> None:
    export, copied = tmp_path / "export", tmp_path / "mine.duckdb"
    export.mkdir(mode=0o777)
    (export / "counted.parquet").touch(mode=0o666)
    export_parquet(database.cursor(), export)
    Snapshots(database).snapshot_to(copied)
    written = [*export.iterdir(), copied, Snapshots(database).get().path]
    assert [path for path in written if path.stat().st_mode & 0o077] == []
    export_parquet(database.cursor(), tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_neither_a_snapshot_nor_an_export_writes_through_a_link_that_lies_at_its_name(
    database: Database, tmp_path: Path
) -> None:
    export, victim = tmp_path / "export", tmp_path / "victim"
    export.mkdir()
    for link in (export / "counted.parquet", tmp_path / "mine.duckdb"):
        link.symlink_to(victim)
    export_parquet(database.cursor(), export)
    Snapshots(database).snapshot_to(tmp_path / "mine.duckdb")
    assert not victim.exists()
    assert not (export / "counted.parquet").is_symlink() and not (tmp_path / "mine.duckdb").is_symlink()


def test_values_that_json_does_not_have_come_as_text(snapshot: Path) -> None:
    answer = run_sql(
        snapshot,
        "SELECT 'nan'::DOUBLE n, 9223372036854775808 big, 1.5::DECIMAL(4, 2) d, TIMESTAMP '2026-03-01 10:00:00' t, "
        "DATE '2026-03-01' AS on_day, "
        "INTERVAL 90 SECOND i, '\\xFF'::BLOB b, {'a': [1, NULL]} s, MAP {1: 'x'} m, true yes, NULL nothing",
    )
    assert answer.rows == [
        [
            "nan",
            "9223372036854775808",
            1.5,
            "2026-03-01T10:00:00Z",
            "2026-03-01",
            "0:01:30",
            "ff",
            {"a": [1, None]},
            {"1": "x"},
            True,
            None,
        ]
    ]
    assert answer.types[3] == "TIMESTAMP" and answer.to_json()["columns"][0] == "n"


def test_a_wrong_column_is_answered_with_the_nearest_ones(snapshot: Path) -> None:
    with pytest.raises(Refused, match='Candidate bindings: "tool_name"') as refusal:
        run_sql(snapshot, "SELECT tool_nam FROM tool_calls")
    assert refusal.value.error_code == "sql_syntax"
    assert "LINE" not in refusal.value.message


def test_a_copy_goes_to_a_new_file_in_a_folder_that_is_there(database: Database, tmp_path: Path) -> None:
    snapshots = Snapshots(database)
    with pytest.raises(Refused, match="is a folder: name a file in it"):
        snapshots.snapshot_to(tmp_path)
    with pytest.raises(Refused, match=r"The folder for copy\.duckdb does not exist"):
        snapshots.snapshot_to(tmp_path / "gone" / "copy.duckdb")
    assert not (tmp_path / "gone").exists()


def test_a_database_in_memory_has_no_snapshots() -> None:
    database = Database(None)
    with pytest.raises(Refused, match="in memory"):
        Snapshots(database)
    database.close()

"""`thalweg rebuild` deletes nothing that the log could not give back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import duckdb
import pytest

from storage.database import FILE_NAME
from streams.errors import StoreError
from streams.log.base import Outgoing
from streams.log.sqlite import SqliteLog
from streams.positions import Partition
from streams.topics import INVOCATIONS, with_partitions
from tests.schema import migrated_home, set_progress
from thalweg.process.rebuild import rebuild_store
from thalweg.settings import Settings

APPLIED = 2


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store that has applied two records of a topic, and an index of it."""
    home = migrated_home(tmp_path / "home")
    with duckdb.connect(home / FILE_NAME) as store:
        set_progress(store, materialise={INVOCATIONS.name: {"0": APPLIED}})
    (home / "indexes").mkdir()
    (home / "indexes" / "words").write_text("of two records")
    return home


async def write_log(home: Path, records: int) -> None:
    log = SqliteLog(home / "log.db")
    await log.start()
    await log.create_topics(with_partitions(1))
    await log.publish([Outgoing(INVOCATIONS.name, b"default", b"{}", ())] * records)
    await log.stop()


def refused(home: Path) -> str:
    """The sentence with which a rebuild is refused; the store is as before."""
    before = {path: path.read_bytes() for path in (home / FILE_NAME, home / "indexes" / "words")}
    with pytest.raises(StoreError) as refusal:
        rebuild_store(Settings(home=home, embedder="none", partitions=1), from_log=True)
    assert {path: path.read_bytes() for path in before} == before
    return str(refusal.value)


def test_a_log_that_ends_before_what_the_store_has_applied_deletes_nothing(home: Path) -> None:
    asyncio.run(write_log(home, APPLIED - 1))
    assert "up to 2, of which this log holds 0 to 1 only" in refused(home)


def test_another_log_that_has_nothing_of_it_deletes_nothing(home: Path) -> None:
    assert "up to 2, of which this log holds 0 to 0 only" in refused(home)


def test_a_log_whose_beginning_is_gone_deletes_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(write_log(home, APPLIED))

    async def begins_later(self: SqliteLog, topics: object) -> dict[Partition, int]:
        return {Partition(INVOCATIONS.name, 0): 1}

    monkeypatch.setattr(SqliteLog, "first_offsets", begins_later)
    assert "up to 2, of which this log holds 1 to 2 only" in refused(home)

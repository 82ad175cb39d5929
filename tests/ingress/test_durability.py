"""Acknowledged means synced: a file's bytes, and its name in its directory. `just power-cut` shows what this is for."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.spool import Spool
from storage.database import Database
from storage.directory_lock import LOCK_NAME
from streams.errors import LogUnavailable
from streams.log import sqlite
from streams.log.sqlite import SqliteLog
from streams.topics import MEMORY, TOPICS
from tests.ingress.test_spool import DeadLog, SmallLog, opened, record, values
from tests.patience import SOON_S
from thalweg.paths import make_home


class Syncs:
    """What was synced: each file's or directory's inode, and how long it was then."""

    def __init__(self, sync: Callable[[int], None]) -> None:
        self._sync = sync
        self._sizes: dict[int, int] = {}

    def __call__(self, handle: int) -> None:
        self._sync(handle)
        self._sizes[os.fstat(handle).st_ino] = os.fstat(handle).st_size

    def forget(self) -> None:
        self._sizes.clear()

    def has(self, path: Path) -> bool:
        """Whether a file was synced as long as it is now, or a directory at all."""
        status = path.stat()
        return status.st_ino in self._sizes and (path.is_dir() or self._sizes[status.st_ino] == status.st_size)


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    spy = Syncs(os.fsync)
    monkeypatch.setattr(os, "fsync", spy)
    return spy


# --- the spool


async def test_a_spooled_write_is_answered_when_its_frame_and_the_name_of_the_file_are_synced(
    tmp_path: Path, syncs: Syncs
) -> None:
    spool = Spool(tmp_path / "spool")
    await spool.append([record("one")])
    assert syncs.has(tmp_path / "spool") and syncs.has(tmp_path)
    await spool.append([record("two")])
    assert syncs.has(tmp_path / "spool")


async def test_the_name_of_a_spool_that_another_process_made_is_synced_too(tmp_path: Path, syncs: Syncs) -> None:
    (tmp_path / "spool").touch()
    await Spool(tmp_path / "spool").append([record("one")])
    assert syncs.has(tmp_path)


async def test_a_write_whose_sync_fails_is_not_answered_as_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError(5, "Input/output error")

    spool = Spool(tmp_path / "spool")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(LogUnavailable, match="Input/output error"):
        await spool.append([record("one")])
    assert spool.is_empty


async def test_the_spool_is_emptied_once_the_log_has_what_was_in_it_and_that_is_synced(
    tmp_path: Path, syncs: Syncs
) -> None:
    class LookingLog(DeadLog):
        """A log that looks into the spool when it is given something."""

        async def publish(self, *given: Any, **named: Any) -> Any:
            positions = await super().publish(*given, **named)
            assert (tmp_path / "spool").stat().st_size > 0
            return positions

    log = LookingLog(tmp_path / "log.db", 1)
    await log.start()
    await log.create_topics(TOPICS)
    spool = Spool(tmp_path / "spool")
    await spool.append([record("one")])
    assert await spool.drain(log) == 1
    assert (tmp_path / "spool").read_bytes() == b"" and syncs.has(tmp_path / "spool")
    await log.stop()


async def test_what_the_log_will_never_take_is_synced_in_a_file_before_the_spool_is_emptied(
    tmp_path: Path, syncs: Syncs
) -> None:
    log = SmallLog(tmp_path / "log.db")
    log.letters = 1_200
    await log.start()
    await log.create_topics(TOPICS)
    spool = Spool(tmp_path / "spool")
    await spool.append([replace(record("large"), value=b"x" * 2_000)])
    syncs.forget()
    assert await spool.drain(log) == 1
    [kept] = (tmp_path / "refused").iterdir()
    assert syncs.has(kept) and syncs.has(kept.parent) and syncs.has(tmp_path)
    await log.stop()


@pytest.mark.parametrize("zeros", [7, 8, 9, 4096])
async def test_zeros_that_a_power_cut_left_at_the_end_are_cut_off(tmp_path: Path, zeros: int) -> None:
    """A file may have grown on disk before its last bytes came there."""
    path = tmp_path / "spool"
    await Spool(path).append([record("kept")])
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(zeros))
    log = await opened(tmp_path / "log.db")
    spool = Spool(path)
    assert path.read_bytes() == whole
    assert await spool.drain(log) == 1
    await log.stop()


# --- the log


async def asked(log: SqliteLog, pragma: str) -> object:
    """A setting of the connection on which the log writes."""
    asked = f"PRAGMA {pragma}"
    [value] = await log._submit(lambda connection: connection.execute(asked).fetchone())  # type: ignore[misc]
    return value


async def test_the_log_syncs_at_every_commit(tmp_path: Path) -> None:
    log = await opened(tmp_path / "log.db")
    assert await asked(log, "synchronous") == 2  # FULL: the write-ahead log is synced at every commit
    assert await asked(log, "journal_mode") == "wal"
    assert await asked(log, "wal_autocheckpoint") == 1000
    await log.stop()


async def test_the_log_acknowledges_after_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committing, allowed = threading.Event(), threading.Event()

    class SlowConnection(sqlite3.Connection):
        def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
            if statement == "COMMIT" and is_slow:
                committing.set()
                assert allowed.wait(SOON_S)
            return super().execute(statement, *parameters)

    is_slow = False
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite.sqlite3, "connect", lambda *given, **named: connect(*given, factory=SlowConnection, **named)
    )
    log = await opened(tmp_path / "log.db")
    is_slow = True
    publishing = asyncio.create_task(log.publish([record("one")], timeout_s=SOON_S))
    assert await asyncio.to_thread(committing.wait, SOON_S)
    await asyncio.sleep(0.05)
    assert not publishing.done() and not any(log.end(at) for at in await log.end_offsets([MEMORY.name]))
    allowed.set()
    [at] = await publishing
    assert values(log, at) == [b"one"]
    await log.stop()


# --- the data directory


def test_the_names_of_new_directories_are_synced(tmp_path: Path, syncs: Syncs) -> None:
    make_home(tmp_path / "a" / "b")
    assert syncs.has(tmp_path) and syncs.has(tmp_path / "a")


async def test_the_log_makes_its_directory_so_that_it_stays(tmp_path: Path, syncs: Syncs) -> None:
    log = SqliteLog(tmp_path / "home" / "log.db")
    await log.start()
    assert syncs.has(tmp_path)
    await log.stop()


def test_who_owns_the_store_is_on_disk_before_it_is_opened_so_that_a_power_cut_counts_as_an_unclean_end(
    tmp_path: Path, syncs: Syncs
) -> None:
    database = Database(tmp_path)
    assert (tmp_path / LOCK_NAME).read_text().strip() == str(os.getpid())
    assert syncs.has(tmp_path / LOCK_NAME) and syncs.has(tmp_path)
    database.close()

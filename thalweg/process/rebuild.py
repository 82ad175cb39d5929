"""`thalweg rebuild`: delete what is derived and make it again. The log is the truth; nothing on it is touched,
and nothing is deleted that it could not give back."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from typing import Any

import duckdb

from storage.database import FILE_NAME
from storage.directory_lock import lock_directory, release_directory
from streams.errors import NotRunning, StoreError
from streams.log import open_log
from streams.positions import Partition
from thalweg.control.requests import ask
from thalweg.paths import make_home
from thalweg.process.gc_tuning import rare_collections
from thalweg.process.node import Node
from thalweg.settings import Settings
from thalweg.status.offline import read_positions

POLL_S = 0.05


def rebuild_store(settings: Settings, *, from_log: bool) -> dict[str, Any]:
    """Rebuild with no node running; returns what was done and how long it took. Raises StoreError when one runs."""
    try:
        ask(settings.home, "status")
    except NotRunning:
        with rare_collections():
            return asyncio.run(_rebuild(settings, from_log))
    raise StoreError("A node owns this store; `thalweg stop` first, then rebuild.")


async def _rebuild(settings: Settings, from_log: bool) -> dict[str, Any]:
    started = time.monotonic()
    make_home(settings.home)
    lock, former = lock_directory(settings.home)  # a node that is just starting answers nothing yet
    try:
        if from_log:
            await _check_log(settings)
        _delete(settings.home, from_log)
    finally:
        release_directory(lock, former)
    node = Node(settings, stages=False)
    try:
        await node.start()
        store = node.running.store
        ends = await node.log.end_offsets([topic.name for topic in node.topics])
        dying = asyncio.ensure_future(node.wait())
        while any(store.applied.next_offset(at) < offset for at, offset in ends.items()) or not store.indexes_ready():
            await asyncio.wait([dying], timeout=POLL_S)
            if dying.done():
                dying.result()
        dying.cancel()
        counters = vars(store.materialiser.counters)
    finally:
        await node.stop()
    return {
        "from_log": from_log,
        "records": counters["records"],
        "events": counters["events"],
        "seconds": round(time.monotonic() - started, 3),
    }


async def _check_log(settings: Settings) -> None:
    """Check that the log holds all that the store has applied.

    Raises StoreError when it does not, because then nothing else does; LogUnavailable when it is away.
    """
    applied = _applied(settings.home / FILE_NAME)
    log = open_log(settings.broker_url)
    await log.start()
    try:
        topics = {topic for topic, _ in applied}
        first, ends = await log.first_offsets(topics), await log.end_offsets(topics)
    finally:
        await log.stop()
    for (topic, partition), offset in sorted(applied.items()):
        at = Partition(topic, partition)
        begin, end = first.get(at, 0), ends.get(at, 0)
        if offset > end or (begin and offset):
            raise StoreError(
                f"The store has applied {topic}/{partition} up to {offset}, of which this log holds {begin} to {end} "
                "only: a rebuild would lose the rest, so nothing was deleted. Point at the right log (THALWEG_BROKER), "
                f"or move {FILE_NAME} out of the data directory to start again with this one."
            )


def _applied(store: Path) -> dict[tuple[str, int], int]:
    """How far the store has applied the log; nothing of one that is not there or cannot be read."""
    if not store.exists():
        return {}
    try:
        with duckdb.connect(store) as connection:
            return read_positions(connection)
    except duckdb.Error:
        return {}


def _delete(home: Path, from_log: bool) -> None:
    shutil.rmtree(home / "indexes", ignore_errors=True)
    shutil.rmtree(home / "snapshots", ignore_errors=True)
    shutil.rmtree(home / "graph", ignore_errors=True)
    if from_log:
        for name in (FILE_NAME, f"{FILE_NAME}.wal"):
            (home / name).unlink(missing_ok=True)

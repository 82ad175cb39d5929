"""`thalweg rebuild`: delete what is derived and make it again. The log is the truth; nothing on it is touched."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from typing import Any

from streams.errors import StoreError
from thalweg.collector import calmed
from thalweg.control import NotRunning, ask
from thalweg.node import Node
from thalweg.settings import Settings

POLL_S = 0.05


def rebuild_store(settings: Settings, *, from_log: bool) -> dict[str, Any]:
    """Rebuild with no node running; returns what was done and how long it took. Raises StoreError when one runs."""
    try:
        ask(settings.home, "status")
    except NotRunning:
        with calmed():
            return asyncio.run(_rebuild(settings, from_log))
    raise StoreError("A node owns this store; `thalweg stop` first, then rebuild.")


async def _rebuild(settings: Settings, from_log: bool) -> dict[str, Any]:
    started = time.monotonic()
    _delete(settings.home, from_log)
    node = Node(settings, stages=False)
    try:
        await node.start()
        ends = await node.log.end_offsets([topic.name for topic in node.topics])
        dying = asyncio.ensure_future(node.wait())
        while any(node.applied.next_offset(at) < offset for at, offset in ends.items()) or not node.indexes_ready():
            await asyncio.wait([dying], timeout=POLL_S)
            if dying.done():
                dying.result()
        dying.cancel()
        counters = vars(node.materialiser.counters)
    finally:
        await node.stop()
    return {
        "from_log": from_log,
        "records": counters["records"],
        "events": counters["events"],
        "seconds": round(time.monotonic() - started, 3),
    }


def _delete(home: Path, from_log: bool) -> None:
    shutil.rmtree(home / "indexes", ignore_errors=True)
    shutil.rmtree(home / "snapshots", ignore_errors=True)
    shutil.rmtree(home / "graph", ignore_errors=True)
    if from_log:
        for name in ("thalweg.duckdb", "thalweg.duckdb.wal"):
            (home / name).unlink(missing_ok=True)

"""The status of a data directory without a node.

It says how the last node ended, how far it came, and what waits on the log. Nothing is opened for writing and no lock
is taken, so that a node may start at the same moment: the store is read in a copy.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from storage.database import FILE_NAME
from storage.directory_lock import LOCK_NAME, lock_holder
from storage.disk import low_sentence
from thalweg.control.dead_letters import count_states
from thalweg.paths import unusable_home
from thalweg.status import last_node

MAX_COPY_BYTES = 512 * 1024 * 1024
"""A larger store is not copied for a status: `thalweg sql` looks into it."""
GO_ON = (
    "`thalweg up` starts a node, and so does every client: it goes on from there, "
    "and what was answered ok is on the log."
)


def offline_status(home: Path, broker_url: str) -> dict[str, Any]:
    """The report of `thalweg status` without a node: sentences, `broker`, and `last` for programs.

    `last` is {ended, pid, failure, applied, waiting, dead_letters}. `ended` is running (it owns the directory and does
    not answer), failed (with the sentence `failure`), killed, cleanly or never.
    """
    if home.exists() and not home.is_dir():
        return {
            "status": "red",
            "problems": [unusable_home(home, NotADirectoryError(errno.ENOTDIR, "it is a file"))],
            "remedy": None,
        }
    lock, store = home / LOCK_NAME, home / FILE_NAME
    holder = lock_holder(lock)
    pid = holder or (lock.read_text(errors="replace").strip() if lock.exists() else "")
    node = last_node.read(home)
    failure = node.get("failure")
    ended = (
        "running" if holder else "failed" if failure else "killed" if pid else "cleanly" if store.exists() else "never"
    )
    last: dict[str, Any] = {"ended": ended, "pid": int(pid) if pid.isdigit() else None, "failure": failure}
    problems = [_SENTENCES[ended].format(home=home, pid=pid, at=node.get("failed_at"), failure=failure)]
    if not holder:
        last |= _store(store)
        problems.append(f"Its log is {broker_url}.")
        if "positions" in last:
            positions = last.pop("positions")
            last["applied"] = _by_topic(positions)
            last["waiting"] = waiting_records(broker_url, positions)
            problems.append(_progress(last))
        if has_spooled_writes(home):
            problems.append(
                "Writes lie in the spool, because the log was down: they follow when a node runs and the log is back."
            )
    if low := low_sentence(home):
        problems.append(low[0].upper() + low[1:] + ".")
    return {
        "status": "red",
        "problems": problems,
        "remedy": None if holder else GO_ON,
        "broker": broker_url,
        "last": last,
    }


def has_spooled_writes(home: Path) -> bool:
    """Whether the last node left writes that the log did not take."""
    spool = home / "spool"
    return spool.exists() and spool.stat().st_size > 0


_SENTENCES = {
    "running": "No node answers on {home}, but the process {pid} owns it: it is starting, stopping, or hangs.",
    "failed": "No node runs on {home}: the last one ended at {at}: {failure}",
    "killed": "No node runs on {home}: the last one (process {pid}) was killed, or the machine went down.",
    "cleanly": "No node runs on {home}: the last one ended cleanly.",
    "never": "No node runs on {home}, and there is no store yet.",
}


def _progress(last: dict[str, Any]) -> str:
    waiting = last["waiting"]
    ahead = "" if waiting is None else f", {sum(waiting.values())} more wait on the log"
    applied = sum(last["applied"].values())
    return f"Its store has applied {applied} records{ahead}; {last['dead_letters']} new dead letters."


def _store(path: Path) -> dict[str, Any]:
    """Positions and dead letters of a copy of the store; nothing when it is large, damaged, or not there."""
    files = [file for file in (path, path.with_name(path.name + ".wal")) if file.exists()]
    if not path.exists() or sum(file.stat().st_size for file in files) > MAX_COPY_BYTES:
        return {}
    try:
        with tempfile.TemporaryDirectory(prefix="thalweg-status-") as directory:
            for file in files:
                shutil.copyfile(file, Path(directory) / file.name)
            with duckdb.connect(Path(directory) / path.name) as copy:
                positions = read_positions(copy)
                letters = count_states(copy).get("new", 0)
    except (duckdb.Error, OSError):
        return {}
    return {"positions": positions, "dead_letters": letters}


def read_positions(cursor: duckdb.DuckDBPyConnection) -> dict[tuple[str, int], int]:
    """How far a store has applied the log: next offset by topic and partition."""
    rows = cursor.execute("SELECT topic, partition, next_offset FROM positions").fetchall()
    return {(topic, partition): offset for topic, partition, offset in rows}


def waiting_records(broker_url: str, positions: Mapping[tuple[str, int], int]) -> dict[str, int] | None:
    """By topic what lies on the embedded log beyond these positions (from `read_positions`). None of another log."""
    ends = _ends(broker_url)
    return None if ends is None else _by_topic({at: max(0, end - positions.get(at, 0)) for at, end in ends.items()})


def _ends(broker_url: str) -> dict[tuple[str, int], int] | None:
    """Where each partition of the embedded log ends; None of another log, or when the file cannot be read."""
    path = Path(broker_url.removeprefix("sqlite://"))
    if not broker_url.startswith("sqlite://") or not path.exists():
        return None
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)
        try:
            rows = connection.execute("SELECT topic, partition, next_offset FROM partitions").fetchall()
        finally:
            connection.close()
    except sqlite3.Error:
        return None
    return {(topic, partition): offset for topic, partition, offset in rows}


def _by_topic(offsets: dict[tuple[str, int], int]) -> dict[str, int]:
    """Sums; topics without any are left out."""
    sums: dict[str, int] = {}
    for (topic, _), offset in sorted(offsets.items()):
        if offset:
            sums[topic] = sums.get(topic, 0) + offset
    return sums

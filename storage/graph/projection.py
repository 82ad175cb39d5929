"""The projections of a node: one ladybug file a namespace, built anew from the store when what is asked for is newer.

A projection is never truth: files are replaced as a whole, and those of an earlier run are removed at start.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import orjson

from storage.child_process import last_line, run_child
from streams.errors import Unavailable
from streams.positions import Freshness, Partition
from streams.topics import DERIVED, MEMORY, TELEMETRY

MAX_AGE_S = 5.0
"""A projection as old as this is built anew, unless nothing has been applied since."""
BUILD_TIMEOUT_S = 25.0

KEPT_S = 60.0
"""A replaced file stays so long: a query may still be opening it."""

ReadGraph = Callable[[duckdb.DuckDBPyConnection, str, bool], dict[str, Any]]
"""(cursor, namespace, whole): without `whole` the edges that are left out are those of `storage.graph.edge_pruning.INHERITED`."""
Positions = Mapping[Partition, int]


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What a projection is to be built from, and the positions that it covers."""

    namespace: str
    graph: dict[str, Any]
    covers: Positions
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class _Built:
    file: Path
    covers: Positions
    built_at: float


class Projections:
    """`find` reads the store and belongs on a reader's thread; `build` takes its time and belongs on another. Both block."""

    def __init__(self, directory: Path, read_graph: ReadGraph) -> None:
        self._directory = directory
        self._read_graph = read_graph
        self._built: dict[tuple[str, bool], _Built] = {}
        """By namespace and whether it is whole."""
        self._lock = threading.Lock()
        self._number = 0
        shutil.rmtree(directory, ignore_errors=True)

    def find(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, asked: Freshness, *, is_whole: bool = True
    ) -> Path | BuildRequest:
        """The file that holds what `asked` names and is at most `MAX_AGE_S` behind; else what a new one is built from.

        Without `is_whole` one without inherited edges will do.
        """
        covers = _applied(cursor)  # before the graph is read: it may hold more, never less
        for kind in {True, is_whole}:
            known = self._built.get((namespace, kind))
            if known is not None and known.file.exists() and _serves(known, covers, asked):
                return known.file
        return BuildRequest(namespace, self._read_graph(cursor, namespace, is_whole), covers, is_whole)

    def build(self, wanted: BuildRequest) -> Path:
        """Make the file and serve it from now on. Raises Unavailable when that is not possible."""
        with self._lock:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = hashlib.blake2b(wanted.namespace.encode(), digest_size=8).hexdigest()
            for old in self._directory.glob(f"{name}-*"):
                if time.time() - old.stat().st_mtime > KEPT_S:
                    old.unlink(missing_ok=True)
            self._number += 1
            file = self._directory / f"{name}-{self._number}.lbug"
            _run_build(file, wanted.graph)
            self._built[wanted.namespace, wanted.is_whole] = _Built(file, wanted.covers, time.monotonic())
            return file

    def discard(self) -> None:
        """Remove every projection, for what must be forgotten."""
        with self._lock:
            self._built.clear()
            shutil.rmtree(self._directory, ignore_errors=True)


def _serves(known: _Built, applied: Positions, asked: Freshness) -> bool:
    """A caller who has written also sees what was derived from it: nothing may have been derived since."""
    if applied == known.covers:
        return True
    if time.monotonic() - known.built_at > MAX_AGE_S:
        return False
    derived = {at: offset for at, offset in applied.items() if at.topic == DERIVED.name}
    return not asked or (
        all(known.covers.get(at, 0) >= offset for at, offset in asked)
        and all(known.covers.get(at, 0) >= offset for at, offset in derived.items())
    )


def _run_build(file: Path, graph: Mapping[str, Any]) -> None:
    try:
        done = run_child(
            "storage.graph.build", str(file.resolve()), timeout_s=BUILD_TIMEOUT_S, given=orjson.dumps(graph)
        )
    except subprocess.TimeoutExpired:
        file.unlink(missing_ok=True)
        raise Unavailable(f"The graph was not built within {BUILD_TIMEOUT_S:g} s.") from None
    if done.returncode != 0:
        file.unlink(missing_ok=True)
        raise Unavailable(f"The graph could not be built: {last_line(done.stderr)}")


def _applied(cursor: duckdb.DuckDBPyConnection) -> dict[Partition, int]:
    """What the store has applied of the topics that the graph is made of."""
    topics = [MEMORY.name, DERIVED.name, TELEMETRY.name]
    rows = cursor.execute(
        "SELECT topic, partition, next_offset FROM positions WHERE topic IN (SELECT unnest(?))", [topics]
    ).fetchall()
    return {Partition(topic, partition): offset for topic, partition, offset in rows}

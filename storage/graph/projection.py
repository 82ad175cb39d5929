"""The projections of a node: one ladybug file per namespace, rebuilt when a query needs newer data.

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
from streams.files import file_age_s
from streams.positions import Freshness, Partition
from streams.topics import DERIVED, MEMORY, TELEMETRY

MAX_AGE_S = 5.0
"""An older projection is rebuilt, unless nothing has been applied since."""
BUILD_TIMEOUT_S = 25.0

GRACE_S = 60.0
"""A replaced file stays this long, because a query may still be opening it."""

ReadGraph = Callable[[duckdb.DuckDBPyConnection, str, bool], dict[str, Any]]
"""(cursor, namespace, whole) -> nodes and edges; without `whole` those of `edge_pruning.INHERITED` are left out."""
Positions = Mapping[Partition, int]


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """The data for a new projection, and the positions that it covers.

    `graph`: nodes and edges as JSON, half of what they take as objects until the child has built it.
    """

    namespace: str
    graph: bytes
    covers: Positions
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class _Built:
    file: Path
    covers: Positions
    built_at: float


class Projections:
    """`find` reads the store, on a reader's thread; `build` takes long and belongs on another thread. Both block."""

    def __init__(self, directory: Path, read_graph: ReadGraph) -> None:
        self._directory = directory
        self._read_graph = read_graph
        self._built: dict[tuple[str, bool], _Built] = {}
        """Projections by namespace and whether they are whole."""
        self._lock = threading.Lock()
        self._number = 0
        shutil.rmtree(directory, ignore_errors=True)

    def find(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, token: Freshness, *, is_whole: bool = True
    ) -> Path | BuildRequest:
        """Return a file that covers the positions of `token`, else a request to build one.

        The file is at most `MAX_AGE_S` behind.

        Without `is_whole` a projection without inherited edges is enough.
        """
        covers = _applied(cursor)  # before the graph is read: it may have more, never less
        for kind in {True, is_whole}:
            projection = self._built.get((namespace, kind))
            if projection is not None and projection.file.exists() and _serves(projection, covers, token):
                return projection.file
        graph = orjson.dumps(self._read_graph(cursor, namespace, is_whole))
        return BuildRequest(namespace, graph, covers, is_whole)

    def build(self, request: BuildRequest) -> Path:
        """Build the file and serve it from now on. Raises Unavailable when that fails.

        Of several requests at once those that an earlier one covers get its file.
        """
        with self._lock:
            built = self._built.get((request.namespace, request.is_whole))
            if built is not None and built.file.exists() and _is_covered(request.covers, built.covers):
                return built.file
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = hashlib.blake2b(request.namespace.encode(), digest_size=8).hexdigest()
            for old in self._directory.glob(f"{name}-*"):
                if file_age_s(old) > GRACE_S:
                    old.unlink(missing_ok=True)
            self._number += 1
            file = self._directory / f"{name}-{self._number}.lbug"
            _run_build(file, request.graph)
            self._built[request.namespace, request.is_whole] = _Built(file, request.covers, time.monotonic())
            return file

    def discard(self) -> None:
        """Remove every projection, so that its data is gone."""
        with self._lock:
            self._built.clear()
            shutil.rmtree(self._directory, ignore_errors=True)


def _serves(projection: _Built, applied: Positions, token: Freshness) -> bool:
    """Whether a projection may answer.

    A caller with a token also sees what was derived from its write, so nothing may have been derived since.
    """
    if applied == projection.covers:
        return True
    if time.monotonic() - projection.built_at > MAX_AGE_S:
        return False
    derived = {at: offset for at, offset in applied.items() if at.topic == DERIVED.name}
    return not token or (_is_covered(token.next_offsets, projection.covers) and _is_covered(derived, projection.covers))


def _is_covered(positions: Positions, by: Positions) -> bool:
    return all(by.get(at, 0) >= offset for at, offset in positions.items())


def _run_build(file: Path, graph: bytes) -> None:
    try:
        done = run_child("storage.graph.build", str(file.resolve()), timeout_s=BUILD_TIMEOUT_S, given=graph)
    except subprocess.TimeoutExpired:
        file.unlink(missing_ok=True)
        raise Unavailable(f"The graph was not built within {BUILD_TIMEOUT_S:g} s.") from None
    if done.returncode != 0:
        file.unlink(missing_ok=True)
        raise Unavailable(f"The graph could not be built: {last_line(done.stderr)}")


def _applied(cursor: duckdb.DuckDBPyConnection) -> dict[Partition, int]:
    """The applied positions of the topics that the graph is made of."""
    topics = [MEMORY.name, DERIVED.name, TELEMETRY.name]
    rows = cursor.execute(
        "SELECT topic, partition, next_offset FROM positions WHERE topic IN (SELECT unnest(?))", [topics]
    ).fetchall()
    return {Partition(topic, partition): offset for topic, partition, offset in rows}

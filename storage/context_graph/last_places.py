"""Where the next text would stand: behind all of its toolset, and behind those of its session.

A search compares the place of its query with those of memories. To ask DuckDB for it reads all documents each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import duckdb

from storage.followers import Follower
from storage.statements import execute


class LastPlaces(NamedTuple):
    """`position`: the next one in the log, 0 before the first. `sessions`: how many documents each session has.

    `rowid`: of the last document that counts.
    """

    position: int
    sessions: Mapping[str, int]
    rowid: int


class LastPlacesFollower(Follower[LastPlaces]):
    """Those of the documents of a toolset, of each namespace that was asked for."""

    table = "documents"
    columns = 'rowid, toolset, session_id, "offset"'

    def __init__(self, toolset: str) -> None:
        super().__init__()
        self._toolset = toolset

    def load(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> LastPlaces:
        rows = execute(
            cursor,
            'SELECT session_id, count(*), max("offset") + 1, max(rowid) FROM documents '
            "WHERE namespace = ? AND toolset = ? GROUP BY session_id",
            [namespace, self._toolset],
        ).fetchall()
        counts = {session: count for session, count, *_ in rows if session is not None}
        return LastPlaces(max((row[2] for row in rows), default=0), counts, max((row[3] for row in rows), default=-1))

    def update(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, view: LastPlaces, rows: Sequence[tuple[Any, ...]]
    ) -> LastPlaces:
        new = [row for row in rows if row[0] > view.rowid and row[1] == self._toolset]
        if not new:
            return view
        counts = Counter(view.sessions)
        counts.update(session for _, _, session, _ in new if session is not None)
        return LastPlaces(max(view.position, *(offset + 1 for *_, offset in new)), counts, new[-1][0])

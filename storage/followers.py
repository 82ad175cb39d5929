"""In-memory views that follow an append-only table by reading its new rows only."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import duckdb

from storage.append_only import Mark, counts, mark, new_rows
from storage.statements import execute

View = TypeVar("View")
MAX_VIEWS = 64
"""Of one follower: those of the namespaces that were asked for last."""
MAX_WARM = 8
"""This many namespaces are warmed, those with the most rows."""


class _Snapshot(NamedTuple):
    """A view, and how far the table had been read when it was made."""

    reached: Mark
    view: Any


class Follower(ABC, Generic[View]):
    """One view per namespace, each as its table is now. Any number of threads, each with its cursor.

    A subclass names a table with a column `namespace` and says how a view is loaded and updated. Views are replaced,
    never changed. When rows are missing, because the table was rebuilt, the view is loaded anew.
    """

    table: str
    columns: str
    """What `update` needs of each new row, as a list of SQL expressions."""
    max_rows: int = 2_000
    """With more new rows than this, loading the whole view is faster than updating it."""
    warm_rows: int | None = None
    """From this many rows of the table on a namespace is warmed; None: none is."""

    def __init__(self) -> None:
        self._snapshots: dict[str, _Snapshot] = {}
        self._lock = threading.Lock()

    @abstractmethod
    def load(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> View:
        """Read the whole view from the tables."""

    @abstractmethod
    def update(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, view: View, rows: Sequence[tuple[Any, ...]]
    ) -> View:
        """Return the view after these new rows of its namespace, oldest first.

        Rows may come that the view contains already: those added while it was loaded.
        """

    def view(self, cursor: duckdb.DuckDBPyConnection, namespace: str, rows: int | None = None) -> View:
        """Return the view of what is committed now; the same object as long as the namespace has no new rows.

        `rows`: of the table, from a caller that knows how many it has at least; else they are counted.
        """
        with self._lock:
            count = counts(cursor, self.table)[0] if rows is None else rows
            snapshot = self._snapshots.pop(namespace, None)
            if snapshot is None or snapshot.reached.rows != count:
                snapshot = self._updated(cursor, namespace, snapshot, count) or _Snapshot(
                    mark(cursor, self.table), self.load(cursor, namespace)
                )
            self._snapshots[namespace] = snapshot
            if len(self._snapshots) > MAX_VIEWS:
                del self._snapshots[next(iter(self._snapshots))]
            view: View = snapshot.view
            return view

    def warm(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Bring the views of large namespaces up to date, so that no caller waits until a whole one is loaded."""
        if self.warm_rows is None:
            return
        query = f"SELECT namespace FROM {self.table} GROUP BY ALL HAVING count(*) >= ? ORDER BY count(*) DESC LIMIT ?"
        for (namespace,) in execute(cursor, query, [self.warm_rows, MAX_WARM]).fetchall():
            self.view(cursor, namespace)

    def _updated(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, snapshot: _Snapshot | None, count: int
    ) -> _Snapshot | None:
        """The snapshot with the new rows; None where the view must be loaded."""
        if snapshot is None or count - snapshot.reached.rows > self.max_rows:
            return None
        fresh = new_rows(cursor, self.table, f"namespace, {self.columns}", snapshot.reached, count)
        if fresh is None:
            return None
        rows = [values for place, *values in fresh[0] if place == namespace]
        view = (
            self.update(cursor, namespace, snapshot.view, [tuple(values) for values in rows]) if rows else snapshot.view
        )
        return _Snapshot(fresh[1], view)


class EventFollower(Follower[View]):
    """Follows the events of a namespace. `update` gets (type, id) of each new one, and looks up what it changed."""

    table = "events"
    columns = "event_type, event_id"
    max_rows = 20_000
    """Most events are of other types, and are passed over."""
    warm_rows = 5_000

"""Cursors that threads keep: opening one for each query takes as long as a small query."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import duckdb

Result = TypeVar("Result")
Query = Callable[[duckdb.DuckDBPyConnection], Result]
"""A function of a cursor. It must fetch what it returns: an open result owns its cursor."""


class ThreadCursors:
    """A cursor for each thread that asks."""

    def __init__(self, connect: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        """`connect` gives a new cursor."""
        self._connect = connect
        self._local = threading.local()

    def run(self, query: Query[Result]) -> Result:
        """Run the query with the thread's cursor."""
        cursor = getattr(self._local, "cursor", None)
        if cursor is None:
            cursor = self._local.cursor = self._connect()
        try:
            return query(cursor)
        finally:
            _finish(cursor)


class CursorPool:
    """Threads that run functions of a cursor."""

    def __init__(self, connect: Callable[[], duckdb.DuckDBPyConnection], threads: int, name: str) -> None:
        """`connect` gives a new cursor."""
        self._cursors = ThreadCursors(connect)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    def submit(self, query: Query[Result]) -> Future[Result]:
        """Run the query on one of the threads."""
        return self._pool.submit(self._cursors.run, query)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _finish(cursor: duckdb.DuckDBPyConnection) -> None:
    """Close a query's result, because its transaction would stay open and block a CHECKPOINT."""
    try:
        cursor.fetchall()
    except duckdb.Error:
        pass  # nothing is open

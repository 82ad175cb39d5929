"""Threads that each keep a cursor: opening one for each query takes as long as a small query."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import duckdb

Result = TypeVar("Result")


class CursorPool:
    """Runs functions of a cursor on its threads."""

    def __init__(self, connect: Callable[[], duckdb.DuckDBPyConnection], threads: int, name: str) -> None:
        """`connect` gives a new cursor."""
        self._connect = connect
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    def submit(self, query: Callable[[duckdb.DuckDBPyConnection], Result]) -> Future[Result]:
        """Run the query on one of the threads. It must fetch what it returns: an open result owns its cursor."""
        return self._pool.submit(self._call, query)

    def _call(self, query: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        cursor = getattr(self._local, "cursor", None)
        if cursor is None:
            cursor = self._local.cursor = self._connect()
        try:
            return query(cursor)
        finally:
            _finish(cursor)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _finish(cursor: duckdb.DuckDBPyConnection) -> None:
    """Close a query's result, because its transaction would stay open and block a CHECKPOINT."""
    try:
        cursor.fetchall()
    except duckdb.Error:
        pass  # nothing is open

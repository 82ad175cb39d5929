"""Reading what is known: a small pool of threads, a DuckDB cursor each, never the writer's.

A read never blocks on the writer: it sees the last committed state.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import duckdb
import orjson

from storage.database import Database
from storage.statements import execute
from streams.errors import Unavailable
from streams.positions import Partition, Position

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """What a reducer decided about one request. `result` holds what its tool answers with."""

    request_id: str
    status: str
    code: str | None
    message: str | None
    result: dict[str, Any]
    position: Position


class Reader:
    """Runs functions of a cursor on reader threads."""

    def __init__(self, database: Database, threads: int = 4) -> None:
        self._database = database
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="reader")

    async def run(self, query: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        """The query's result. It must fetch what it returns: an open result owns its cursor.

        Raises Unavailable when the database cannot answer; what `query` raises itself passes through.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._call, query)
        except (duckdb.FatalException, duckdb.ConnectionException, duckdb.IOException) as error:
            raise Unavailable(f"The store does not answer: {type(error).__name__}.") from error

    def _call(self, query: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        cursor = getattr(self._local, "cursor", None)
        if cursor is None:
            cursor = self._local.cursor = self._database.cursor()
        try:
            return query(cursor)
        finally:
            _finish(cursor)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _finish(cursor: duckdb.DuckDBPyConnection) -> None:
    """End what a query left open: after a `fetchone` its transaction goes on, and no CHECKPOINT (so no snapshot) is possible."""
    try:
        cursor.fetchall()
    except duckdb.Error:
        pass  # nothing is open


def find_outcome(cursor: duckdb.DuckDBPyConnection, namespace: str, request_id: str) -> StoredOutcome | None:
    """The outcome of a request, or None while none is decided."""
    row = execute(
        cursor,
        'SELECT status, code, message, result, topic, partition, "offset" FROM outcomes WHERE namespace = ? AND request_id = ?',
        [namespace, request_id],
    ).fetchone()
    if row is None:
        return None
    status, code, message, result, topic, partition, offset = row
    return StoredOutcome(
        request_id, status, code, message, orjson.loads(result or "{}"), Position(topic, partition, offset)
    )


def count_documents_since(cursor: duckdb.DuckDBPyConnection, namespace: str, since: Mapping[Partition, int]) -> int:
    """How many records of a namespace that lie at these offsets or beyond have made documents."""
    places = " OR ".join(['(topic = ? AND partition = ? AND "offset" >= ?)'] * len(since)) or "false"
    values = [value for at, offset in since.items() for value in (*at, offset)]
    counts = execute(
        cursor,
        f'SELECT count(DISTINCT "offset") FROM documents WHERE namespace = ? AND ({places}) GROUP BY topic, partition',
        [namespace, *values],
    ).fetchall()
    return sum(count for (count,) in counts)


def outcome_of(row: Mapping[str, Any]) -> StoredOutcome:
    """The outcome in a row as a reducer's batch made it: what `find_outcome` reads from the table."""
    result = orjson.loads(orjson.dumps(row["result"] or {}))  # as it lies in the table: its own, and plain JSON
    position = Position(row["topic"], row["partition"], row["offset"])
    return StoredOutcome(row["request_id"], row["status"], row["code"], row["message"], result, position)

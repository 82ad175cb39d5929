"""Reads of the store: a small pool of threads, each with a DuckDB cursor of its own.

A read never waits for the writer: it sees the last committed state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import duckdb
import orjson

from storage.cursor_pool import CursorPool
from storage.database import Database
from storage.search.records.filter import Predicate
from storage.statements import execute
from streams.errors import Unavailable
from streams.positions import Partition, Position

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """A reducer's decision on one request. `result` has the fields of its tool's answer."""

    request_id: str
    status: str
    code: str | None
    message: str | None
    result: dict[str, Any]
    position: Position


class Reader:
    """Runs functions of a cursor on reader threads."""

    def __init__(self, database: Database, threads: int = 4) -> None:
        self._pool = CursorPool(database.cursor, threads, "reader")

    async def run(self, query: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        """Run the query on a reader thread. It must fetch what it returns: an open result owns its cursor.

        Raises Unavailable when the database cannot answer; other errors of `query` pass through.
        """
        try:
            return await asyncio.wrap_future(self._pool.submit(query))
        except (duckdb.FatalException, duckdb.ConnectionException, duckdb.IOException) as error:
            raise Unavailable(f"The store does not answer: {type(error).__name__}.") from error

    def close(self) -> None:
        self._pool.close()


def find_outcome(cursor: duckdb.DuckDBPyConnection, namespace: str, request_id: str) -> StoredOutcome | None:
    """The outcome of a request, or None while it is undecided."""
    row = execute(
        cursor,
        'SELECT status, code, message, result, topic, partition, "offset" FROM outcomes '
        "WHERE namespace = ? AND request_id = ?",
        [namespace, request_id],
    ).fetchone()
    if row is None:
        return None
    status, code, message, result, topic, partition, offset = row
    return StoredOutcome(
        request_id, status, code, message, orjson.loads(result or "{}"), Position(topic, partition, offset)
    )


def count_documents_since(cursor: duckdb.DuckDBPyConnection, namespace: str, since: Mapping[Partition, int]) -> int:
    """The number of a namespace's records at or behind these offsets that have documents."""
    behind = documents_since(since)
    counts = execute(
        cursor,
        f'SELECT count(DISTINCT "offset") FROM documents WHERE namespace = ? AND ({behind.sql}) '
        "GROUP BY topic, partition",
        [namespace, *behind.parameters],
    ).fetchall()
    return sum(count for (count,) in counts)


def documents_since(since: Mapping[Partition, int]) -> Predicate:
    """The condition that a document's record is at or behind these offsets."""
    places = " OR ".join(['(topic = ? AND partition = ? AND "offset" >= ?)'] * len(since)) or "false"
    return Predicate(places, [value for at, offset in since.items() for value in (*at, offset)])


def outcome_of(row: Mapping[str, Any]) -> StoredOutcome:
    """The outcome in a row of a batch: the same as `find_outcome` reads from the table."""
    result = orjson.loads(orjson.dumps(row["result"] or {}))  # a copy in plain JSON, as in the table
    position = Position(row["topic"], row["partition"], row["offset"])
    return StoredOutcome(row["request_id"], row["status"], row["code"], row["message"], result, position)

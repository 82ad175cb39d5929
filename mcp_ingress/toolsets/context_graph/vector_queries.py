"""What an id of a query or a result stands for: a memory, or a vector that a tool made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from processors.context_graph.read.ends import followed
from storage.statements import execute
from streams.errors import Refused


@dataclass(frozen=True)
class StoredVector:
    """A text that can be searched with. `memory_id`: the memory that it is of; `weights`: of the views it was fused.

    `followed_from`: the memory that was asked for, which became part of that one.
    """

    text: str
    memory_id: str | None = None
    weights: np.ndarray | None = None
    followed_from: str | None = None

    @property
    def told(self) -> dict[str, Any]:
        """What the answer of a search says of it."""
        return {} if self.followed_from is None else {"followed_from": {"query_vector_id": self.followed_from}}


def find_vector(cursor: duckdb.DuckDBPyConnection, namespace: str, vector_id: str) -> StoredVector | None:
    """The text behind the id of a memory or of a vector; None where there is none."""
    memory_id = followed(cursor, namespace, vector_id)
    row = execute(
        cursor,
        "SELECT coalesce(searched, content) FROM context_memories WHERE namespace = ? AND memory_id = ?",
        [namespace, memory_id],
    ).fetchone()
    if row is not None:
        return StoredVector(row[0], memory_id, followed_from=None if memory_id == vector_id else vector_id)
    row = execute(
        cursor,
        "SELECT content, memory_id, weights FROM context_vectors WHERE namespace = ? AND vector_id = ?",
        [namespace, vector_id],
    ).fetchone()
    if row is None:
        return None
    content, memory_id, weights = row
    if memory_id is None:
        return StoredVector(content)
    of = find_vector(cursor, namespace, memory_id)
    return None if of is None else StoredVector(of.text, of.memory_id, np.array(weights), of.followed_from)


def unknown_vector(field: str, vector_id: str) -> Refused:
    """The refusal of an id that stands for nothing."""
    message = (
        f"Nothing has the id {vector_id[:80]!r}: `{field}` takes a `fingerprintId`, or the id of a vector that "
        "`fuse_embeddings` made."
    )
    return Refused(message, reason="not_found", field=field)


def find_recall(
    cursor: duckdb.DuckDBPyConnection, namespace: str, query_id: str, memory_id: str
) -> dict[str, Any] | None:
    """What a search left of a result: `alignments`, `similarity`, `prior` of the last one; None of none."""
    row = execute(
        cursor,
        "SELECT alignments, similarity, prior FROM context_recalls "
        "WHERE namespace = ? AND query_vector_id = ? AND memory_id = ? "
        "AND alignments IS NOT NULL ORDER BY recalled_at DESC, event_id LIMIT 1",
        [namespace, query_id, memory_id],
    ).fetchone()
    return None if row is None else dict(zip(("alignments", "similarity", "prior"), row, strict=True))

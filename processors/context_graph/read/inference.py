"""Reads the causal edges around a memory, and what is shown of the memories on their paths."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from processors.context_graph.read.edges import edges_from, edges_to
from processors.context_graph.rules.edges import Edge
from processors.context_graph.rules.inference import MAX_HOPS, walkable
from storage.statements import execute, marks

if TYPE_CHECKING:
    import duckdb

CAUSAL = "causal"
MOST_WALKED = 100
"""No hop is made from more memories than this, the strongest reached first: what a hub leads to is not all read."""


@dataclass(frozen=True, slots=True)
class PathMemory:
    """What is shown and compared of a memory on a path."""

    memory_id: str
    content: str
    importance: float
    modality: str
    tags: tuple[str, ...]


def edges_ahead(cursor: duckdb.DuckDBPyConnection, namespace: str, source: str) -> list[Edge]:
    """The causal edges within MAX_HOPS of what follows from a memory."""
    return _around(cursor, namespace, source, is_ahead=True)


def edges_behind(cursor: duckdb.DuckDBPyConnection, namespace: str, effect: str) -> list[Edge]:
    """The causal edges within MAX_HOPS of what a memory follows from."""
    return _around(cursor, namespace, effect, is_ahead=False)


def _around(cursor: duckdb.DuckDBPyConnection, namespace: str, start: str, *, is_ahead: bool) -> list[Edge]:
    frontier, found, strengths = [start], list[Edge](), {start: 1.0}
    for _ in range(MAX_HOPS):
        if not frontier:
            break
        read = edges_from if is_ahead else edges_to
        edges = walkable(read(cursor, namespace, frontier[:MOST_WALKED], CAUSAL))
        found += edges
        reached: dict[str, float] = {}
        for edge in edges:
            near, far = (edge.source_id, edge.target_id) if is_ahead else (edge.target_id, edge.source_id)
            reached[far] = max(reached.get(far, 0.0), strengths.get(near, 0.0) * edge.weight)
        frontier = sorted(reached.keys() - strengths.keys(), key=lambda one: (-reached[one], one))
        strengths = reached | strengths
    return found


def read_path_memories(
    cursor: duckdb.DuckDBPyConnection, namespace: str, memory_ids: Collection[str], most_chars: int
) -> dict[str, PathMemory]:
    """By id the memories that there are, the first characters of their content with them."""
    if not memory_ids:
        return {}
    rows = execute(
        cursor,
        f"SELECT memory_id, left(content, {most_chars}), importance, modality, tags FROM context_memories "
        f"WHERE namespace = ? AND memory_id IN ({marks(memory_ids)})",
        [namespace, *memory_ids],
    ).fetchall()
    return {
        memory_id: PathMemory(memory_id, content, importance, modality, tuple(tags))
        for memory_id, content, importance, modality, tags in rows
    }

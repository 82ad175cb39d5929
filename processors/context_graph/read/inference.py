"""Reads the causal edges around a memory, and what is shown of the memories on their paths."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from processors.context_graph.read.edges import edges_among
from processors.context_graph.rules.edges import Edge, Key, living
from processors.context_graph.rules.inference import MAX_HOPS, walkable
from storage.context_graph.causal_edges import CausalEdges
from storage.statements import execute, marks
from streams.ids import document_label

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


def edges_ahead(known: CausalEdges, namespace: str, source: str) -> list[Edge]:
    """The causal edges within MAX_HOPS of what follows from a memory, without their evidence."""
    return _around(known, namespace, source, is_ahead=True)


def edges_behind(known: CausalEdges, namespace: str, effect: str) -> list[Edge]:
    """The causal edges within MAX_HOPS of what a memory follows from, without their evidence."""
    return _around(known, namespace, effect, is_ahead=False)


def read_evidence(cursor: duckdb.DuckDBPyConnection, namespace: str, memory_ids: Collection[str]) -> dict[Key, Any]:
    """By causal edge among these memories what speaks for it."""
    among = edges_among(cursor, namespace, memory_ids)
    return {edge.key: edge.evidence for edge in among if edge.kind == CAUSAL}


def _around(known: CausalEdges, namespace: str, start: str, *, is_ahead: bool) -> list[Edge]:
    frontier, found, strengths = [start], list[Edge](), {start: 1.0}
    for _ in range(MAX_HOPS):
        if not frontier:
            break
        steps = known.steps(namespace, frontier[:MOST_WALKED], is_ahead=is_ahead)
        edges = walkable(living((Edge(one, other, CAUSAL, *values) for one, other, *values in steps), {}))
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
    labels = [document_label(namespace, one) for one in memory_ids]
    # by the indexed label alone: of a further condition DuckDB asks all rows first
    rows = execute(
        cursor,
        f"SELECT namespace, memory_id, left(content, {most_chars}), importance, modality, tags FROM context_memories "
        f"WHERE label IN ({marks(labels)})",
        labels,
    ).fetchall()
    return {
        memory_id: PathMemory(memory_id, content, importance, modality, tuple(tags))
        for place, memory_id, content, importance, modality, tags in rows
        if place == namespace
    }


def read_importance(cursor: duckdb.DuckDBPyConnection, namespace: str, memory_ids: Collection[str]) -> dict[str, float]:
    """By id how important the memories are that there are: of hundreds in some milliseconds."""
    labels = {document_label(namespace, one): one for one in memory_ids}
    rows = execute(
        cursor,
        "SELECT label, importance FROM context_memories WHERE label IN (SELECT unnest($1::BIGINT[]))",
        [list(labels)],
    ).fetchall()
    return {labels[label]: importance for label, importance in rows}

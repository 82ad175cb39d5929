"""Reads which living memories of a namespace say the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from processors.context_graph.rules.consolidation import LivingMemory, Pair, say_the_same
from processors.context_graph.rules.near_pairs import near_pairs
from processors.context_graph.rules.restatements import ordinary_words
from storage.search.index_set import IndexSet
from storage.statements import execute

if TYPE_CHECKING:
    import duckdb

AT_ONCE, NEAREST = 50, 20
"""Memories whose nearest are looked for at once, and how many of each."""
_COLUMNS = "memory_id, label, content, modality, tags, importance, rationale, created_at, merged_from"


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Pairs that say the same. `compared`: how many memories were compared with each other, the most recent ones.

    `near`: how many pairs had the least cosine. `is_complete`: there was time for all; `ordinary`: words that are no
    names among these memories.
    """

    pairs: list[Pair]
    compared: int
    near: int
    is_complete: bool
    ordinary: frozenset[str]


_LIVING = (
    f"SELECT {_COLUMNS} FROM context_memories m WHERE namespace = ? AND NOT EXISTS "
    "(FROM context_ends e WHERE e.namespace = m.namespace AND e.memory_id = m.memory_id)"
)


def read_living(cursor: duckdb.DuckDBPyConnection, namespace: str, most: int | None = None) -> list[LivingMemory]:
    """The memories that were not merged, those that were stored last first."""
    rows = execute(cursor, f"{_LIVING} ORDER BY last_stored_at DESC, memory_id LIMIT ?", [namespace, most])
    return list(map(LivingMemory._make, rows.fetchall()))


def read_near(
    cursor: duckdb.DuckDBPyConnection,
    indexes: IndexSet,
    namespace: str,
    memories: Sequence[LivingMemory],
    least: float,
    is_over: Callable[[], bool],
) -> list[LivingMemory]:
    """The other living memories with at least this cosine to one of these, in the order of their ids.

    `is_over`: asked between two reads of the index, whether the time for it is over.
    """
    live = indexes.spaces.live
    if live is None:
        return []
    vectors = list(live.vectors(np.array([memory.label for memory in memories], np.int64)).values())
    near = set[int]()
    for start in range(0, len(vectors), AT_ONCE):
        if is_over():
            break
        matches = live.nearest_to_each(np.stack(vectors[start : start + AT_ONCE]), NEAREST, least)
        near.update(label for found in matches for label, _ in found)
        indexes.yield_to_callers()
    labels = sorted(near - {memory.label for memory in memories})
    rows = execute(
        cursor, f"{_LIVING} AND label IN (SELECT unnest(?::BIGINT[])) ORDER BY memory_id", [namespace, labels]
    )
    return list(map(LivingMemory._make, rows.fetchall()))


def find_duplicates(
    indexes: IndexSet,
    memories: Sequence[LivingMemory],
    least: float,
    fits: Callable[[Sequence[Pair]], Sequence[Pair]],
    is_over: Callable[[], bool],
) -> Duplicates:
    """Compare memories that have a vector with each other, in their order, until the time for it is over.

    `fits` leaves of pairs that say the same those that may be named.
    """
    live = indexes.spaces.live
    held = {} if live is None else live.vectors(np.array([memory.label for memory in memories], np.int64))
    known = [memory for memory in memories if memory.label in held]
    vectors = np.array([held[memory.label] for memory in known], np.float32)
    ordinary = ordinary_words([memory.content for memory in known])
    pairs, near, compared = list[Pair](), 0, 0
    for block in near_pairs(vectors, least):
        found = list[Pair]()
        for first, second, cosine in zip(*map(np.ndarray.tolist, block[1:]), strict=True):
            if say_the_same(known[first], known[second], ordinary):
                found.append(Pair(known[first], known[second], cosine))
            indexes.yield_to_callers()
            if is_over():
                return Duplicates(pairs + list(fits(found)), compared, near, False, ordinary)
        pairs += fits(found) if found else []
        near, compared = near + len(block.first), block.end
        indexes.yield_to_callers()
        if compared < len(known) and is_over():
            return Duplicates(pairs, compared, near, False, ordinary)
    return Duplicates(pairs, compared, near, True, ordinary)

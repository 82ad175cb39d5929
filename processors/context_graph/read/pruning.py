"""Reads how old, used, joined and aligned each living memory is, and what else says the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from processors.context_graph.read.duplicates import find_duplicates, read_living
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.rules.consolidation import LivingMemory, Pair
from processors.context_graph.rules.pruning import NEAR_DUPLICATE, Standing, standing_for
from storage.statements import execute

DAY_S = 86_400.0
_STATES = """
SELECT s.memory_id, s.access_count, s.last_accessed_at, s.created_at, coalesce(e.connections, 0)
FROM context_memory_states s
LEFT JOIN (
    SELECT memory_id, count(*) AS connections
    FROM (SELECT source_id AS memory_id FROM context_edge_states WHERE namespace = $1
          UNION ALL SELECT target_id FROM context_edge_states WHERE namespace = $1)
    GROUP BY memory_id) e ON e.memory_id = s.memory_id
WHERE s.namespace = $1 AND s.status = 'active'"""


def read_standings(
    reader: FingerprintReader, now: datetime, is_over: Callable[[], bool]
) -> tuple[list[Standing], bool]:
    """How each memory stands at a time (UTC without a zone), those stored last first.

    The second value: whether all memories were compared with each other before the time for it was over.
    """
    memories = read_living(reader.cursor, reader.namespace)
    states = {row[0]: row[1:] for row in execute(reader.cursor, _STATES, [reader.namespace]).fetchall()}
    found = find_duplicates(reader.indexes, memories, NEAR_DUPLICATE, _all, is_over)
    redundant = _redundant(found.pairs, states)
    return [
        _standing(memory, states[memory.memory_id], now, redundant.get(memory.memory_id))
        for memory in memories
        if memory.memory_id in states
    ], found.is_complete


def _all(pairs: Sequence[Pair]) -> Sequence[Pair]:
    return pairs


def _redundant(pairs: Sequence[Pair], states: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    others: dict[str, list[str]] = {}
    for pair in pairs:
        one, other = pair.first.memory_id, pair.second.memory_id
        others.setdefault(one, []).append(other)
        others.setdefault(other, []).append(one)
    rank = {one: (states[one][0], states[one][2], one) for one in others}
    return standing_for(others, rank)


def _standing(memory: LivingMemory, state: Sequence[Any], now: datetime, redundant_with: str | None) -> Standing:
    _, accessed_at, created_at, connections = state
    return Standing(
        memory.memory_id,
        max(0.0, (now - created_at).total_seconds() / DAY_S),
        max(0.0, (now - accessed_at).total_seconds() / DAY_S),
        None,
        connections,
        len(memory.content.encode()),
        memory.importance,
        redundant_with,
    )

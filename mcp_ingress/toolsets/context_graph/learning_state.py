"""What the status tools say of what was learned: means, phase, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import duckdb

from mcp_ingress.call import Call
from mcp_ingress.toolsets.context_graph.dreams import Dreams, State
from mcp_ingress.toolsets.context_graph.pulse import read_means
from processors.context_graph.rules.johari import REASONS, advised
from processors.context_graph.rules.learning import ConsolidationPhase, Means, consolidation_phase
from storage.statements import execute

ACTIVE_S = 600
"""Seconds of the past in which memories that were stored or recalled count as activity."""
MAX_QUERY = 300
ADVISORY: Mapping[str, Any] = {
    "type": ["object", "null"],
    "description": "What to do next, why, and the call that does it; null before the first memory",
    "properties": {"action": {"type": "string"}, "why": {"type": "string"}, "call": {"type": "object"}},
}


@dataclass(frozen=True)
class LearningState:
    """What a namespace has learned, as of now."""

    means: Means
    consolidation_phase: str
    advisory: dict[str, Any] | None


async def read_learning_state(call: Call) -> LearningState:
    """The means, and what follows from them and from the last memories."""
    now = call.clock.now().replace(tzinfo=None)
    last, active = await call.read(lambda cursor: _last_memory(cursor, call.namespace, now))
    means = await read_means(call.services, call.namespace)
    return LearningState(
        means,
        _phase(call.part(Dreams).state(call.namespace), active),
        None if last is None else _advisory(means, last, now),
    )


def _phase(state: State, calls: int) -> ConsolidationPhase:
    """Of a dream that runs its own; else by how much was called of late."""
    if state == "Waking":
        return "Wake"
    return consolidation_phase(calls) if state == "Awake" else state


def _last_memory(cursor: duckdb.DuckDBPyConnection, namespace: str, now: datetime) -> tuple[str | None, int]:
    """The text of the memory that was stored last, and how many were stored or recalled of late."""
    last = execute(
        cursor,
        "SELECT coalesce(searched, content) FROM context_memories WHERE namespace = ? AND merged_from IS NULL "
        'ORDER BY "offset" DESC, idx DESC LIMIT 1',
        [namespace],
    ).fetchone()
    since = now - timedelta(seconds=ACTIVE_S)
    row = execute(
        cursor,
        "SELECT (SELECT count(*) FROM context_memories WHERE namespace = $1 AND last_stored_at >= $2) "
        "+ (SELECT count(DISTINCT event_id) FROM context_recalls WHERE namespace = $1 AND recalled_at >= $2)",
        [namespace, since],
    ).fetchone()
    assert row is not None
    return (None if last is None else last[0]), row[0]


def _advisory(means: Means, last: str, now: datetime) -> dict[str, Any]:
    novel_s = 0.0 if means.novel_since is None else (now - means.novel_since).total_seconds()
    action = advised(means.entropy, means.coherence, novel_s)
    search = {"tool": "search_graph", "arguments": {"query": last[:MAX_QUERY], "topK": 5}}
    dream = {"tool": "trigger_dream", "arguments": {}}
    return {"action": action, "why": REASONS[action], "call": dream if action == "trigger_dream" else search}

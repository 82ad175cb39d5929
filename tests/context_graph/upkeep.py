"""What the upkeep of memories has to work on: a goal that was left, what says the same, and an edge to wear."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from processors.context_graph.rules.memories import memory_id_of
from streams.event_types.context_edges import EDGES_FOUND
from streams.event_types.context_goals import GOAL_BOOTSTRAPPED
from streams.event_types.context_graph import MEMORY_STORED
from streams.events import Event
from tests.context_graph.test_drift import INVOICES, WATERS

PAGE = (Path(__file__).parents[2] / "docs" / "context-graph.md").read_text(encoding="utf-8")
[LAST_NIGHT] = re.findall(r'thalweg sql "(WITH own .*?)"\n', PAGE, flags=re.DOTALL)
"""The query of docs/context-graph.md."""
AGAIN = ("The build of the shop is green.", "the build of the shop is green")


def left_goal(now: datetime) -> Sequence[Event]:
    """Events of two hours ago: memories and their goal, and others that have left it, with what the dream is to do."""
    then = now - timedelta(hours=2)
    kept = [
        Event(text, "test", MEMORY_STORED, "default", then, {"content": text})
        for text in (*INVOICES[:20], *WATERS[:12], *AGAIN)
    ]
    ids = [memory_id_of(event) for event in kept]
    goal = {"goal_text": "Invoices", "medoid_id": ids[0], "member_ids": ids[:20], "confidence": 0.9, "coherence": 0.9}
    found = {"confidence_threshold": 0.7, "goal": goal, "request_id": "goal"}
    edge = {"source_id": min(ids[0], ids[20]), "target_id": max(ids[0], ids[20]), "kind": "similar", "weight": 0.5}
    return [
        *kept,
        Event("goal", "test", GOAL_BOOTSTRAPPED, "default", then, found),
        Event("edges", "test", EDGES_FOUND, "default", then, {"edges": [edge]}),
    ]

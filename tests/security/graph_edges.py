"""What the log tells of a namespace besides what tools write: edges, walks over them, a night, drift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise, permutations
from typing import Any

from streams.events import Event
from tests.security.side import Side


def walk_events(side: Side, told: Mapping[str, Any]) -> Iterator[Event]:
    """A path of three edges that searches walked five times, and an edge that a dream changed."""
    path = [f"{side.mark}-{name}" for name in "abcd"]
    edges = [
        {"source_id": one, "target_id": other, "kind": "causal", "weight": 0.9, "evidence": side.say("It turned.")}
        for one, other in pairwise(path)
    ]
    yield side.event("context.edges.found", 12, 0, edges=edges)
    changes = [{"source_id": path[0], "target_id": path[2], "kind": "rem", "weight": 0.4}]
    yield side.event("context.edges.changed", 13, 0, dream_id=side.mark, changes=changes)
    for number in range(5):
        yield side.event("context.memory.recalled", 14 + number, 0, **told, chains=[path])


def night_events(side: Side, query_id: str) -> Iterator[Event]:
    """What a dream made of a memory's surroundings, and a question that it found asked again and again."""
    made = {"memory_id": side.ids["graph_memory"][0], "vector": "AACAPwAAAAA="}
    yield side.event("context.surroundings.embedded", 19, 0, dream_id=side.mark, space="s", dim=2, surroundings=[made])
    yield side.event("context.questions.repeated", 19, 0, dream_id=side.mark, query_vector_ids=[query_id])


def cause_events(side: Side, words: str) -> Iterator[Event]:
    """Causes between the memories, as a stage finds them: this side's model has no token vectors."""
    stated = {"memory_id": side.ids["graph_memory"][0], "sentence": side.say(f"{words}, because."), "marker": "because"}
    about = {"kind": "causal", "weight": 0.8, "confidence": 0.9, "evidence": stated}
    edges = [
        {"source_id": cause, "target_id": effect, **about}
        for cause, effect in permutations(side.ids["graph_memory"], 2)
    ]
    yield side.event("context.edges.found", 2, 0, edges=edges)


def drift_events(side: Side) -> Iterator[Event]:
    """Drift as a timer observed it, and as it was corrected."""
    drift: dict[str, Any] = {"goal_id": side.mark, "severity": "severe", "trend": "stable"}
    seen = {"alignment": 0.2, "baseline": 0.5, "drift_score": 0.3, "rotation": 0.1, "samples": 20, "memories": 30}
    added = {"strategy": "goal_reinforcement", "goal_weight": 0.25, "view_weights": [1 / 13] * 13, "penalty": 0.0}
    yield side.event("context.drift.observed", 1, 0, **drift, **seen)
    yield side.event("context.drift.corrected", 1, 0, **drift, **added)

"""Edges between memories of Context Graph: what stages find, and what a dream changes. Derived topic."""

from typing import Any

from streams.event_types import FILLED, FLAG, OPTIONAL, UNIT, array, obj
from streams.events import EventType, wire_type
from streams.topics import DERIVED

EDGES_FOUND = wire_type("context.edges.found")
EDGES_CHANGED = wire_type("context.edges.changed")
FOUND_KINDS = ("similar", "temporal", "causal")
EDGE_KINDS = (*FOUND_KINDS, "rem", "shortcut")
REM_WEIGHT = 0.3
"""Of a `rem` edge that a dream found by itself. What is above it, memories have earned by being recalled together."""
MAX_EVIDENCE = 4_000
"""Characters of an evidence that is a text."""

_SHARE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
_EVIDENCE: dict[str, Any] = {"type": ["object", "string", "null"], "maxLength": MAX_EVIDENCE}


def _edge(kinds: tuple[str, ...], optional: dict[str, Any]) -> dict[str, Any]:
    ends = {"source_id": FILLED, "target_id": FILLED, "kind": {"enum": list(kinds)}, "weight": _SHARE}
    return obj(ends, {"confidence": UNIT, "evidence": _EVIDENCE, **optional})


EVENT_TYPES = (
    EventType(
        EDGES_FOUND,
        DERIVED.name,
        "A stage found edges between memories. `similar` and `temporal` have no direction; `causal` goes from cause to "
        "effect. `space`: the space of the vectors that were compared.",
        obj({"edges": array(_edge(FOUND_KINDS, {"space": OPTIONAL}))}),
    ),
    EventType(
        EDGES_CHANGED,
        DERIVED.name,
        "A dream changed edges. Weights are absolute: what each edge has afterwards.",
        obj({"dream_id": FILLED, "changes": array(_edge(EDGE_KINDS, {"is_removed": FLAG}))}),
    ),
)

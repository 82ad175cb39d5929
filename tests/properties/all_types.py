"""A log that holds every type of event twice, so that the second meets what the first has left.

Made of the types' own schemas.

What names something else (a session, a belief, an item) is given by hand, because a schema does not say what exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from processors.cognitive.rules.identifiers import event_number, item_number
from processors.context_graph.reducers.dreams import dream_id_of
from processors.talos.rules.identifiers import entry_id
from processors.valence.rules.beliefs import belief_id_of
from processors.valence.rules.identifiers import PATTERN, SESSION, object_id
from processors.valence.rules.tensions import tension_id
from streams.codec import encode
from streams.events import Event, event_types, wire_type
from streams.log.base import Outgoing
from tests.processors.harness import NOW, event

FIRST = (
    "valence.session.started",
    "valence.pattern.recorded",
    "valence.belief.created",
    "talos.session.opened",
    "cm.l0.stored",
    "cm.wm.updated",
    "space.registered",
)
"""What others name, before them."""
LAST = ("talos.session.closed", "valence.session.ended", "valence.tension.resolved", "space.dropped")
ROUNDS = 2


def every_type(namespace: str) -> list[Outgoing]:
    """Two events of each type, each topic in an order in which most of them are applied and some are refused."""
    told: dict[str, Event] = {}
    records = []
    for turn in range(ROUNDS):
        for short in _in_order():
            kind = wire_type(short)
            given = _sample(event_types()[kind].schema) | _named(short, namespace, told, turn)
            identity = f"{short}-{turn}"
            if "request_id" in given:
                given["request_id"] = identity
            made = event(short, given, id=identity, namespace=namespace, time=NOW + timedelta(minutes=len(records)))
            told.setdefault(short, made)
            records.append(encode(event_types()[kind].topic, made))
    return records


def _in_order() -> list[str]:
    shorts = [kind.removeprefix("thalweg.").removesuffix(".v1") for kind in event_types()]
    middle = [
        short for short in shorts if short not in FIRST + LAST and short != "stage.progressed"
    ]  # a mark is no event of its own
    return [*FIRST, *middle, *LAST]


def _named(short: str, namespace: str, told: Mapping[str, Event], turn: int) -> dict[str, Any]:
    """What stands in the events that speak of others."""
    named: dict[str, Any] = {}
    if short.startswith("talos.session."):
        named["session_id"] = f"2026-01-05-{'ab'[turn]}"
    if "talos.journal.written" in told:
        named["entry_id"] = entry_id(told["talos.journal.written"])
    if "context.dream.requested" in told:
        named["dream_id"] = dream_id_of(told["context.dream.requested"])
    if "cm.l0.stored" in told:
        named |= {"source_ids": [event_number(told["cm.l0.stored"])]}
    if "cm.wm.updated" in told:
        named |= {"item_id": item_number(namespace, told["cm.wm.updated"].data["content"])}
    if short.startswith("valence.") and "valence.session.started" in told:
        named["session_id"] = object_id(told["valence.session.started"], SESSION)
    if short.startswith("valence.pattern.re") and "valence.pattern.recorded" in told:
        named["pattern_id"] = object_id(told["valence.pattern.recorded"], PATTERN)
    if "valence.belief.created" in told:
        named["old_belief_id"] = belief_id_of(told["valence.belief.created"])
    if "valence.insight.extracted" in told:
        one, other = belief_id_of(told["valence.belief.created"]), belief_id_of(told["valence.insight.extracted"])
        named |= {"belief_id": one, "belief_a_id": one, "belief_b_id": other, "tension_id": tension_id(one, other)}
    if short in ("valence.belief.created", "valence.insight.extracted"):
        named["content"] = f"The gateway of {short} listens on port {turn}"
    if short == "cm.golden_set.imported":
        named["queries"] = [
            {"query": f"tide {number}", "expected_docs": [number], "session_id": "s"} for number in range(50)
        ]
    if short == "talos.knowledge.imported":
        named["entities"] = [{"label": "Insight", "text": f"Tides turn {turn}."}]
    if short == "context.surroundings.embedded":
        named |= {"dim": 2, "surroundings": [{"memory_id": f"m{turn}", "vector": "AACAPwAAAAA="}]}
    if short == "memory.embedded":
        named |= {"dim": 2, "vectors": [{"record_id": f"r{turn}", "label": 7 + turn, "vector": "AACAPwAAAAA="}]}
    properties = event_types()[wire_type(short)].schema.get("properties", {})
    return {name: value for name, value in named.items() if name in properties}


def _sample(schema: Mapping[str, Any]) -> Any:
    """The least value that has every property which its schema names."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    match kind if isinstance(kind, str) else kind[0]:
        case "object":
            return {name: _sample(part) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [_sample(schema["items"])] * schema.get("minItems", 1) if "items" in schema else []
        case "integer":
            return int(schema.get("minimum", 1)) or 1
        case "number":
            return min(0.5, schema.get("maximum", 0.5))
        case "boolean":
            return True
        case "string":
            return schema.get("const", "2026-01-05T10:00:00Z" if schema.get("maxLength") == 64 else "2026-01-05")
        case _:
            return None

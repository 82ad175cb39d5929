"""Requests of the Valence toolset about beliefs and tensions, and the facts that stages derive."""

from typing import Any

from streams.event_types import COUNT, FILLED, FLAG, NUMBER, OPTIONAL, TEXTS, TIME, UNIT, obj
from streams.events import EventType, wire_type
from streams.topics import DERIVED, MEMORY

SOURCE_TYPES = ["document", "conversation", "inference", "observation", "api", "user_input"]
ACTIONS = ["supersede_a", "supersede_b", "keep_both", "archive_both"]
BELIEF_CREATED = wire_type("valence.belief.created")
BELIEF_SUPERSEDED = wire_type("valence.belief.superseded")
BELIEF_RETRACTED = wire_type("valence.belief.retracted")
TENSION_RESOLVED = wire_type("valence.tension.resolved")
TENSION_INVESTIGATED = wire_type("valence.tension.investigated")
ENTITY_RESOLVED = wire_type("valence.entity.resolved")
TENSION_DETECTED = wire_type("valence.tension.detected")
TENSION_CLOSED = wire_type("valence.tension.closed")
BELIEF_REINFORCED = wire_type("valence.belief.reinforced")

_REQUEST = {"request_id": OPTIONAL}
CONFIDENCE: dict[str, Any] = {"type": ["number", "object", "null"]}
ENTITIES: dict[str, Any] = {"type": ["array", "null"]}
SIMILAR: dict[str, Any] = {"type": ["array", "null"], "items": obj({"belief_id": FILLED, "cosine": NUMBER})}
"""Beliefs near to this one when it was stated, as the door found them: what is near enough is the reducer's
decision."""

EVENT_TYPES = (
    EventType(
        BELIEF_CREATED,
        MEMORY.name,
        "A belief was stated: it is kept, or it confirms one that is held.",
        obj(
            {"content": FILLED},
            {
                "confidence": CONFIDENCE,
                "domain_path": TEXTS,
                "source_type": {"enum": [*SOURCE_TYPES, None]},
                "source_ref": OPTIONAL,
                "entities": ENTITIES,
                "valid_from": TIME,
                "similar": SIMILAR,
                **_REQUEST,
            },
        ),
    ),
    EventType(
        BELIEF_SUPERSEDED,
        MEMORY.name,
        "A belief was replaced by another text; the old one stays in its history.",
        obj({"old_belief_id": FILLED, "new_content": FILLED, "reason": FILLED}, {"confidence": CONFIDENCE, **_REQUEST}),
    ),
    EventType(
        BELIEF_RETRACTED,
        MEMORY.name,
        "A belief was taken back: it is archived, and no search finds it any more.",
        obj({"belief_id": FILLED}, {"reason": OPTIONAL, **_REQUEST}),
    ),
    EventType(
        TENSION_RESOLVED,
        MEMORY.name,
        "A tension was resolved: one of its beliefs gives way, both stay, or both go.",
        obj(
            {
                "tension_id": FILLED,
                "belief_a_id": FILLED,
                "belief_b_id": FILLED,
                "resolution": FILLED,
                "action": {"enum": ACTIONS},
            },
            _REQUEST,
        ),
    ),
    EventType(
        TENSION_INVESTIGATED,
        MEMORY.name,
        "An operator has taken a tension up; it stays open.",
        obj({"tension_id": FILLED, "belief_a_id": FILLED, "belief_b_id": FILLED}, _REQUEST),
    ),
    EventType(
        ENTITY_RESOLVED,
        DERIVED.name,
        "Two names are of one thing: the later entity is merged into the earlier.",
        obj({"entity_id": FILLED, "canonical_id": FILLED, "how": FILLED}),
    ),
    EventType(
        TENSION_DETECTED,
        DERIVED.name,
        "Two beliefs do not go together; a pair is told of once.",
        obj(
            {
                "tension_id": FILLED,
                "belief_a_id": FILLED,
                "belief_b_id": FILLED,
                "type": FILLED,
                "severity": FILLED,
                "description": FILLED,
                "signal": UNIT,
                "score": NUMBER,
                "materiality": NUMBER,
                "consistency_a": UNIT,
                "consistency_b": UNIT,
            },
            {"cosine": NUMBER, "model_id": OPTIONAL, "is_trained": FLAG, "suggested_action": OPTIONAL},
        ),
    ),
    EventType(
        TENSION_CLOSED,
        DERIVED.name,
        "A tension is not open any more: it was resolved, or one of its beliefs is not held any more. "
        "The tables compute it; this tells it.",
        obj(
            {
                "tension_id": FILLED,
                "belief_a_id": FILLED,
                "belief_b_id": FILLED,
                "status": FILLED,
                "resolution": FILLED,
            },
            {"action": OPTIONAL},
        ),
    ),
    EventType(
        BELIEF_REINFORCED,
        DERIVED.name,
        "Another source has said what a belief says. The reducer of the request has counted it; this tells it.",
        obj({"belief_id": FILLED, "corroboration_count": COUNT, "stated_in": FILLED}),
    ),
)

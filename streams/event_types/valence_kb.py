"""Requests of the Valence toolset about conversations, and the ageing of patterns.

Conversations are sessions, exchanges, patterns and insights.
"""

from typing import Any

from streams.event_types import FILLED, OPTIONAL, TEXT, UNIT, obj
from streams.event_types.valence import CONFIDENCE, ENTITIES, SIMILAR
from streams.events import EventType, wire_type
from streams.topics import DERIVED, MEMORY

PLATFORMS = ["claude-code", "matrix", "api", "slack"]
END_STATUSES = ["completed", "abandoned"]
ROLES = ["user", "assistant", "system"]
_REQUEST = {"request_id": OPTIONAL}

SESSION_STARTED = wire_type("valence.session.started")
SESSION_ENDED = wire_type("valence.session.ended")
EXCHANGE_ADDED = wire_type("valence.exchange.added")
PATTERN_RECORDED = wire_type("valence.pattern.recorded")
PATTERN_REINFORCED = wire_type("valence.pattern.reinforced")
INSIGHT_EXTRACTED = wire_type("valence.insight.extracted")
PATTERN_STATUS_CHANGED = wire_type("valence.pattern.status_changed")

_METADATA: dict[str, Any] = {"type": ["object", "null"]}
_TEXTS: dict[str, Any] = {"type": ["array", "null"], "items": TEXT}
_LIST: dict[str, Any] = {"type": ["array", "null"]}

EVENT_TYPES = (
    EventType(
        SESSION_STARTED,
        MEMORY.name,
        "A conversation was begun.",
        obj(
            {"platform": {"enum": PLATFORMS}},
            {"project_context": OPTIONAL, "external_room_id": OPTIONAL, "metadata": _METADATA, **_REQUEST},
        ),
    ),
    EventType(
        SESSION_ENDED,
        MEMORY.name,
        "A conversation was ended, or what is known of its end was replaced.",
        obj(
            {"session_id": FILLED},
            {"summary": OPTIONAL, "themes": _TEXTS, "status": {"enum": [*END_STATUSES, None]}, **_REQUEST},
        ),
    ),
    EventType(
        EXCHANGE_ADDED,
        MEMORY.name,
        "A turn of a conversation; its number is given in the order of the log.",
        obj({"session_id": FILLED, "role": {"enum": ROLES}, "content": FILLED}, {"tool_uses": _LIST, **_REQUEST}),
    ),
    EventType(
        PATTERN_RECORDED,
        MEMORY.name,
        "A pattern of behaviour was noticed.",
        obj({"type": FILLED, "description": FILLED}, {"evidence": _TEXTS, "confidence": UNIT, **_REQUEST}),
    ),
    EventType(
        PATTERN_REINFORCED,
        MEMORY.name,
        "A pattern was met again, at most once a session.",
        obj({"pattern_id": FILLED}, {"session_id": OPTIONAL, **_REQUEST}),
    ),
    EventType(
        INSIGHT_EXTRACTED,
        MEMORY.name,
        "An insight was drawn from a conversation: a belief whose source is the session.",
        obj(
            {"session_id": FILLED, "content": FILLED},
            {
                "domain_path": _TEXTS,
                "confidence": CONFIDENCE,
                "entities": ENTITIES,
                "similar": SIMILAR,
                "signal": OPTIONAL,
                **_REQUEST,
            },
        ),
    ),
    EventType(
        PATTERN_STATUS_CHANGED,
        DERIVED.name,
        "A pattern that was not met again for long is fading, later archived.",
        obj({"pattern_id": FILLED, "from_status": FILLED, "to_status": FILLED, "last_observed": FILLED}),
    ),
)

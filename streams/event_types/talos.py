"""Requests of the Talos toolset, and the facts that its stages derive from memories.

Requests are on the memory topic, facts on the derived one. Text travels here, never on the telemetry topic. Each fact's
id is a pure function of its input's id.
"""

from streams.event_types import FILLED, FLAG, NUMBER, OPTIONAL, TEXTS, UNIT, array, obj
from streams.events import EventType, wire_type
from streams.topics import DERIVED, MEMORY

CATEGORIES = ["insight", "observation", "friction", "reflection", "experience", "decision"]
FRICTION_CATEGORIES = ["tooling", "conceptual", "process", "environmental", "relational"]
ENTITIES_EXTRACTED = wire_type("talos.entities.extracted")
SIMILAR_FOUND = wire_type("memory.similar_found")
PATTERN_SIGNALLED = wire_type("talos.pattern.signalled")
PATTERN_DETECTED = wire_type("talos.pattern.detected")
PATTERN_DEPRECATED = wire_type("talos.pattern.deprecated")
ENTITIES_PRUNED = wire_type("talos.entities.pruned")
JOURNAL_CORRECTED = wire_type("talos.journal.corrected")
JOURNAL_RETRACTED = wire_type("talos.journal.retracted")
SIGNIFICANCE_RATED = wire_type("talos.significance")
_REQUEST = {"request_id": OPTIONAL}

EVENT_TYPES = (
    EventType(
        wire_type("talos.session.opened"),
        MEMORY.name,
        "A telemetry session was opened.",
        obj(
            {"session_id": FILLED, "goal": FILLED},
            {"persona": OPTIONAL, "protocol": OPTIONAL, "human": OPTIONAL, "defaulted": TEXTS, **_REQUEST},
        ),
    ),
    EventType(
        wire_type("talos.session.closed"),
        MEMORY.name,
        "A telemetry session was closed.",
        obj({"session_id": FILLED}, {"goal_achieved": FLAG, "summary": OPTIONAL, "skip_reflection": FLAG, **_REQUEST}),
    ),
    EventType(
        wire_type("talos.journal.written"),
        MEMORY.name,
        "A journal entry was written.",
        obj(
            {"content": FILLED, "category": {"enum": CATEGORIES}},
            {"session_id": OPTIONAL, "domain": OPTIONAL, "confidence": UNIT, "tags": TEXTS, **_REQUEST},
        ),
    ),
    EventType(
        JOURNAL_CORRECTED,
        MEMORY.name,
        "A journal entry was wrong: it should have read so. The old text ends where the new one begins.",
        obj({"entry_id": FILLED, "content": FILLED}, {"reason": OPTIONAL, **_REQUEST}),
    ),
    EventType(
        JOURNAL_RETRACTED,
        MEMORY.name,
        "A journal entry was taken back: no search finds it any more.",
        obj({"entry_id": FILLED}, {"reason": OPTIONAL, **_REQUEST}),
    ),
    EventType(
        wire_type("talos.friction.logged"),
        MEMORY.name,
        "A friction was logged.",
        obj(
            {"description": FILLED, "category": {"enum": FRICTION_CATEGORIES}},
            {"session_id": OPTIONAL, "blocking": FLAG, **_REQUEST},
        ),
    ),
    EventType(
        wire_type("talos.reflection.written"),
        MEMORY.name,
        "A reflection was written.",
        obj({"content": FILLED}, {"trigger": OPTIONAL, "session_id": OPTIONAL, **_REQUEST}),
    ),
    EventType(
        wire_type("talos.knowledge.imported"),
        MEMORY.name,
        "An operator's knowledge: sutras, protocols, personas, limitations, capabilities, and how they are related.",
        obj(
            {
                "entities": array(
                    obj({"label": FILLED, "text": FILLED}, {"properties": {"type": "object"}, "confidence": UNIT})
                )
            },
            {
                "relations": array(
                    obj({"type": FILLED, "from": FILLED, "to": FILLED}, {"properties": {"type": "object"}})
                ),
                **_REQUEST,
            },
        ),
    ),
    EventType(
        ENTITIES_EXTRACTED,
        DERIVED.name,
        "Entities and relations found in a memory.",
        obj(
            {
                "source_event_id": FILLED,
                "entities": array(
                    obj(
                        {"id": FILLED, "label": FILLED, "text": FILLED},
                        {"properties": {"type": "object"}, "confidence": UNIT},
                    )
                ),
                "relations": array(
                    obj({"type": FILLED, "from": FILLED, "to": FILLED}, {"properties": {"type": "object"}})
                ),
            },
            {"session_id": OPTIONAL},
        ),
    ),
    EventType(
        SIMILAR_FOUND,
        DERIVED.name,
        "Earlier records that say the same as this one, best first.",
        obj(
            {
                "record_id": FILLED,
                "label": FILLED,
                "similar": array(
                    obj({"record_id": FILLED, "how": {"enum": ["canonical_form", "cosine"]}, "cosine": NUMBER})
                ),
            },
            {"category": OPTIONAL, "model_id": OPTIONAL},
        ),
    ),
    EventType(
        PATTERN_SIGNALLED,
        DERIVED.name,
        "A session showed a recurring combination; three sessions make a pattern.",
        obj(
            {"signal_id": FILLED, "session_id": FILLED, "description": FILLED},
            {"indicators": array(FILLED), "evidence": array(obj({"relation": FILLED, "id": FILLED}))},
        ),
    ),
    EventType(
        PATTERN_DETECTED,
        DERIVED.name,
        "The third session has shown a signal: it is a pattern from now on, and can be searched for by its name.",
        obj({"pattern_id": FILLED, "name": FILLED, "session_id": FILLED}),
    ),
    EventType(
        PATTERN_DEPRECATED,
        DERIVED.name,
        "A pattern has not occurred for long, though there were sessions in which it could have: "
        "it matches no more until it does.",
        obj({"pattern_id": FILLED, "last_occurred_at": FILLED, "reason": FILLED}),
    ),
    EventType(
        ENTITIES_PRUNED,
        DERIVED.name,
        "Entities that are hidden from now on, because hardly anybody believes them.",
        obj({"record_ids": array(FILLED), "reason": FILLED}),
    ),
    EventType(
        SIGNIFICANCE_RATED,
        DERIVED.name,
        "How urgently what is known asks for attention, once a day.",
        obj(
            {"day": FILLED, "score": {"type": "integer", "minimum": 0}, "level": FILLED}, {"counts": {"type": "object"}}
        ),
    ),
)

"""Facts that processors publish. Each item's id is a pure function of its input's id."""

from streams.event_types import FILLED, NUMBER, OPTIONAL, UNIT, array, obj
from streams.events import EventType, wire_type
from streams.topics import DERIVED

PROGRESS = wire_type("stage.progressed")
ENTITIES_EXTRACTED = wire_type("talos.entities.extracted")
EMBEDDED = wire_type("memory.embedded")
EMBEDDING_FAILED = wire_type("memory.embedding_failed")
SIMILAR_FOUND = wire_type("memory.similar_found")
PATTERN_SIGNALLED = wire_type("talos.pattern.signalled")
PATTERN_DETECTED = wire_type("talos.pattern.detected")
PATTERN_DEPRECATED = wire_type("talos.pattern.deprecated")
ENTITIES_PRUNED = wire_type("talos.entities.pruned")
SIGNIFICANCE_RATED = wire_type("talos.significance")

_PASSAGE = obj(
    {
        "number": {"type": "integer", "minimum": 0},
        "start": {"type": "integer", "minimum": 0},
        "end": {"type": "integer", "minimum": 1},
    },
)
_OF_LONG = {
    "passages": {
        "type": "integer",
        "minimum": 1,
        "description": "Of a long text: how many of its passages have a vector, here or elsewhere.",
    },
    "passage": _PASSAGE
    | {
        "description": "The vector is of this part of the text (characters from 0, `end` not included), not of the whole."
    },
}

EVENT_TYPES = (
    EventType(PROGRESS, DERIVED.name, "A stage has processed its source up to here; the record carries no facts.", {}),
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
        EMBEDDED,
        DERIVED.name,
        "Vectors of a memory's texts and of the passages of long ones, with their token vectors, and the model that made them. "
        "What is too large for one event is several: a vector belongs to its record and passage, whichever event brings it.",
        obj(
            {
                "space": FILLED,
                "model_id": FILLED,
                "dim": {"type": "integer", "minimum": 1, "maximum": 8192},
                "trained": {"type": "boolean"},
                "vectors": array(
                    obj({"record_id": FILLED, "vector": FILLED}, {"tokens": FILLED, **_OF_LONG}),
                ),
            },
            {
                "tries": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "How often the model was asked, when it did not answer at once.",
                }
            },
        ),
    ),
    EventType(
        EMBEDDING_FAILED,
        DERIVED.name,
        "These texts get no vector of this model, or not for all of their passages: the model fails on them, or the log refuses the vectors.",
        obj({"space": FILLED, "record_ids": array(FILLED), "reason": FILLED}),
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
        "A pattern has not occurred for long, though there were sessions in which it could have: it matches no more until it does.",
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

"""Requests of the Context Graph toolset to recalibrate what it says of its results."""

from streams.event_types import FLAG, OPTIONAL, obj
from streams.events import EventType, wire_type
from streams.topics import MEMORY

THRESHOLD_RECALIBRATED = wire_type("context.threshold.recalibrated")
DOMAINS = ["Code", "Medical", "Legal", "Creative", "Research", "General"]
LEVELS = [1, 2, 3, 4]

EVENT_TYPES = (
    EventType(
        THRESHOLD_RECALIBRATED,
        MEMORY.name,
        "A level of recalibration was asked for, by a caller or by the hour; what was judged decides what it changes.",
        obj(
            {"level": {"enum": LEVELS}},
            {"domain": {"enum": [*DOMAINS, None]}, "automatic": FLAG, "request_id": OPTIONAL},
        ),
    ),
)

"""How far a stage has come, on the derived topic."""

from streams.events import EventType, wire_type
from streams.topics import DERIVED

PROGRESS = wire_type("stage.progressed")

EVENT_TYPES = (
    EventType(PROGRESS, DERIVED.name, "A stage has processed its source up to here; the record carries no facts.", {}),
)

"""Dreams: what is asked of them (memory topic), and how far each came (derived topic)."""

from typing import Any

from streams.event_types import FILLED, FLAG, OPTIONAL, obj
from streams.events import EventType, wire_type
from streams.topics import DERIVED, MEMORY

DREAM_REQUESTED = wire_type("context.dream.requested")
DREAM_ABORTED = wire_type("context.dream.aborted")
DREAM_PROGRESSED = wire_type("context.dream.progressed")
DREAM_FINISHED = wire_type("context.dream.finished")
SLEEPING = ("NREM", "REM", "Waking")
CAUSES = ("asked", "idle")
WAKE_REASONS = (
    "external_query",
    "gpu_over_budget",
    "cycle_complete",
    "manual_abort",
    "resource_pressure",
    "error",
)

_SHARE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
_REPORT: dict[str, Any] = {"type": "object"}

EVENT_TYPES = (
    EventType(
        DREAM_REQUESTED,
        MEMORY.name,
        "A dream is asked for. `activity`: of the namespace then; `ended_dream_id`: the last dream, if it had ended: "
        "another one that began since refuses this one. `cause`: a caller (`asked`), or that nobody worked (`idle`).",
        obj(
            {"activity": _SHARE},
            {"force": FLAG, "ended_dream_id": OPTIONAL, "cause": {"enum": [*CAUSES, None]}, "request_id": OPTIONAL},
        ),
    ),
    EventType(
        DREAM_ABORTED,
        MEMORY.name,
        "A dream is not wanted any more.",
        obj({"dream_id": FILLED}, {"request_id": OPTIONAL}),
    ),
    EventType(
        DREAM_PROGRESSED,
        DERIVED.name,
        "A dream came this far.",
        obj({"dream_id": FILLED, "state": {"enum": list(SLEEPING)}, "report": _REPORT}),
    ),
    EventType(
        DREAM_FINISHED,
        DERIVED.name,
        "A dream is over. Its report counts what it changed.",
        obj({"dream_id": FILLED, "wake_reason": {"enum": list(WAKE_REASONS)}, "report": _REPORT}),
    ),
)

"""Reads the analytics events of an aider-like agent, one JSON object a line.

A line is `{"event", "properties", "user_id", "time"}`. `event` becomes the event type, `user_id` the
subject and the session (the format knows no smaller unit), `time` (Unix seconds) the time, `message_send` a model call
with tokens and cost.

Many events share a second and even all their bytes, so equal lines of a file are numbered: both count, and a second
import adds nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from processors.telemetry.formats.lines import Mapped, Unreadable, filled, fingerprint, identifier, moment, read_object
from processors.telemetry.formats.transcript import Repeats, model_call, session_event, session_fields
from streams.ids import derived_id

AGENT = "agent-analytics"
SOURCE = f"thalweg:import/{AGENT}"


class Mapper:
    """Reads one file; keeps how often each line occurred."""

    def __init__(self, *, namespace: str, name: str, fallback_time: datetime) -> None:
        self._namespace = namespace
        self._name = name
        self._repeats = Repeats()

    def line(self, number: int, raw: bytes) -> list[Mapped]:
        """The event of this line."""
        entry = read_object(number, raw)
        if isinstance(entry, Unreadable):
            return [entry]
        event, time = filled(entry.get("event")), moment(entry.get("time"))
        if event is None or time is None:
            return [Unreadable(number, raw, "not an analytics event: `event` or `time` (Unix seconds) is missing")]
        given = entry.get("properties")
        properties: dict[str, Any] = given if isinstance(given, dict) else {}
        user = identifier(entry.get("user_id"))
        session_id = user or self._name
        event_id = derived_id(AGENT, session_id, self._repeats.name(fingerprint(raw)))
        call = None
        if event == "message_send":
            call = model_call(
                event_id,
                properties.get("main_model"),
                input_tokens=properties.get("prompt_tokens"),
                output_tokens=properties.get("completion_tokens"),
                cost_usd=properties.get("cost"),
            )
        return [
            session_event(
                SOURCE,
                self._namespace,
                event_id,
                time,
                session_id,
                event,
                subject=user,
                payload=entry,
                session=session_fields(AGENT, model=call and call["model"]),
                model_calls=[call] if call else None,
            )
        ]

    def end(self) -> list[Mapped]:
        """Nothing waits in this format."""
        return []

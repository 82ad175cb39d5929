"""Reads files of structured CloudEvents: one JSON object a line, or an array of them.

The events keep their own id and source, so their identity is the producer's. They pass the same checks as a record of
a foreign producer; what those refuse, and types that this program derives itself, are unreadable with the reason.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from processors.telemetry.formats.lines import Mapped, Unreadable, fit, read_json
from streams.codec import STRUCTURED, decode
from streams.errors import Poison
from streams.events import event_types
from streams.log.base import Record
from streams.redaction import excerpt
from streams.topics import MEMORY, TELEMETRY

ACCEPTED = (MEMORY.name, TELEMETRY.name)
_HEADERS = (("content-type", STRUCTURED.encode()),)


class Mapper:
    """Reads one file; keeps nothing."""

    def __init__(self, *, namespace: str, name: str, fallback_time: datetime) -> None:
        self._key = namespace.encode()
        self._fallback_ms = int(fallback_time.timestamp() * 1000)

    def line(self, number: int, raw: bytes) -> list[Mapped]:
        """The events of this line, or of a whole document given as one line."""
        value = read_json(number, raw)
        if isinstance(value, Unreadable):
            return [value]
        if not isinstance(value, list):
            return self._events(number, raw, value)
        return [mapped for item in value for mapped in self._events(number, orjson.dumps(item), item)]

    def end(self) -> list[Mapped]:
        """Nothing waits in this format."""
        return []

    def _events(self, number: int, raw: bytes, value: Any) -> list[Mapped]:
        if not isinstance(value, dict) or not isinstance(value.get("type"), str) or "specversion" not in value:
            return [
                Unreadable(
                    number, raw, "not a structured CloudEvent: an object with `specversion`, `id`, `source`, `type`"
                )
            ]
        known = event_types().get(value["type"])
        if known is None:
            return [Unreadable(number, raw, f"the event type {excerpt(value['type'])!r} is not known")]
        if known.topic not in ACCEPTED:
            return [Unreadable(number, raw, f"events of the type {value['type']!r} are derived here and not imported")]
        record = Record(known.topic, 0, 0, self._fallback_ms, self._key, orjson.dumps(fit(value)), _HEADERS)
        try:
            return [logged.event for logged in decode(record)]
        except Poison as poison:
            return [Unreadable(number, raw, poison.message)]

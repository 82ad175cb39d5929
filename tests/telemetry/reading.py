"""What the tests of the readers share: a file read to its end, and the events found in it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from processors.telemetry.formats.catalogue import format_of
from processors.telemetry.formats.lines import Mapped, Unreadable
from streams.codec import decode, encode, validate
from streams.events import Event, event_types
from streams.log.base import Record

FIXTURES = Path(__file__).with_name("fixtures")
NAMESPACE = "ana"
MODIFIED = datetime(2026, 5, 1, tzinfo=UTC)


def read(kind: str, lines: Iterable[Any], *, name: str = "file") -> list[Mapped]:
    """All that a file of these lines gives; a line is bytes, or an object to be written as JSON."""
    mapper = format_of(kind).mapper(namespace=NAMESPACE, name=name, fallback_time=MODIFIED)
    raw = [line if isinstance(line, bytes) else orjson.dumps(line) for line in lines]
    return [item for number, line in enumerate(raw, 1) for item in mapper.line(number, line)] + list(mapper.end())


def read_fixture(kind: str, file: str) -> list[Mapped]:
    """All that a fixture gives."""
    path = FIXTURES / file
    return read(kind, path.read_bytes().splitlines(), name=path.stem)


def events_of(mapped: Iterable[Mapped]) -> list[Event]:
    """The events; each is one that the other side accepts."""
    found = [item for item in mapped if isinstance(item, Event)]
    for event in found:
        assert len(decode(_logged(event))) == 1
    return found


def _logged(event: Event) -> Record:
    topic = event_types()[event.type].topic
    validate(event.type, event.data, topic)
    sent = encode(topic, event)
    return Record(topic, 0, 0, 0, sent.key, sent.value, sent.headers)


def unreadable_of(mapped: Iterable[Mapped]) -> list[Unreadable]:
    """What could not be read."""
    return [item for item in mapped if isinstance(item, Unreadable)]


def parts(mapped: Iterable[Mapped], name: str) -> list[dict[str, Any]]:
    """All tool calls, tool results or model calls, in order."""
    return [part for event in events_of(mapped) for part in event.data.get(name, ())]

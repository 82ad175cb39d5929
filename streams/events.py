"""The event as every part of the program sees it, and the registry of event types."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from streams.ids import event_key
from streams.positions import Position

CONNECTION = "thalwegconnection"
"""The extension attribute that names the connection over which an event was written."""


class Event(msgspec.Struct, frozen=True):
    """A CloudEvent. `namespace` is the record's key; `data` is plain JSON; `time` is UTC.

    A struct rather than a dataclass, because a replay makes millions of them: it takes a tenth of the time.
    """

    id: str
    source: str
    type: str
    namespace: str
    time: datetime
    data: Mapping[str, Any]
    subject: str | None = None
    extensions: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def key(self) -> str:
        """The identity under which the event is applied once."""
        return event_key(self.namespace, self.source, self.id)

    @property
    def connection(self) -> str | None:
        """The connection over which it was written; None where the record names none."""
        return self.extensions.get(CONNECTION) or None

    def changed(self, **values: Any) -> Event:
        """The same event with other values in these fields."""
        return msgspec.structs.replace(self, **values)


class LoggedEvent(msgspec.Struct, frozen=True):
    """An event and its position. `index` counts the observations of one record, `key` is the event's identity."""

    event: Event
    position: Position
    index: int
    digest: int
    key: str


@dataclass(frozen=True)
class EventType:
    """A kind of event: its wire type, its topic and the JSON Schema of its `data`."""

    type: str
    topic: str
    summary: str
    schema: Mapping[str, Any]


def wire_type(short: str, major: int = 1) -> str:
    """`talos.session.opened` -> `thalweg.talos.session.opened.v1`."""
    return f"thalweg.{short}.v{major}"


@cache
def event_types() -> Mapping[str, EventType]:
    """Every event type by its wire type, from all modules of `streams/event_types/`."""
    from streams import event_types as package

    found: dict[str, EventType] = {}
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        for event_type in importlib.import_module(module.name).EVENT_TYPES:
            if event_type.type in found:
                raise AssertionError(f"two event types are called {event_type.type}")
            found[event_type.type] = event_type
    return found

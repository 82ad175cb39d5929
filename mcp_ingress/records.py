"""What every call leaves on the log: its invocation record, which holds no bodies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from mcp_ingress.call import SOURCE, ClientConnection
from mcp_ingress.tool import Tool
from streams.clock import Clock
from streams.event_types.invocations import TOOL_INVOKED
from streams.events import Event
from streams.ids import uuid7
from streams.redaction import excerpt
from streams.topics import INVOCATIONS

MAX_NAME = 128
_ID = re.compile(r"[\w.:@/+-]{1,128}")


@dataclass
class Invocation:
    """One call while it runs. `outcome` is `ok` unless `failed` says otherwise."""

    name: str
    tool: Tool | None
    namespace: str
    connection: ClientConnection
    arguments: Any
    clock: Clock
    request_id: str | None = None
    outcome: str = "ok"
    error_code: str | None = None
    output_bytes: int | None = None
    session_id: str | None = None
    """The session that the call belongs to."""
    is_minimal: bool = False
    """Leave nothing but the tool's name and what came of the call."""
    started: float = field(init=False)
    at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock.monotonic()
        self.at = self.clock.now()

    def failed(self, outcome: str, error_code: str) -> None:
        self.outcome, self.error_code = outcome, error_code

    @property
    def duration_ms(self) -> float:
        """Milliseconds since the call began."""
        return round((self.clock.monotonic() - self.started) * 1000, 3)

    def record(self) -> tuple[str, Event]:
        """The topic and the event of the call, once it has ended."""
        if self.is_minimal:
            return INVOCATIONS.name, self.event(TOOL_INVOKED, {"tool": self.name, "outcome": self.outcome}, None)
        named = named_session(self.arguments) or self.session_id
        return INVOCATIONS.name, self.event(TOOL_INVOKED, self._invocation(named), named)

    def event(self, kind: str, data: Mapping[str, Any], session_id: str | None) -> Event:
        """An event of the time at which the call began."""
        return Event(str(uuid7()), SOURCE, kind, self.namespace, self.at, data, session_id)

    def _invocation(self, session_id: str | None) -> dict[str, Any]:
        return {
            "tool": _plain(self.name) or "?",
            "toolset": self.tool.toolset if self.tool else None,
            "request_id": self.request_id,
            "session_id": session_id,
            "client": _plain(excerpt(self.connection.client or "", MAX_NAME)) or None,
            "outcome": self.outcome,
            "error_code": self.error_code,
            "duration_ms": self.duration_ms,
            "input_bytes": _size(self.arguments),
            "output_bytes": self.output_bytes,
        }


def session_of(arguments: Any, connection: ClientConnection, is_session_id: Callable[[str], bool]) -> str | None:
    """The session that a call belongs to; None when there is none.

    It is the one that the call names (None if that is malformed), else the connection's last open one.
    """
    named = arguments.get("session_id") if isinstance(arguments, Mapping) else None
    if named is None:
        return connection.open_session_id
    return named if isinstance(named, str) and is_session_id(named) else None


def named_session(arguments: Any) -> str | None:
    """The session that a call names, of any toolset; None for what cannot be an id."""
    named = arguments.get("session_id") if isinstance(arguments, Mapping) else None
    return named if isinstance(named, str) and _ID.fullmatch(named) else None


def _plain(text: str) -> str:
    """A name from outside, short and printable."""
    return "".join(character for character in text[:MAX_NAME] if character.isprintable())


def _size(arguments: Any) -> int | None:
    try:
        return len(orjson.dumps(arguments)) if arguments is not None else 0
    except TypeError:  # not JSON (a lone surrogate, a huge integer): refused, and without a size
        return None

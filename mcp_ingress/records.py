"""What a call leaves on the log: its invocation record, and `session.tool_call` when it belongs to a session. No bodies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from mcp_ingress.gateway import SOURCE, Connection
from mcp_ingress.tool import Tool
from processors.talos.rules.identifiers import is_session_id
from streams.clock import Clock
from streams.event_types.invocations import TOOL_INVOKED
from streams.events import Event, wire_type
from streams.ids import uuid7
from streams.redaction import excerpt
from streams.topics import INVOCATIONS, TELEMETRY

SESSION_TOOL_CALL = wire_type("session.tool_call")
MAX_NAME = 128
_ID = re.compile(r"[\w.:@/+-]{1,128}")


@dataclass
class Invocation:
    """One call while it runs. `outcome` is `ok` unless `failed` says otherwise."""

    name: str
    tool: Tool | None
    namespace: str
    connection: Connection
    arguments: Any
    clock: Clock
    request_id: str | None = None
    outcome: str = "ok"
    error_code: str | None = None
    output_bytes: int | None = None
    is_minimal: bool = False
    """Leave nothing but the tool's name and what came of the call."""
    started: float = field(init=False)
    at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock.monotonic()
        self.at = self.clock.now()

    def failed(self, outcome: str, error_code: str) -> None:
        self.outcome, self.error_code = outcome, error_code

    def events(self) -> Iterator[tuple[str, Event]]:
        """The (topic, event) pairs, once the call has ended."""
        if self.is_minimal:
            yield INVOCATIONS.name, self._event(TOOL_INVOKED, {"tool": self.name, "outcome": self.outcome}, None)
            return
        duration_ms = round((self.clock.monotonic() - self.started) * 1000, 3)
        session_id = session_of(self.arguments, self.connection)
        named = named_session(self.arguments) or session_id
        yield INVOCATIONS.name, self._event(TOOL_INVOKED, self._invocation(duration_ms, named), named)
        if session_id is not None and self.tool is not None and self.outcome != "rate_limited":
            yield TELEMETRY.name, self._event(SESSION_TOOL_CALL, self._tool_call(duration_ms, session_id), session_id)

    def _event(self, kind: str, data: Mapping[str, Any], session_id: str | None) -> Event:
        return Event(str(uuid7()), SOURCE, kind, self.namespace, self.at, data, session_id)

    def _invocation(self, duration_ms: float, session_id: str | None) -> dict[str, Any]:
        return {
            "tool": _plain(self.name) or "?",
            "toolset": self.tool.toolset if self.tool else None,
            "request_id": self.request_id,
            "session_id": session_id,
            "client": _plain(excerpt(self.connection.client or "", MAX_NAME)) or None,
            "outcome": self.outcome,
            "error_code": self.error_code,
            "duration_ms": duration_ms,
            "input_bytes": _size(self.arguments),
            "output_bytes": self.output_bytes,
        }

    def _tool_call(self, duration_ms: float, session_id: str) -> dict[str, Any]:
        attributes = {
            "talos.session.id": session_id,
            "talos.tool.name": self.name,
            "talos.tool.success": self.outcome == "ok",
            "talos.tool.duration_ms": duration_ms,
        }
        if self.error_code is not None:
            attributes["talos.tool.error_type"] = self.error_code
        return {"trace_id": f"sess-{session_id}", "span_id": uuid7().hex[-16:], "attributes": attributes}


def session_of(arguments: Any, connection: Connection) -> str | None:
    """The session a call belongs to: the one it names, else the one last opened on the connection; None for a malformed name."""
    named = arguments.get("session_id") if isinstance(arguments, Mapping) else None
    if named is None:
        return connection.open_session_id
    return named if isinstance(named, str) and is_session_id(named) else None


def named_session(arguments: Any) -> str | None:
    """The session of whatever toolset that a call names; None for what cannot be an id."""
    named = arguments.get("session_id") if isinstance(arguments, Mapping) else None
    return named if isinstance(named, str) and _ID.fullmatch(named) else None


def _plain(text: str) -> str:
    """A name from outside, short and printable."""
    return "".join(character for character in text[:MAX_NAME] if character.isprintable())


def _size(arguments: Any) -> int | None:
    try:
        return len(orjson.dumps(arguments)) if arguments is not None else 0
    except TypeError:  # what is no JSON (a lone surrogate, a huge integer) was refused and has no size
        return None

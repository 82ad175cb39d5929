"""What the Talos tools share: checks of arguments, the telemetry they emit, parts of their schemas."""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Mapping
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.services import Published
from mcp_ingress.toolsets.talos.queries import session_exists
from processors.memory.read.earlier import Memory
from processors.talos.rules.identifiers import SESSION_ID_FORMAT, is_session_id
from streams.errors import LogUnavailable, Refused, Unavailable
from streams.events import Event, wire_type
from streams.ids import derived_id
from streams.topics import MEMORY, TELEMETRY

IDS_SCHEMA: Mapping[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"type": {"type": "string"}, "id": {"type": "string"}},
        "required": ["type", "id"],
    },
}
COUNT_SCHEMA: Mapping[str, Any] = {"type": ["integer", "null"], "minimum": 0}


def checked_session_id(session_id: str | None) -> str | None:
    """The session id, when one is given; Refused `invalid_session_id` with format guidance otherwise."""
    if session_id is not None and not is_session_id(session_id):
        message = f"The session_id {session_id[:160]!r} is not of the form {SESSION_ID_FORMAT}."
        raise Refused(message, code="invalid_session_id", expected_format=SESSION_ID_FORMAT)
    return session_id


def category_schema(valid: list[str]) -> dict[str, Any]:
    """A category argument; the door refuses another one with `unknown_category` and the valid options."""
    return {"type": "string", "enum": valid, "x-error-code": "unknown_category"}


def telemetry(call: Call, name: str, session_id: str | None, attributes: Mapping[str, Any]) -> tuple[str, Event]:
    """A telemetry event: ids, counts and enums under `talos.`. Its id depends on the request alone."""
    named = {"session.id": session_id, **attributes}
    data: dict[str, Any] = {"attributes": {f"talos.{key}": value for key, value in named.items() if value is not None}}
    if session_id is not None:
        data["trace_id"] = f"sess-{session_id}"
    identity = derived_id(call.namespace, call.request_id, wire_type(name))
    data["span_id"] = hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()
    return TELEMETRY.name, call.event(name, data, subject=session_id).changed(id=identity)


async def publish_entry(
    call: Call, event: Event, name: str, attributes: Mapping[str, Any], states: Memory | None = None
) -> Published:
    """Put an entry and its telemetry event of that name on the log, in one publish. `states`: as of `Call.publish`."""
    return await call.publish((MEMORY.name, event), telemetry(call, name, event.subject, attributes), states=states)


async def emit(call: Call, published: Published, *events: tuple[str, Event]) -> Published:
    """Add telemetry to a write that is on the log already; it alone never makes the write fail or late."""
    try:
        emitted = await asyncio.wait_for(
            call.publish(*events), writes.time_left(call, call.services.limits.publish_timeout_s)
        )
    except (LogUnavailable, TimeoutError):
        return published
    return Published(published.freshness.merged(emitted.freshness), published.spooled)


async def unknown_session_warnings(call: Call, session_id: str | None) -> list[str]:
    """A warning when the session is surely unknown, which is never an error.

    There is none while the store is behind or down.
    """
    if session_id is None or session_id == call.connection.open_session_id:
        return []
    if not call.holds(call.read_token.on_topic(MEMORY.name)):
        return []
    try:
        is_known = await call.read(functools.partial(session_exists, namespace=call.namespace, session_id=session_id))
    except Unavailable:
        return []
    return [] if is_known else [f"There is no session {session_id}: the entry is kept, but linked to no session."]

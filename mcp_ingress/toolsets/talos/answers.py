"""What the Talos tools share: checks of arguments, decisions, the telemetry they emit, the shapes of their answers."""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Mapping
from typing import Any

from mcp_ingress.gateway import ANSWER_MARGIN_S, Call, Published
from mcp_ingress.spool import SPOOLED
from mcp_ingress.toolsets.talos.queries import session_exists
from processors.talos.rules.identifiers import SESSION_ID_FORMAT, is_session_id
from streams.errors import LogUnavailable, Refused, Unavailable
from streams.events import Event, wire_type
from streams.ids import derived_id
from streams.positions import Freshness
from streams.topics import MEMORY, TELEMETRY

MAX_TEXT = 100_000
"""Characters of one text argument."""

IDS_SCHEMA: Mapping[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"type": {"type": "string"}, "id": {"type": "string"}},
        "required": ["type", "id"],
    },
}
COUNT_SCHEMA: Mapping[str, Any] = {"type": ["integer", "null"], "minimum": 0}


def output_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An answer's schema: the tool's own fields, and those of a pending or degraded answer."""
    shared = {
        "success": {"type": "boolean"},
        "freshness": {"type": "object", "description": "Pass it back as _meta thalweg/freshness to read this write."},
        "pending": {
            "type": "boolean",
            "description": "Accepted, not applied yet: what depends on stored state is null.",
        },
        "stale": {"type": "boolean", "description": "The answer may lack the latest writes."},
        "degraded": {"type": "boolean"},
        "spooled": {"type": "boolean"},
        "message": {"type": "string"},
        "warnings": {"type": "array", "items": {"type": "string"}},
    }
    return {"type": "object", "properties": {**properties, **shared}, "required": ["success"]}


def checked_session_id(session_id: str | None) -> str | None:
    """The session id, when one is given; Refused `invalid_session_id` with format guidance otherwise."""
    if session_id is not None and not is_session_id(session_id):
        message = f"The session_id {session_id[:160]!r} is not of the form {SESSION_ID_FORMAT}."
        raise Refused(message, code="invalid_session_id", expected_format=SESSION_ID_FORMAT)
    return session_id


def checked_text(arguments: Mapping[str, Any], name: str, *, code: str | None = None) -> str:
    """The text argument of that name. Refused when it is blank or longer than `MAX_TEXT`."""
    text: str = arguments[name]
    if not text.strip():
        raise Refused(f"The argument `{name}` is blank; it needs some text.", code=code)
    if len(text) > MAX_TEXT:
        raise Refused(f"The argument {name!r} has {len(text)} characters; at most {MAX_TEXT} are accepted.")
    return text


def category_schema(valid: list[str]) -> dict[str, Any]:
    """A category argument; the door refuses another one with `unknown_category` and the valid options."""
    return {"type": "string", "enum": valid, "x-error-code": "unknown_category"}


def request(call: Call, short_type: str, fields: Mapping[str, Any]) -> Event:
    """The memory event of this call: the fields that are given, and the request id under which it is decided."""
    given = {name: value for name, value in fields.items() if value is not None}
    return call.event(short_type, {**given, "request_id": call.request_id}, subject=given.get("session_id"))


def telemetry(call: Call, name: str, session_id: str | None, attributes: Mapping[str, Any]) -> tuple[str, Event]:
    """A telemetry event: ids, counts and enums under `talos.`; its id depends on the request only, as counts may change."""
    named = {"session.id": session_id, **attributes}
    data: dict[str, Any] = {"attributes": {f"talos.{key}": value for key, value in named.items() if value is not None}}
    if session_id is not None:
        data["trace_id"] = f"sess-{session_id}"
    identity = derived_id(call.namespace, call.request_id, wire_type(name))
    data["span_id"] = hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()
    return TELEMETRY.name, call.event(name, data, subject=session_id).changed(id=identity)


def on_topic(freshness: Freshness, topic: str) -> Freshness:
    """The part of a token that lies on one topic."""
    return Freshness({at: offset for at, offset in freshness if at.topic == topic})


async def decided(call: Call, published: Published, session_id: str) -> Mapping[str, Any] | None:
    """The result that the reducer gave this request about the session; None while that is not known.

    Raises Refused with the reducer's code when it refused, Unavailable when the store is down.
    """
    outcome = await call.outcome(published)
    if outcome is None:
        return None
    if outcome.status == "refused":
        raise Refused(outcome.message or "The request was refused.", code=outcome.code, **outcome.result)
    if outcome.result.get("session_id") != session_id:
        raise Refused("The request id was used before, for another call; leave it out or choose a new one.")
    return outcome.result


async def emit(call: Call, published: Published, *events: tuple[str, Event]) -> Published:
    """Add telemetry to a write that is on the log already; it alone never makes the write fail or late."""
    try:
        emitted = await asyncio.wait_for(call.publish(*events), time_left(call, call.gateway.limits.publish_timeout_s))
    except (LogUnavailable, TimeoutError):
        return published
    return Published(published.freshness.merged(emitted.freshness), published.spooled)


async def caught_up(call: Call, published: Published, stage: str) -> bool:
    """Whether the stage came as far as this write within the wait for writes."""
    if published.spooled:
        return False
    token = on_topic(published.freshness, MEMORY.name)
    return await call.applied(token, timeout_s=time_left(call, call.gateway.limits.write_wait_s), stages=[stage])


def time_left(call: Call, limit_s: float) -> float:
    """Seconds that a wait may take: at most `limit_s`, and never into the time that the answer itself needs."""
    return min(limit_s, max(0.0, call.deadline - call.clock.monotonic() - ANSWER_MARGIN_S))


async def unknown_session_warnings(call: Call, session_id: str | None) -> list[str]:
    """A line when the session is surely unknown: never an error, and nothing while the store is behind or down."""
    if session_id is None or session_id == call.connection.open_session_id:
        return []
    if not call.holds(on_topic(call.wanted, MEMORY.name)):
        return []
    try:
        is_known = await call.read(functools.partial(session_exists, namespace=call.namespace, session_id=session_id))
    except Unavailable:
        return []
    return [] if is_known else [f"There is no session {session_id}: the entry is kept, but linked to no session."]


def written(
    published: Published,
    ids: Mapping[str, Any],
    fields: Mapping[str, Any],
    *,
    pending: bool = False,
    problem: Unavailable | None = None,
    warnings: list[str] | None = None,
) -> dict[str, Any]:
    """A write's answer: the ids and the token always; degraded when the log or the store did not answer."""
    extras: dict[str, Any] = {"warnings": warnings} if warnings else {}
    token = published.freshness.to_json()
    if published.spooled:
        return {
            "success": False,
            "degraded": True,
            "message": SPOOLED,
            **ids,
            "freshness": token,
            "spooled": True,
            **extras,
        }
    if problem is not None:
        message = (
            f"{problem.message} The write is accepted and will be applied: do not send it again. The session continues."
        )
        return {"success": False, "degraded": True, "message": message, **ids, "freshness": token, **extras}
    if pending:
        extras["pending"] = True
    return {"success": True, **ids, **fields, "freshness": token, **extras}

"""The write protocol of every toolset: request, publish, await the decision, answer.

A tool that writes makes one event (`request`), puts it on the log (`publish`), waits for what the reducer decided
(`decided`) and for stages (`caught_up`), and answers ids and freshness token in any case (`written`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import duckdb

from mcp_ingress.call import ANSWER_MARGIN_S, Call
from mcp_ingress.services import Published
from mcp_ingress.spool import SPOOLED
from streams.errors import Refused, Unavailable
from streams.events import Event
from streams.topics import MEMORY

State = TypeVar("State")
MAX_TEXT = 100_000
"""Characters of one text argument."""
ACCEPTED = "The write is accepted and will be applied: do not send it again. The session continues."

FRESHNESS_FIELDS: Mapping[str, Any] = {
    "freshness": {"type": "object", "description": "Pass it back as _meta thalweg/freshness to read this write."},
    "pending": {
        "type": "boolean",
        "description": "Accepted, not applied yet: what depends on stored state is null.",
    },
    "stale": {"type": "boolean", "description": "The answer may lack the latest writes."},
}
"""What an answer says of how far the store is, as JSON Schemas by name."""
NOTE_FIELDS: Mapping[str, Any] = {
    "spooled": {"type": "boolean"},
    "message": {"type": "string"},
    "warnings": {"type": "array", "items": {"type": "string"}},
}
"""What else a write's answer may say, as JSON Schemas by name."""


def output_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An answer's schema: the tool's own fields, and those of a pending or degraded answer."""
    flag = {"type": "boolean"}
    shared = {"success": flag, **FRESHNESS_FIELDS, "degraded": flag, **NOTE_FIELDS}
    return {"type": "object", "properties": {**properties, **shared}, "required": ["success"]}


def invalid(
    message: str, parameter: str, allowed: Any = None, *, code: str | None = None, reason: str | None = None
) -> Refused:
    """The refusal of an argument's value; `details` names the argument and what it may be."""
    details = {"parameter": parameter, "allowed": allowed}
    return Refused(message, code=code, reason=reason, field=parameter, details=details)


def checked_text(
    arguments: Mapping[str, Any], name: str, *, code: str | None = None, most: int | None = MAX_TEXT
) -> str:
    """The required text of that name. Raises Refused when it is blank or longer than `most` characters."""
    text: str = arguments[name]
    if not text.strip():
        raise invalid(
            f"The argument `{name}` is blank; it needs some text.", name, "some text", code=code, reason="missing"
        )
    if most is not None and len(text) > most:
        message = f"The argument `{name}` has {len(text)} characters; at most {most} are accepted."
        raise invalid(message, name, most, reason="range")
    return text


def request(call: Call, short_type: str, fields: Mapping[str, Any], *, subject: str | None = None) -> Event:
    """The memory event of this call.

    It carries the fields that are not None, and the request id under which it is decided.
    """
    return call.event(short_type, {**_without_none(fields), "request_id": call.request_id}, subject=subject)


def with_findings(request: Event, findings: Mapping[str, Any]) -> Event:
    """The request with what the node adds from its models and its store.

    The id stays that of the request, because the same call repeated may find something else.
    """
    return request.changed(data={**request.data, **_without_none(findings)})


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


async def publish(call: Call, *events: Event) -> Published:
    """Put memory events on the log, in order. Raises what `Call.publish` raises."""
    return await call.publish(*((MEMORY.name, event) for event in events))


async def decided(call: Call, published: Published, **identity: str) -> Mapping[str, Any] | None:
    """The result that the reducer gave this request; None while that is not known.

    `identity`: fields of the result by which this call knows its own. Raises Refused with the reducer's code when it
    refused, and when the request id was another call's; Unavailable when the store is down.
    """
    outcome = await call.outcome(published)
    if outcome is None:
        return None
    if outcome.status == "refused":
        raise Refused(outcome.message or "The request was refused.", code=outcome.code, **outcome.result)
    if any(outcome.result.get(name) != value for name, value in identity.items()):
        message = "The request id was used before, for another call, which stands; leave it out or choose a new one."
        raise invalid(message, "_meta.thalweg/request_id", dict(outcome.result), reason="conflict")
    return outcome.result


async def decision(
    call: Call, published: Published, **identity: str
) -> tuple[Mapping[str, Any] | None, Unavailable | None]:
    """As `decided`, but a store that is down is the second value: for a tool that answers degraded then."""
    try:
        return await decided(call, published, **identity), None
    except Unavailable as error:
        return None, error


async def decision_and_state(
    call: Call,
    published: Published,
    query: Callable[[duckdb.DuckDBPyConnection], State],
    waits: Sequence[Awaitable[bool]],
    *,
    needs_waits: bool = False,
    **identity: str,
) -> tuple[Mapping[str, Any] | None, State | None, Unavailable | None]:
    """As `decision`, and what `query` reads of the store once the decision and the waits have ended.

    The state is None while there is no decision, and with `needs_waits` also when a wait ended without success.
    """
    result, state = None, None
    try:
        result, *successes = await asyncio.gather(decided(call, published, **identity), *waits)
        if result is not None and (all(successes) or not needs_waits):
            state = await call.read(query)
    except Unavailable as error:
        return result, state, error
    return result, state, None


async def caught_up(call: Call, published: Published, stage: str) -> bool:
    """Whether the stage came as far as this write within the wait for writes."""
    if published.spooled:
        return False
    token = published.freshness.on_topic(MEMORY.name)
    return await call.applied(token, timeout_s=time_left(call, call.services.limits.write_wait_s), stages=[stage])


def time_left(call: Call, limit_s: float) -> float:
    """How many seconds a wait may take, at most `limit_s`.

    It leaves free the time that the answer itself needs.
    """
    return min(limit_s, max(0.0, call.deadline - call.clock.monotonic() - ANSWER_MARGIN_S))


def written(
    published: Published,
    own: Mapping[str, Any],
    state: Mapping[str, Any] | None = None,
    *,
    pending: bool = False,
    problem: Unavailable | None = None,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """A write's answer, with its freshness token.

    `own`: what the request itself says (ids, objects), answered always. `state`: what the store says, left out while
    the log is down (spooled) or the store is (`problem`).
    """
    notes: dict[str, Any] = {"freshness": published.freshness.to_json()}
    if published.spooled:
        notes["spooled"] = True
    if warnings:
        notes["warnings"] = list(warnings)
    message = None if problem is None else f"{problem.message} {ACCEPTED}"
    if published.spooled or message:
        return {"success": False, "degraded": True, "message": message or SPOOLED, **own, **notes}
    if pending:
        notes["pending"] = True
    return {"success": True, **own, **(state or {}), **notes}

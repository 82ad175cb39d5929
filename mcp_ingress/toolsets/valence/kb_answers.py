"""What the conversation tools share: checks of arguments, decisions, the shapes of their answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mcp_ingress.gateway import Call, Published
from mcp_ingress.toolsets.talos.answers import MAX_TEXT, output_schema, request, written
from processors.valence.rules.identifiers import as_uuid
from streams.clock import format_time
from streams.errors import Refused, Unavailable
from streams.event_types.valence_kb import END_STATUSES
from streams.events import Event
from streams.topics import MEMORY

MAX_LIMIT = 100
MAX_EXCHANGES = 1000
STATUSES = ["active", *END_STATUSES]
_OF_A_TRANSCRIPT = re.compile(r"/[\w.:-]{1,200}")

TEXT_OR_NULL: Mapping[str, Any] = {"type": ["string", "null"]}
COUNT_OR_NULL: Mapping[str, Any] = {"type": ["integer", "null"], "minimum": 0}
TOTAL: Mapping[str, Any] = {"type": "integer", "minimum": 0, "description": "Of all matches, whatever the limit."}
_TEXTS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": True,
    }


SESSION_SCHEMA = _object(
    {
        "id": {"type": "string"},
        "platform": TEXT_OR_NULL,
        "project_context": TEXT_OR_NULL,
        "status": {"type": "string", "enum": STATUSES},
        "summary": TEXT_OR_NULL,
        "themes": _TEXTS,
        "started_at": {"type": "string"},
        "ended_at": TEXT_OR_NULL,
        "claude_session_id": TEXT_OR_NULL,
        "external_room_id": TEXT_OR_NULL,
        "metadata": {"type": "object"},
        "created_at": {"type": "string"},
        "exchange_count": COUNT_OR_NULL,
        "insight_count": COUNT_OR_NULL,
    }
)
EXCHANGE_SCHEMA = _object(
    {
        "id": {"type": "string"},
        "session_id": {"type": "string"},
        "sequence": {"type": ["integer", "null"], "minimum": 1},
        "role": {"type": "string"},
        "content": {"type": "string"},
        "created_at": {"type": "string"},
        "tokens_approx": {"type": "integer", "minimum": 0},
        "tool_uses": {"type": "array"},
    }
)
PATTERN_SCHEMA = _object(
    {
        "id": {"type": "string"},
        "type": {"type": "string"},
        "description": {"type": "string"},
        "evidence": _TEXTS,
        "occurrence_count": {"type": "integer", "minimum": 1},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "status": {"type": "string"},
        "first_observed": {"type": "string"},
        "last_observed": {"type": "string"},
    }
)


def invalid(message: str, parameter: str, allowed: Any = None) -> Refused:
    """The refusal of an argument's value: what it may be is in `details`."""
    return Refused(message, code="INVALID_PARAMS", details={"parameter": parameter, "allowed": allowed})


def checked_text(arguments: Mapping[str, Any], name: str) -> str:
    """The required text of that name. Refused when it is blank or longer than `MAX_TEXT`."""
    text: str = arguments[name]
    if not text.strip():
        raise invalid(f"The argument `{name}` is blank; it needs some text.", name, "some text")
    if len(text) > MAX_TEXT:
        raise invalid(
            f"The argument `{name}` has {len(text)} characters; at most {MAX_TEXT} are accepted.", name, MAX_TEXT
        )
    return text


def checked_id(arguments: Mapping[str, Any], name: str) -> str:
    """The required UUID of that name, in its usual form. Refused when it is none."""
    found = as_uuid(arguments[name].strip())
    if found is None:
        raise invalid(f"The argument `{name}` is {arguments[name][:60]!r}, which is no UUID.", name, "a UUID")
    return found


def checked_conversation(arguments: Mapping[str, Any]) -> str:
    """The id of a session to read: a UUID, with a suffix when it is a sub-agent's transcript."""
    given: str = arguments["session_id"].strip()
    main, suffix = given[:36], given[36:]
    if as_uuid(main) is not None and _OF_A_TRANSCRIPT.fullmatch(suffix):
        return given
    return checked_id(arguments, "session_id")


def checked_limit(arguments: Mapping[str, Any], name: str = "limit", most: int = MAX_LIMIT) -> int:
    """The limit, lowered to `most`. Refused below 1."""
    limit: int = arguments[name]
    if limit < 1:
        raise invalid(
            f"The argument `{name}` is {limit}; 1 to {most} can be asked for.", name, {"minimum": 1, "maximum": most}
        )
    return min(limit, most)


def event(call: Call, short_type: str, arguments: Mapping[str, Any]) -> Event:
    """The event of this call: the arguments that are given, and the request id under which it is decided."""
    return request(call, short_type, arguments)


async def publish(call: Call, asked: Event) -> Published:
    """Put the request on the log."""
    return await call.publish((MEMORY.name, asked))


async def decided(
    call: Call, published: Published, **identity: str
) -> tuple[Mapping[str, Any] | None, Unavailable | None]:
    """What the reducer decided about this request, None while that is not known; and why the store did not answer.

    Raises Refused with the reducer's code when it refused, and when the request id was another call's: with the id
    of what that call has made.
    """
    try:
        outcome = await call.outcome(published)
    except Unavailable as error:
        return None, error
    if outcome is None:
        return None, None
    if outcome.status == "refused":
        raise Refused(outcome.message or "The request was refused.", code=outcome.code, **outcome.result)
    for name, wanted in identity.items():
        if outcome.result.get(name) != wanted:
            message = (
                "The request id was used before, for another call, which stands; leave it out or choose a new one."
            )
            raise invalid(message, "_meta.thalweg/request_id", dict(outcome.result))
    return outcome.result, None


def answered(
    published: Published,
    ids: Mapping[str, Any],
    fields: Mapping[str, Any],
    *,
    pending: bool = False,
    problem: Unavailable | None = None,
    warnings: list[str] | None = None,
) -> dict[str, Any]:
    """A write's answer: ids, objects and token always, also when it is pending or a part is down."""
    return written(published, {**ids, **fields}, {}, pending=pending, problem=problem, warnings=warnings)


def shown(fields: Mapping[str, Any], is_fresh: bool) -> dict[str, Any]:
    """A read's answer; `stale` when what the caller has written is not in it yet."""
    return {"success": True, **fields, **({} if is_fresh else {"stale": True})}


def not_found(session_id: str) -> Refused:
    """The refusal of a session that nothing has told of."""
    message = f"There is no session {session_id}; session_list says which there are."
    return Refused(message, code="SESSION_NOT_FOUND", details={"session_id": session_id})


def exchange(asked: Event, exchange_id: str, sequence: int | None, tokens: int) -> dict[str, Any]:
    """An exchange as its event says it; the number is the reducer's."""
    data = asked.data
    return {
        "id": exchange_id,
        "session_id": data["session_id"],
        "sequence": sequence,
        "role": data["role"],
        "content": data["content"],
        "created_at": format_time(asked.time),
        "tokens_approx": tokens,
        "tool_uses": data.get("tool_uses") or [],
    }


__all__ = ["MAX_EXCHANGES", "MAX_LIMIT", "output_schema"]

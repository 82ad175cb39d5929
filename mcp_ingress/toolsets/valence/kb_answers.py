"""What the conversation tools share: checks of arguments, the objects of answers, schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mcp_ingress.fitting.truncation import Texts
from mcp_ingress.toolsets.valence import common
from processors.valence.rules.identifiers import as_uuid
from streams.clock import format_time
from streams.errors import Refused
from streams.event_types.valence_kb import END_STATUSES
from streams.events import Event

MAX_EXCHANGES = 1000
STATUSES = ["active", *END_STATUSES]
_BY_DAY = re.compile(r"\d{4}-\d{2}-\d{2}-[\w.-]{1,200}")
_OF_A_TRANSCRIPT = re.compile(r"/[\w.:-]{1,200}")

TEXT_OR_NULL: Mapping[str, Any] = {"type": ["string", "null"]}
COUNT_OR_NULL: Mapping[str, Any] = {"type": ["integer", "null"], "minimum": 0}
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
        "source": {
            **TEXT_OR_NULL,
            "description": "What told of it: `valence`, `talos`, or the agent whose transcript was imported",
        },
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


SESSION_TEXTS: Texts = {"summary": "{id}?field=summary"}
EXCHANGE_TEXTS: Texts = {"content": "{id}"}
PATTERN_TEXTS: Texts = {"description": "{id}"}


def checked_conversation(arguments: Mapping[str, Any]) -> str:
    """The id of a session to read: a UUID, with a suffix a sub-agent's transcript, or a day and a slug."""
    session_id: str = arguments["session_id"].strip()
    main, suffix = session_id[:36], session_id[36:]
    if as_uuid(main) is not None and _OF_A_TRANSCRIPT.fullmatch(suffix):
        return session_id
    if _BY_DAY.fullmatch(session_id):
        return session_id
    return common.checked_id(arguments, "session_id")


def not_found(session_id: str) -> Refused:
    """The refusal of a session that the store does not know."""
    message = f"There is no session {session_id}; session_list lists the sessions."
    return Refused(message, code="SESSION_NOT_FOUND", details={"session_id": session_id})


def exchange(request: Event, exchange_id: str, sequence: int | None, tokens: int) -> dict[str, Any]:
    """An exchange as its event says it; the number is the reducer's."""
    data = request.data
    return {
        "id": exchange_id,
        "session_id": data["session_id"],
        "sequence": sequence,
        "role": data["role"],
        "content": data["content"],
        "created_at": format_time(request.time),
        "tokens_approx": tokens,
        "tool_uses": data.get("tool_uses") or [],
    }

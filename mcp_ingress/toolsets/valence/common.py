"""What all Valence tools share: checks of ids and limits, the answer of a read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_ingress import writes
from processors.valence.rules.identifiers import as_uuid

MAX_LIMIT = 100
TOTAL: Mapping[str, Any] = {"type": "integer", "minimum": 0, "description": "Of all matches, whatever the limit."}


def checked_id(arguments: Mapping[str, Any], name: str) -> str:
    """The required UUID of that name, in its usual form. Refused when it is not a UUID."""
    found = as_uuid(arguments[name].strip())
    if found is None:
        raise writes.invalid(
            f"The argument `{name}` is {arguments[name][:60]!r}, which is not a valid UUID.", name, "a UUID"
        )
    return found


def checked_limit(arguments: Mapping[str, Any], name: str = "limit", most: int = MAX_LIMIT) -> int:
    """The limit, lowered to `most`. Refused below 1."""
    limit: int = arguments[name]
    if limit < 1:
        raise writes.invalid(
            f"The argument `{name}` is {limit}; it must be from 1 to {most}.", name, {"minimum": 1, "maximum": most}
        )
    return min(limit, most)


def read_answer(fields: Mapping[str, Any], is_fresh: bool) -> dict[str, Any]:
    """A read's answer; `stale` when what the caller has written is not in it yet."""
    return {"success": True, **fields, **({} if is_fresh else {"stale": True})}

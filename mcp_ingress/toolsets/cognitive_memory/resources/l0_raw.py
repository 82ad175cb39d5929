"""memory://l0-raw: dialogue as it was said, by session, days and speaker."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.resource import Items, Resource
from mcp_ingress.toolsets.cognitive_memory.queries import Conditions, after, day, select, start
from streams.errors import Refused


async def read(call: Call, arguments: dict[str, Any]) -> Items:
    """By time, then in the order of the log."""
    first, behind = _range(arguments.get("date_range"))
    is_fresh = await call.fresh()
    chosen = (
        Conditions(call.namespace)
        .add("session_id = ?", arguments.get("session_id"))
        .add("speaker = ?", arguments.get("speaker"))
    )
    chosen.add("timestamp >= ?", first).add("timestamp < ?", behind)
    way = "ASC" if arguments["order"] == "asc" else "DESC"
    order = f'ORDER BY timestamp {way}, "offset" {way}, idx {way} LIMIT ?'
    columns = "SELECT id, session_id, speaker, content, timestamp, metadata FROM l0_raw"
    return await call.read(select(columns, chosen, order, arguments["limit"])), is_fresh


def _range(text: str | None) -> tuple[datetime | None, datetime | None]:
    """The first moment of the range and the first behind it. Raises Refused."""
    if text is None:
        return None, None
    days = [day(part.strip(), "date_range") for part in re.split("[,:]", text)]
    if len(days) != 2:
        raise Refused(f"The parameter `date_range` is {text[:80]!r}; YYYY-MM-DD,YYYY-MM-DD is expected.")
    return start(days[0]), after(days[1])


RESOURCE = Resource(
    uri="memory://l0-raw",
    toolset="cognitive_memory",
    title="Raw dialogue",
    description="Access raw dialogue transcripts by session or date range",
    parameters={
        "session_id": {"type": "string", "description": "Filter by specific session"},
        "date_range": {"type": "string", "description": 'UTC days "YYYY-MM-DD,YYYY-MM-DD", both inclusive'},
        "speaker": {"type": "string", "description": "Filter by speaker name"},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "default": 100,
            "description": "Maximum transcripts to return",
        },
        "order": {"type": "string", "enum": ["asc", "desc"], "default": "desc", "description": "Sort order"},
    },
    truncation=Truncation(
        {"contents": {"content": "l0-{id}"}},
        onward="{shown} lines fit: narrow by `session_id`, `date_range` or `speaker`, or ask for `order=asc`.",
    ),
    handler=read,
)

"""pattern_reinforce: a pattern was met again."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import common
from mcp_ingress.toolsets.valence import kb_answers as answers
from mcp_ingress.toolsets.valence.kb_queries import find_pattern
from processors.valence.rules.patterns import status_at
from streams.clock import parse_time


async def reinforce_pattern(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish, await the decision, answer the pattern; a session counts once."""
    ids: dict[str, str] = {
        name: common.checked_id(arguments, name) for name in ("pattern_id", "session_id") if name in arguments
    }
    request = writes.request(call, "valence.pattern.reinforced", ids, subject=ids.get("session_id"))
    published = await writes.publish(call, request)
    result, problem = await writes.decision(call, published, pattern_id=ids["pattern_id"])
    pattern = None
    if result is not None:
        query = functools.partial(
            find_pattern, namespace=call.namespace, pattern_id=ids["pattern_id"], now=call.clock.now()
        )
        pattern = _right_after(await call.read(query), result, call.clock.now())
    counted = None if result is None else result["already_counted"]
    fields = {"pattern_id": ids["pattern_id"], "pattern": pattern, "already_counted": counted}
    return writes.written(published, fields, pending=result is None, problem=problem)


def _right_after(pattern: dict[str, Any] | None, result: Mapping[str, Any], now: datetime) -> dict[str, Any] | None:
    """The pattern as this request left it, whatever others have added since: evidence only grows."""
    if pattern is None:
        return None
    as_decided = {name: result[name] for name in ("occurrence_count", "confidence", "last_observed")}
    status = status_at(result["status"], parse_time(result["last_observed"]), now)
    return {**pattern, **as_decided, "status": status, "evidence": pattern["evidence"][: result["evidence_count"]]}


TOOL = Tool(
    name="pattern_reinforce",
    toolset="valence",
    title="Reinforce a pattern",
    description="Strengthen an existing pattern. A session counts once; five occurrences establish a pattern.",
    kind="write",
    handler=reinforce_pattern,
    memory_operation="update_memory",
    truncation=Truncation({"pattern": answers.PATTERN_TEXTS}),
    input_schema={
        "type": "object",
        "properties": {
            "pattern_id": {"type": "string", "description": "UUID of the pattern"},
            "session_id": {"type": "string", "description": "Session that supports this pattern"},
        },
        "required": ["pattern_id"],
    },
    output_schema=writes.output_schema(
        {
            "pattern_id": {"type": "string"},
            "pattern": {"anyOf": [answers.PATTERN_SCHEMA, {"type": "null"}]},
            "already_counted": {"type": ["boolean", "null"]},
        }
    ),
)

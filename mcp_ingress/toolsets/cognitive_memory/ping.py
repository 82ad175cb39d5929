"""ping: whether the server answers. It asks neither log nor store."""

from __future__ import annotations

from typing import Any

from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.cognitive_memory import answers
from streams.clock import format_time


async def ping(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Pong, and the time."""
    return {"response": "pong", "timestamp": format_time(call.clock.now()), "tool": "ping", "status": "ok"}


TOOL = Tool(
    name="ping",
    toolset="cognitive_memory",
    title="Ping",
    description="Simple ping tool for testing connectivity",
    kind="read",
    handler=ping,
    input_schema={"type": "object", "properties": {}, "required": []},
    output_schema=answers.output_schema(
        {"response": {"const": "pong"}, "timestamp": answers.TEXT, "tool": answers.TEXT}
    ),
)

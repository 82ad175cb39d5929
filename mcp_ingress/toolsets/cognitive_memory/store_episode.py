"""store_episode: keep what was asked, how well it went, and the lesson."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.cognitive_memory import answers
from processors.cognitive.rules.identifiers import EPISODE, event_number, record_id
from processors.cognitive.rules.text_quality import reflection_warnings
from streams.clock import format_time


async def store(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish, and wait for the row and the vector of its query."""
    answers.checked_texts(arguments, "query", "reflection")
    event = writes.request(
        call, "cm.episode.stored", {name: arguments[name] for name in ("query", "reward", "reflection")}
    )
    published, result, status = await answers.write_embedded(call, event, record_id(EPISODE, event_number(event)))
    known = {"id": event_number(event), "query": arguments["query"], "reward": float(arguments["reward"])}
    fields = {**known, "created_at": format_time(event.time), "embedding_status": status}
    warnings = reflection_warnings(arguments["reflection"])
    return answers.written(published, fields | ({"warnings": warnings} if warnings else {}), pending=result is None)


TOOL = Tool(
    name="store_episode",
    toolset="cognitive_memory",
    title="Store an episode",
    description="Store episode memory with query, reward, and reflection for verbal reinforcement learning",
    kind="write",
    handler=store,
    memory_operation="create_memory",
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "User query that triggered the episode"},
            "reward": {
                "type": "number",
                "minimum": -1.0,
                "maximum": 1.0,
                "description": "Reward score from evaluation (-1.0=poor, +1.0=excellent)",
            },
            "reflection": {
                "type": "string",
                "minLength": 1,
                "description": "Verbalized lesson learned (format: 'Problem: ... Lesson: ...')",
            },
        },
        "required": ["query", "reward", "reflection"],
    },
    output_schema=answers.output_schema(
        {
            "id": answers.ID,
            "embedding_status": answers.EMBEDDING_STATUS,
            "query": answers.TEXT,
            "reward": answers.NUMBER,
            "created_at": answers.TEXT,
        }
    ),
)

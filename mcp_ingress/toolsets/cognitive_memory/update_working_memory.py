"""update_working_memory: add one of the ten items at hand. Which one it evicts is decided in log order."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.cognitive_memory import answers
from processors.cognitive.rules.identifiers import item_number


async def update(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish, and answer what was evicted and where it was archived."""
    answers.checked_texts(arguments, "content")
    fields = {"content": arguments["content"], "importance": float(arguments["importance"])}
    published, result = await answers.write(call, writes.request(call, "cm.wm.updated", fields))
    unknown = {
        "added_id": item_number(call.namespace, arguments["content"]),
        "evicted_id": None,
        "archived_id": None,
        "refreshed": None,
    }
    return answers.written(published, result or unknown, pending=result is None)


TOOL = Tool(
    name="update_working_memory",
    toolset="cognitive_memory",
    title="Update working memory",
    description="Add item to Working Memory with atomic eviction handling. "
    "Returns {added_id: int, evicted_id: Optional[int], archived_id: Optional[int]}",
    kind="write",
    handler=update,
    memory_operation="update_memory",
    input_schema={
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "Content to store in working memory"},
            "importance": {
                "type": "number",
                "minimum": 0.0,
                "maximum": 1.0,
                "default": 0.5,
                "description": "Importance score (0.0-1.0, default: 0.5)",
            },
        },
        "required": ["content"],
    },
    output_schema=answers.output_schema(
        {"added_id": answers.ID, "evicted_id": answers.ID, "archived_id": answers.ID, "refreshed": answers.FLAG}
    ),
)

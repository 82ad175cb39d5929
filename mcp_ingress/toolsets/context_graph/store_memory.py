"""store_memory: keep a memory as it is. The same content again is counted, not kept twice."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.embedders import available_count
from mcp_ingress.toolsets.context_graph.memory_arguments import (
    CONTENT,
    IMPORTANCE_SCHEMA,
    MAX_TAG,
    MAX_TAGS,
    MODALITY,
    memory_request,
)
from processors.context_graph.rules.memories import memory_id_of


async def store_memory(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish, and answer the id under which the content is kept."""
    event = memory_request(call, "context.memory.stored", arguments)
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    unknown = {"memory_id": memory_id_of(event), "deduplicated": None}
    decided = unknown if result is None else result
    own = {
        "fingerprintId": decided["memory_id"],
        "deduplicated": decided["deduplicated"],
        "embedderCount": available_count(call.services),
        "embeddingLatencyMs": None,  # the stage embeds it, after the answer
    }
    return writes.written(published, own, pending=result is None, problem=problem)


TOOL = Tool(
    name="store_memory",
    toolset="context_graph",
    title="Store a memory",
    description="Store a memory node directly in the knowledge graph without UTL processing. Its content is searched "
    "by meaning, its tags by words; rationale is shown. Of an image or recording by data: URI, path or URL, "
    "rationale, tags and file name are searched instead. The same content again keeps its fingerprintId.",
    kind="write",
    handler=store_memory,
    memory_operation="create_memory",
    input_schema={
        "type": "object",
        "properties": {
            "content": CONTENT,
            "importance": IMPORTANCE_SCHEMA,
            "modality": MODALITY,
            "tags": {
                "type": "array",
                "items": {"type": "string", "maxLength": MAX_TAG},
                "maxItems": MAX_TAGS,
                "description": "Tags for categorization",
            },
            "rationale": {"type": "string", "description": "Why it is kept"},
        },
        "required": ["content"],
    },
    output_schema=writes.output_schema(
        {
            "fingerprintId": {"type": "string", "description": "The id of the memory"},
            "deduplicated": {
                "type": ["boolean", "null"],
                "description": "The content was stored before, under this id",
            },
            "embedderCount": {"type": "integer", "description": "Views that this node can give, of 13"},
            "embeddingLatencyMs": {"type": "null", "description": "It gets its vectors after the answer"},
        }
    ),
)

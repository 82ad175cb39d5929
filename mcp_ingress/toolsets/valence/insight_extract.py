"""insight_extract: what a conversation has taught, as a belief whose source is the session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.contradictions import CONTRADICTED_TEXTS, CONTRADICTS
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import answers, common
from mcp_ingress.toolsets.valence.belief_writes import create
from processors.valence.rules.conversations import INSIGHT_CONFIDENCE, INSIGHT_EXTRACTION
from processors.valence.rules.identifiers import INSIGHT, object_id


async def extract_insight(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish with what is near to it, await the decision, and say what it is in tension with."""
    session_id = common.checked_id(arguments, "session_id")
    writes.checked_text(arguments, "content")
    draft = replace(answers.checked_draft(arguments), extraction_method=INSIGHT_EXTRACTION)
    insight = {**arguments, "session_id": session_id}
    request = writes.request(call, "valence.insight.extracted", insight, subject=session_id)
    creation = await create(call, request, draft)
    own = {"insight_id": object_id(request, INSIGHT), "belief_id": creation.belief_id, "session_id": session_id}
    ids = own if creation.result is None else {name: creation.result[name] for name in own}
    fields = {**ids, **creation.fields}
    return writes.written(creation.published, fields, pending=creation.is_pending, problem=creation.problem)


TOOL = Tool(
    name="insight_extract",
    toolset="valence",
    title="Extract an insight",
    description="Extract an insight from a session to create a belief. The belief's source is the session; "
    "one that is held already is reinforced; `tensions_detected` lists what the new one contradicts.",
    kind="write",
    handler=extract_insight,
    memory_operation="create_memory",
    truncation=Truncation(
        {
            "belief": answers.BELIEF_TEXTS,
            "tensions_detected": answers.TENSION_TEXTS,
            "contradicts": CONTRADICTED_TEXTS,
        }
    ),
    input_schema={
        "type": "object",
        "properties": {
            "session_id": {"type": "string", "description": "Source session"},
            "content": {"type": "string", "description": "The insight/belief content"},
            "domain_path": {"type": "array", "items": {"type": "string"}, "description": "Domain classification"},
            "confidence": {
                "type": ["number", "object"],
                "default": INSIGHT_CONFIDENCE,
                "description": "Overall confidence, or an object of its dimensions",
            },
            "entities": {
                "type": "array",
                "description": "Entities to link: names, or objects with name, type and role; "
                "created if they do not exist",
            },
        },
        "required": ["session_id", "content"],
    },
    output_schema=writes.output_schema(
        {
            "insight_id": {"type": "string"},
            "belief_id": {"type": "string"},
            "session_id": {"type": "string"},
            "belief": answers.BELIEF_SCHEMA,
            **answers.CREATION_FIELDS,
            "tensions_detected": answers.TENSIONS,
            "contradicts": CONTRADICTS,
        }
    ),
)

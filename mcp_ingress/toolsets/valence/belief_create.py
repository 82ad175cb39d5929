"""belief_create: state a belief; it is kept, or it confirms one that is held."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.contradictions import CONTRADICTED_TEXTS, CONTRADICTS
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import answers
from mcp_ingress.toolsets.valence.belief_writes import create
from processors.valence.rules.entities import ROLES, TYPES

_FIELDS = ("content", "confidence", "domain_path", "source_type", "source_ref", "entities", "valid_from")


async def create_belief(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish with what is near to it, await the decision, and say what it is in tension with."""
    writes.checked_text(arguments, "content")
    draft = answers.checked_draft(arguments)
    request = writes.request(call, "valence.belief.created", {name: arguments.get(name) for name in _FIELDS})
    creation = await create(call, request, draft)
    return writes.written(creation.published, creation.fields, pending=creation.is_pending, problem=creation.problem)


TOOL = Tool(
    name="belief_create",
    toolset="valence",
    title="State a belief",
    description="Create a new belief with optional entity links. "
    "A belief that is held already is reinforced by another source; "
    "`tensions_detected` lists what the new one contradicts.",
    kind="write",
    handler=create_belief,
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
            "content": {"type": "string", "description": "The belief content"},
            "confidence": {
                "type": ["object", "number"],
                "description": "Confidence dimensions (or single 'overall' value)",
            },
            "domain_path": {"type": "array", "items": {"type": "string"}, "description": "Domain classification"},
            "source_type": {
                "type": "string",
                "enum": ["document", "conversation", "inference", "observation"],
                "description": "Type of source",
            },
            "source_ref": {"type": "string", "description": "Reference to source (URL, session_id, etc.)"},
            "entities": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "type": {"type": "string", "enum": list(TYPES)},
                        "role": {"type": "string", "enum": list(ROLES)},
                    },
                },
                "description": "Entities to link (will be created if not exist)",
            },
            "valid_from": {"type": "string", "format": "date-time", "description": "When the belief became true"},
        },
        "required": ["content"],
    },
    output_schema=writes.output_schema(
        {
            "belief": answers.BELIEF_SCHEMA,
            **answers.CREATION_FIELDS,
            "tensions_detected": answers.TENSIONS,
            "contradicts": CONTRADICTS,
        }
    ),
)

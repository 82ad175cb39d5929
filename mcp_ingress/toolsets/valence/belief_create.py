"""belief_create: state a belief; it is kept, or it confirms one that is held."""

from __future__ import annotations

from typing import Any

from mcp_ingress.gateway import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import answers
from mcp_ingress.toolsets.valence.belief_writes import belief_after, near_to, stated
from processors.valence.rules.beliefs import belief_id_of
from processors.valence.rules.entities import ROLES

_FIELDS = ("content", "confidence", "domain_path", "source_type", "source_ref", "entities", "valid_from")


async def create_belief(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish with what is near to it, await the decision, and say what it is in tension with."""
    answers.checked_text(arguments, "content")
    draft = answers.checked_draft(arguments)
    asked = answers.event(call, "valence.belief.created", {name: arguments.get(name) for name in _FIELDS})
    near = await near_to(call, draft.content)
    if near.similar:
        asked = asked.changed(data={**asked.data, "similar": near.similar})  # the id stays that of the request
    published = await answers.publish(call, asked)
    made = belief_id_of(asked)
    result, problem = await answers.decided(call, published, stated_as=made)
    if result is None:
        fields: dict[str, Any] = {
            "belief": answers.submitted(asked, made, draft),
            **dict.fromkeys(answers.STATED),
            "tensions_detected": [],
        }
        return answers.answered(published, fields, {}, pending=True, problem=problem)
    tensions: list[Any] = []
    if result["deduplicated"]:
        belief = await belief_after(call, result["belief_id"])
    else:
        belief, tensions = await stated(call, made, near)
    fields = {"belief": belief, **{name: result[name] for name in answers.STATED}, "tensions_detected": tensions}
    return answers.answered(published, fields, {})


TOOL = Tool(
    name="belief_create",
    toolset="valence",
    title="State a belief",
    description="Create a new belief with optional entity links. A belief that is held already is reinforced by another source; "
    "`tensions_detected` lists what the new one contradicts.",
    kind="write",
    handler=create_belief,
    memory_operation="create_memory",
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
                        "type": {"type": "string"},
                        "role": {"type": "string", "enum": list(ROLES)},
                    },
                },
                "description": "Entities to link (will be created if not exist)",
            },
            "valid_from": {"type": "string", "format": "date-time", "description": "When the belief became true"},
        },
        "required": ["content"],
    },
    output_schema=answers.output_schema(
        {"belief": answers.BELIEF_SCHEMA, **answers.STATED, "tensions_detected": answers.TENSIONS}
    ),
)

"""insight_extract: what a conversation has taught, as a belief whose source is the session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mcp_ingress.gateway import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import answers
from mcp_ingress.toolsets.valence.belief_writes import belief_after, near_to, stated
from processors.valence.rules.beliefs import belief_id_of
from processors.valence.rules.conversations import INSIGHT_CONFIDENCE, INSIGHT_EXTRACTION
from processors.valence.rules.identifiers import INSIGHT, object_id


async def extract_insight(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish with what is near to it, await the decision, and say what it is in tension with."""
    session_id = answers.checked_id(arguments, "session_id")
    answers.checked_text(arguments, "content")
    draft = replace(answers.checked_draft(arguments), extraction_method=INSIGHT_EXTRACTION)
    asked = answers.event(call, "valence.insight.extracted", {**arguments, "session_id": session_id})
    near = await near_to(call, draft.content)
    if near.similar:
        asked = asked.changed(data={**asked.data, "similar": near.similar})  # the id stays that of the request
    published = await answers.publish(call, asked)
    made = belief_id_of(asked)
    result, problem = await answers.decided(call, published, stated_as=made)
    if result is None:
        ids = {"insight_id": object_id(asked, INSIGHT), "belief_id": made, "session_id": session_id}
        fields: dict[str, Any] = {
            "belief": answers.submitted(asked, made, draft),
            **dict.fromkeys(answers.STATED),
            "tensions_detected": [],
        }
        return answers.answered(published, ids, fields, pending=True, problem=problem)
    is_held = result["deduplicated"]
    belief, tensions = (
        (await belief_after(call, result["belief_id"]), []) if is_held else await stated(call, made, near)
    )
    ids = {name: result[name] for name in ("insight_id", "belief_id", "session_id")}
    fields = {"belief": belief, **{name: result[name] for name in answers.STATED}, "tensions_detected": tensions}
    return answers.answered(published, ids, fields)


TOOL = Tool(
    name="insight_extract",
    toolset="valence",
    title="Extract an insight",
    description="Extract an insight from a session to create a belief. The belief's source is the session; "
    "one that is held already is reinforced; `tensions_detected` lists what the new one contradicts.",
    kind="write",
    handler=extract_insight,
    memory_operation="create_memory",
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
                "description": "Entities to link: names, or objects with name, type and role; created if they do not exist",
            },
        },
        "required": ["session_id", "content"],
    },
    output_schema=answers.output_schema(
        {
            "insight_id": {"type": "string"},
            "belief_id": {"type": "string"},
            "session_id": {"type": "string"},
            "belief": answers.BELIEF_SCHEMA,
            **answers.STATED,
            "tensions_detected": answers.TENSIONS,
        }
    ),
)

"""belief_supersede: replace a belief by another text; the old one stays in the history."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.contradictions import CONTRADICTED_TEXTS, CONTRADICTS
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import answers, common
from mcp_ingress.toolsets.valence.belief_writes import (
    belief_after,
    contradictions_of,
    earlier_are_embedded,
    find_neighbours,
    read_new_belief,
)
from processors.valence.rules.beliefs import belief_id_of


async def supersede_belief(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish and await the decision: of two that replace one belief the log's first wins. The other gets the head."""
    old_id = common.checked_id(arguments, "old_belief_id")
    content, reason = writes.checked_text(arguments, "new_content"), writes.checked_text(arguments, "reason").strip()
    draft = answers.checked_draft(arguments, content=content)
    fields: dict[str, Any] = {"old_belief_id": old_id, "reason": reason}
    wording = {"new_content": content, "confidence": arguments.get("confidence")}
    request = writes.request(call, "valence.belief.superseded", fields | wording)
    near = await find_neighbours(call, content)
    published = await writes.publish(call, request)
    new_id = belief_id_of(request)
    result, problem = await writes.decision(call, published, belief_id=new_id)
    if result is None:
        new = answers.submitted(request, new_id, draft, supersedes_id=old_id)
        fields |= {"new_belief": new, "old_belief": None, "tensions_detected": []}
        return writes.written(published, fields, pending=True, problem=problem)
    is_compared = await earlier_are_embedded(call, published)
    fields["new_belief"], tensions = await read_new_belief(call, new_id, near)
    fields["old_belief"] = await belief_after(call, old_id)
    fields |= {"tensions_detected": tensions, **await contradictions_of(call, request, near, tensions)}
    return writes.written(published, fields, pending=not is_compared)


TOOL = Tool(
    name="belief_supersede",
    toolset="valence",
    title="Supersede a belief",
    description="Replace an old belief with a new one, maintaining history.",
    kind="write",
    handler=supersede_belief,
    memory_operation="update_memory",
    truncation=Truncation(
        {
            "new_belief": answers.BELIEF_TEXTS,
            "old_belief": answers.BELIEF_TEXTS,
            "tensions_detected": answers.TENSION_TEXTS,
            "contradicts": CONTRADICTED_TEXTS,
        }
    ),
    input_schema={
        "type": "object",
        "properties": {
            "old_belief_id": {"type": "string", "description": "UUID of belief to supersede"},
            "new_content": {"type": "string", "description": "Updated belief content"},
            "reason": {"type": "string", "description": "Why this belief is being superseded"},
            "confidence": {"type": ["object", "number"], "description": "Confidence for new belief"},
        },
        "required": ["old_belief_id", "new_content", "reason"],
    },
    output_schema=writes.output_schema(
        {
            "old_belief_id": {"type": "string"},
            "new_belief": answers.BELIEF_SCHEMA,
            "reason": {"type": "string"},
            "old_belief": answers.BELIEF_OR_NULL,
            "tensions_detected": answers.TENSIONS,
            "contradicts": CONTRADICTS,
        }
    ),
)

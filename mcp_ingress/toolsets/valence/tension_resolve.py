"""tension_resolve: say how a tension ends, and what becomes of its beliefs."""

from __future__ import annotations

import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import answers, common
from mcp_ingress.toolsets.valence.belief_queries import Row, details_of, find_beliefs, find_tension, without_action
from processors.valence.rules.tensions import ACTIONS
from streams.errors import Refused


async def resolve_tension(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish the resolution and await the decision on it.

    Of two resolutions the first on the log wins, and the other call learns which.
    """
    tension_id = common.checked_id(arguments, "tension_id")
    resolution = writes.checked_text(arguments, "resolution").strip()
    await call.fresh("tensions")
    query = functools.partial(find_tension, namespace=call.namespace, tension_id=tension_id)
    tension = _open(tension_id, await call.find(query))
    ids = {"tension_id": tension_id, "belief_a_id": tension["belief_a_id"], "belief_b_id": tension["belief_b_id"]}
    own = {"tension_id": tension_id, "action": arguments["action"], "resolution": resolution}
    published = await writes.publish(call, writes.request(call, "valence.tension.resolved", ids | own))
    result, problem = await writes.decision(call, published, tension_id=tension_id, action=arguments["action"])
    if result is None:
        return writes.written(published, own | {"tension": None, "beliefs": []}, pending=True, problem=problem)
    after = await call.read(query)
    pair = [ids["belief_a_id"], ids["belief_b_id"]]
    beliefs = await call.read(functools.partial(find_beliefs, namespace=call.namespace, ids=pair))
    ended = without_action(after or {})
    return writes.written(published, own | {"tension": ended, "beliefs": [beliefs[identity] for identity in pair]})


def _open(tension_id: str, tension: Row | None) -> Row:
    """The tension, unless there is none or it has ended without a call. Which of two calls was first a reducer says."""
    if tension is None:
        raise answers.not_found("TENSION_NOT_FOUND", "tension", tension_id)
    if tension["action"] is None and tension["status"] == "resolved":
        message = f"The tension {tension_id} is resolved already: {tension['resolution']}."
        raise Refused(message, code="TENSION_ALREADY_RESOLVED", details=details_of(tension))
    return tension


TOOL = Tool(
    name="tension_resolve",
    toolset="valence",
    title="Resolve a tension",
    description="Mark a tension as resolved with explanation.",
    kind="write",
    handler=resolve_tension,
    memory_operation="update_memory",
    truncation=Truncation({"tension": answers.TENSION_TEXTS, "beliefs": answers.BELIEF_TEXTS}),
    input_schema={
        "type": "object",
        "properties": {
            "tension_id": {"type": "string", "description": "UUID of the tension"},
            "resolution": {"type": "string", "description": "How the tension was resolved"},
            "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do with the beliefs"},
        },
        "required": ["tension_id", "resolution", "action"],
    },
    output_schema=writes.output_schema(
        {
            "tension_id": {"type": "string"},
            "action": {"type": "string", "enum": list(ACTIONS)},
            "resolution": {"type": "string"},
            "tension": {**answers.TENSION_SCHEMA, "type": ["object", "null"]},
            "beliefs": answers.BELIEFS,
        }
    ),
)

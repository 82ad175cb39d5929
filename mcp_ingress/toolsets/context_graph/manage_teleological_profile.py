"""manage_teleological_profile: weights of the thirteen views for a task."""

from __future__ import annotations

import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.profile_queries import GROUP_NUMBERS, VIEW_NUMBERS, find_profile, list_profiles
from processors.context_graph.rules import profiles
from processors.context_graph.rules.fusion import METHODS
from processors.context_graph.rules.groups import GROUPS

_CHANGES = ("name", "task_type", "embedder_weights", "group_priorities", "fusion_strategy")


async def manage(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Read from the store, or publish the change and answer what was decided."""
    action = arguments["action"]
    if action == "list":
        is_fresh = await call.fresh()
        found = await call.read(functools.partial(list_profiles, namespace=call.namespace))
        return {"success": True, "action": action, "profiles": found, "count": len(found), **_stale(is_fresh)}
    identity = _identity(action, arguments)
    if action == "read":
        is_fresh = await call.fresh()
        profile = await call.read(functools.partial(find_profile, namespace=call.namespace, profile_id=identity))
        return {"success": True, "action": action, "profile": profile, **_stale(is_fresh)}
    return await _change(call, action, identity, arguments)


async def _change(call: Call, action: str, identity: str, arguments: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {} if action == "delete" else {name: arguments.get(name) for name in _CHANGES}
    try:
        if fields.get("embedder_weights") is not None:
            fields["embedder_weights"] = list(profiles.view_weights(fields["embedder_weights"]))
        if fields.get("group_priorities") is not None:
            fields["group_priorities"] = profiles.priorities(fields["group_priorities"])
    except profiles.ProfileError as error:
        raise writes.invalid(str(error), error.field, reason="range") from None
    event = writes.request(call, "context.profile.changed", {"action": action, "profile_id": identity, **fields})
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    decided = {"profile": None, "deleted": None} if result is None else dict(result)
    own: dict[str, Any] = {"action": action, "profile_id": identity}
    own |= {name: decided[name] for name in ("profile", "deleted") if name in decided}
    return writes.written(published, own, pending=result is None, problem=problem)


def _identity(action: str, arguments: dict[str, Any]) -> str:
    """The id that is meant: that of a new profile follows from its name. Raises Refused."""
    if action == "create":
        name = _text(arguments, "name", "a name for the profile")
        try:
            return arguments.get("profile_id", "").strip() or profiles.id_from_name(name)
        except profiles.ProfileError as error:
            raise writes.invalid(str(error), error.field, reason="missing") from None
    if "name" in arguments:
        _text(arguments, "name", "a name for the profile")
    return _text(arguments, "profile_id", f"the id of the profile to {action}; the action `list` names them")


def _text(arguments: dict[str, Any], name: str, wanted: str) -> str:
    text: str = arguments.get(name, "").strip()
    if not text:
        message = f"The argument `{name}` is missing; this action needs {wanted}."
        raise writes.invalid(message, name, wanted, reason="missing")
    return text


def _stale(is_fresh: bool) -> dict[str, Any]:
    return {} if is_fresh else {"stale": True}


_PROFILE = {
    "type": ["object", "null"],
    "properties": {
        "profile_id": {"type": "string"},
        "name": {"type": "string"},
        "task_type": {"type": "string"},
        "embedder_weights": VIEW_NUMBERS,
        "group_priorities": GROUP_NUMBERS,
        "fusion_strategy": {"type": "string"},
        "is_system": {"type": "boolean", "description": "Always there, and never changed"},
        "created_at": {"type": ["string", "null"]},
        "updated_at": {"type": ["string", "null"]},
    },
}

TOOL = Tool(
    name="manage_teleological_profile",
    toolset="context_graph",
    title="Manage a teleological profile",
    description=(
        "Manage teleological profiles: per-embedder weights, fusion strategy and group "
        "priorities for a kind of task, for `compute_teleological_vector` and "
        "`fuse_embeddings`. Thirteen are read-only."
    ),
    kind="write",
    handler=manage,
    input_schema={
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "enum": ["create", "read", "update", "delete", "list"],
                "description": "What to do",
            },
            "profile_id": {
                "type": "string",
                "maxLength": profiles.MAX_ID,
                "description": "Which profile; a new one's is made from its name",
            },
            "name": {"type": "string", "maxLength": profiles.MAX_NAME, "description": "Human-readable profile name"},
            "task_type": {
                "type": "string",
                "enum": list(profiles.TASK_TYPES),
                "description": "What it is for; gives the weights that are left out",
            },
            "embedder_weights": {
                "type": "array",
                "items": {"type": "number", "minimum": 0},
                "minItems": 13,
                "maxItems": 13,
                "description": "Weights of E1 to E13, normalised to sum 1",
            },
            "group_priorities": {
                "type": "object",
                "properties": {group: {"type": "number", "minimum": 0} for group in GROUPS},
                "additionalProperties": False,
                "description": "Priorities of groups, normalised; 0 if not named",
            },
            "fusion_strategy": {
                "type": "string",
                "enum": list(METHODS),
                "description": f"How the views are fused; {profiles.DEFAULT_FUSION} by default",
            },
        },
        "required": ["action"],
    },
    output_schema=writes.output_schema(
        {
            "action": {"type": "string"},
            "profile_id": {"type": "string"},
            "profile": _PROFILE,
            "profiles": {"type": "array", "items": _PROFILE},
            "count": {"type": "integer", "minimum": 0},
            "deleted": {"type": ["boolean", "null"]},
        }
    ),
)

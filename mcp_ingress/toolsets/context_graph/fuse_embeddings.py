"""fuse_embeddings: the thirteen views of a memory as one vector, each with its share."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.merged_ids import FOLLOWED_FROM, follow
from mcp_ingress.toolsets.context_graph.profile_queries import VIEW_NUMBERS, profile_for
from mcp_ingress.toolsets.context_graph.reader import reader_of
from processors.context_graph.read.goals import Purposes
from processors.context_graph.read.teleology import purpose, purpose_vectors, read_synergy
from processors.context_graph.rules import fusion, profiles
from processors.context_graph.rules.memories import vector_id_of
from processors.context_graph.rules.tucker import decompose
from processors.context_graph.rules.views.outputs import common
from streams.errors import Refused
from streams.events import Event

DIGITS = 6


async def fuse(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Fuse, and publish the vector unless the caller only wants to see it."""
    weights = _custom_weights(arguments.get("custom_weights"))
    is_fresh = await call.fresh(vectors=True)
    own = await call.read(functools.partial(_fused, call, arguments, weights))
    if not arguments["store_result"]:
        return {"success": True, **own, "stored": False, "vector_id": None, **({} if is_fresh else {"stale": True})}
    event = _event(call, arguments, own)
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    stored = {"stored": result is not None, "vector_id": vector_id_of(event)}
    return writes.written(published, own | stored, pending=result is None, problem=problem)


def _event(call: Call, arguments: Mapping[str, Any], own: Mapping[str, Any]) -> Event:
    """The request, and what was found for it."""
    options = {name: arguments.get(name) for name in ("custom_weights", "apply_synergy")}
    asked = {"memory_id": own["memory_id"], "fusion_method": own["fusion_method"], **options}
    request = writes.request(call, "context.vector.fused", asked | {"profile_id": own["metadata"]["profile_id"]})
    return writes.with_findings(request, {name: own[name] for name in ("vector", "weights", "confidence")})


def _custom_weights(given: Sequence[float] | None) -> list[float] | None:
    """Raises Refused."""
    try:
        return None if given is None else list(profiles.view_weights(given, "custom_weights"))
    except profiles.ProfileError as error:
        raise writes.invalid(str(error), error.field, reason="range") from None


def _fused(
    call: Call, arguments: Mapping[str, Any], weights: list[float] | None, cursor: duckdb.DuckDBPyConnection
) -> dict[str, Any]:
    """The fused vector and what it is made of. Raises Refused for a memory or a profile that is not there."""
    profile_id = None if weights is not None else arguments.get("profile_id")
    profile = None if profile_id is None else profile_for(cursor, call.namespace, profile_id)
    reader = reader_of(call, cursor)
    ends, told = follow(cursor, call.namespace, {"memory_id": arguments["memory_id"]})
    [memory] = reader.stored([ends["memory_id"]])
    if memory is None:
        message = f"There is no memory {arguments['memory_id'][:80]!r}: `memory_id` takes a `fingerprintId`."
        raise Refused(message, reason="not_found", field="memory_id")
    towards = purpose(reader, call.part(Purposes)).centre or memory
    aligned, synergy = purpose_vectors(towards, [memory])[0], read_synergy(reader)
    views = common(memory, towards.moment.at).astype(np.float64)
    chosen = weights or (profiles.EQUAL if profile is None else profile.embedder_weights)
    method = arguments["fusion_method"]
    if profile is not None and method == profiles.DEFAULT_FUSION:
        method = profile.fusion_strategy
    shares = fusion.shares(
        method,
        np.array(chosen),
        aligned,
        synergy if arguments["apply_synergy"] else None,
        profiles.priorities(None) if profile is None else profile.group_priorities,
        decompose(views) if method == "tucker" else None,
    )
    trusted = fusion.trust(aligned, synergy)
    return {
        **ends,
        **told,
        "fusion_method": method,
        "vector": _rounded(fusion.fused(shares, views)),
        "weights": _rounded(shares),
        "confidence": round(trusted.value, DIGITS),
        "component_scores": {name: round(value, DIGITS) for name, value in trusted.parts.items()},
        "metadata": {
            "active_embedders": trusted.active,
            "profile_id": profile_id,
            "weights_from": "custom_weights" if weights else "profile" if profile else "equal",
            "synergy_applied": arguments["apply_synergy"],
            "low_confidence": trusted.value < fusion.LOW_CONFIDENCE,
        },
    }


def _rounded(numbers: np.ndarray) -> list[float]:
    return [round(float(number), DIGITS) for number in numbers]


_UNIT = {"type": "number", "minimum": 0, "maximum": 1}

TOOL = Tool(
    name="fuse_embeddings",
    toolset="context_graph",
    title="Fuse a memory's views",
    description="Fuse embedding outputs using the synergy matrix and profile weights: one vector of a memory, and "
    "the share of each view in it. `custom_weights` win over a profile. A stored result has a `vector_id` for "
    "`search_teleological`.",
    kind="write",
    handler=fuse,
    memory_operation="create_memory",
    input_schema={
        "type": "object",
        "properties": {
            "memory_id": {"type": "string", "description": "The memory"},
            "fusion_method": {
                "type": "string",
                "enum": list(fusion.METHODS),
                "default": profiles.DEFAULT_FUSION,
                "description": "The default is the profile's own strategy, if any",
            },
            "profile_id": {"type": "string", "description": "Profile whose weights are taken"},
            "custom_weights": {
                "type": "array",
                "items": {"type": "number", "minimum": 0},
                "minItems": 13,
                "maxItems": 13,
                "description": "Weights of E1 to E13 of your own",
            },
            "apply_synergy": {"type": "boolean", "default": True, "description": "Apply synergy matrix weighting"},
            "store_result": {"type": "boolean", "default": True, "description": "Store the fused vector"},
        },
        "required": ["memory_id"],
    },
    output_schema=writes.output_schema(
        {
            "memory_id": {"type": "string"},
            **FOLLOWED_FROM,
            "fusion_method": {"type": "string"},
            "vector": {"type": "array", "items": {"type": "number"}, "description": "256 numbers of length 1"},
            "weights": {**VIEW_NUMBERS, "description": "What each view has in it, sum 1"},
            "confidence": _UNIT,
            "component_scores": {"type": "object", "additionalProperties": {"type": "number"}},
            "metadata": {"type": "object"},
            "stored": {"type": "boolean"},
            "vector_id": {"type": ["string", "null"], "description": "Give it to `search_teleological`"},
        }
    ),
)

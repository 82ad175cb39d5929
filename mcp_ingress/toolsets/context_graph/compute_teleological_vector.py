"""compute_teleological_vector: how a text is aligned with the purpose in thirteen views."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.memory_arguments import checked_content
from mcp_ingress.toolsets.context_graph.profile_queries import GROUP_NUMBERS, VIEW_NUMBERS, profile_for
from mcp_ingress.toolsets.context_graph.reader import reader_of
from processors.context_graph.read.goals import Purposes
from processors.context_graph.read.teleology import purpose, purpose_vectors, read_synergy
from processors.context_graph.rules.correlations import PAIR_COUNT, profiled, strongest_pair
from processors.context_graph.rules.fusion import trust
from processors.context_graph.rules.groups import group_alignments, named
from processors.context_graph.rules.memories import vector_id_of
from processors.context_graph.rules.tucker import DEFAULT_RANKS, MOST_RANKS, Tucker, decompose
from processors.context_graph.rules.views.catalogue import VIEWS
from processors.context_graph.rules.views.outputs import common, outputs
from processors.context_graph.rules.views.sparse import Sparse
from processors.embedding.query import EncodedQuery, encoded_query

MAX_READ = 10_000
"""Characters that the model reads, as many as of a query: over a mebibyte it would be given up."""
DIGITS = 6
CORE_DIGITS = 3
"""Of the core's 2,048 numbers by default: with more of them no answer would hold it."""


async def compute(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Compute, publish, and answer the vector with the id under which it is kept."""
    content = checked_content(arguments)
    ranks = _checked_ranks(arguments["tucker_ranks"])
    is_fresh = await call.fresh(vectors=True)
    begun = call.clock.monotonic()
    encoded = await encoded_query(call.services.embedder, content[:MAX_READ])
    vector, more = await call.read(functools.partial(_computed, call, arguments, encoded, ranks))
    spent_ms = round(1000 * (call.clock.monotonic() - begun), 3)
    asked = {"content": content, "profile_id": arguments.get("profile_id")}
    found = {name: vector[name] for name in ("purpose_vector", "cross_correlations", "confidence", "provisional")}
    found["group_alignments"] = list(vector["group_alignments"].values())
    event = writes.with_findings(writes.request(call, "context.vector.computed", asked), found)
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    own = {"vector": {"id": vector_id_of(event), **vector}, "embedding_latency_ms": spent_ms, **more}
    own |= {} if is_fresh else {"stale": True}
    return writes.written(published, own, pending=result is None, problem=problem)


def _checked_ranks(ranks: Sequence[int]) -> tuple[int, ...]:
    """Raises Refused."""
    for rank, most, what in zip(ranks, MOST_RANKS, ("views", "views", "features"), strict=True):
        if not 1 <= rank <= most:
            message = f"The argument `tucker_ranks` has {rank} for {what}; from 1 to {most} is accepted."
            raise writes.invalid(message, "tucker_ranks", list(MOST_RANKS), reason="range")
    return tuple(ranks)


def _computed(
    call: Call,
    arguments: Mapping[str, Any],
    encoded: EncodedQuery,
    ranks: Sequence[int],
    cursor: duckdb.DuckDBPyConnection,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The vector, and what else the answer says. Raises Refused for a profile that is not there."""
    identity = arguments.get("profile_id")
    profile = None if identity is None else profile_for(cursor, call.namespace, identity)
    reader = reader_of(call, cursor)
    content, now = arguments["content"], call.clock.now()
    asked = reader.of_text(reader.unencoded(content, now), encoded)
    towards, goal = purpose(reader, call.part(Purposes))
    aligned, synergy = purpose_vectors(towards, [asked])[0], read_synergy(reader)
    weights = None if profile is None else np.array(profile.embedder_weights)
    correlated = profiled(aligned, synergy, weights)
    groups = named(group_alignments(aligned, weights))
    trusted = trust(aligned, synergy)
    vector: dict[str, Any] = {
        "purpose_vector": _rounded(np.nan_to_num(aligned)),
        "cross_correlations": _rounded(correlated),
        "group_alignments": {name: round(value, DIGITS) for name, value in groups.items()},
        "confidence": round(trusted.value, DIGITS),
        "provisional": goal is None,
    }
    at = now.timestamp() if towards is None else towards.moment.at
    if arguments["compute_tucker"]:
        vector["tucker_core"] = _core(decompose(common(asked, at), ranks), ranks)
    more: dict[str, Any] = {
        "fusion_confidence": vector["confidence"],
        "component_scores": {name: round(value, DIGITS) for name, value in trusted.parts.items()},
        "metadata": {
            "active_embedders": trusted.active,
            "strongest_pair": list(strongest_pair(correlated)),
            "dominant_group": max(groups, key=lambda name: groups[name]),
            "profile_id": identity,
        },
    }
    if arguments["include_per_embedder"]:
        more["per_embedder"] = [_output(number, one) for number, one in enumerate(outputs(asked, at))]
    return vector, more


def _core(found: Tucker, ranks: Sequence[int]) -> dict[str, Any]:
    return {
        "ranks": list(ranks),
        "core": _rounded(found.core.ravel(), CORE_DIGITS),
        "factor_shapes": [[most, rank] for most, rank in zip(MOST_RANKS, ranks, strict=True)],
        "explained_variance": round(found.explained_variance, DIGITS),
        "compression_ratio": round(found.compression_ratio, DIGITS),
    }


def _output(number: int, one: Sparse | None) -> dict[str, Any]:
    """What a view is made of; sparse where most of its numbers are 0."""
    view = VIEWS[number]
    about = {"embedder": view.label, "provider": view.provider, "model": view.model, "trained": view.trained}
    about |= {"dimension": view.dimension, "available": one is not None}
    if one is None:
        return about
    values = _rounded(one.weights, CORE_DIGITS)
    if np.array_equal(one.numbers, np.arange(len(one.numbers))):
        return {**about, "vector": values}
    return {**about, "indices": one.numbers.tolist(), "values": values}


def _rounded(numbers: np.ndarray, digits: int = DIGITS) -> list[float]:
    return [round(float(number), digits) for number in numbers]


_UNIT = {"type": "number", "minimum": 0, "maximum": 1}
_NUMBERS = {"type": "array", "items": {"type": "number"}}

TOOL = Tool(
    name="compute_teleological_vector",
    toolset="context_graph",
    title="Compute a teleological vector",
    description=(
        "Compute a complete teleological vector from content: purpose vector (13D), "
        "cross-correlations (78D), group alignments (6D). The content becomes no memory; "
        "`search_teleological` takes the vector's id."
    ),
    kind="write",
    handler=compute,
    memory_operation="create_memory",
    timeout_s=10.0,
    input_schema={
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "The text"},
            "profile_id": {"type": "string", "description": "Profile whose weights are taken"},
            "compute_tucker": {"type": "boolean", "default": False, "description": "Compute Tucker decomposition"},
            "tucker_ranks": {
                "type": "array",
                "items": {"type": "integer", "minimum": 1},
                "minItems": 3,
                "maxItems": 3,
                "default": list(DEFAULT_RANKS),
                "description": f"Ranks [r1, r2, r3], at most {list(MOST_RANKS)}",
            },
            "include_per_embedder": {
                "type": "boolean",
                "default": False,
                "description": "Include raw per-embedder outputs (large)",
            },
        },
        "required": ["content"],
    },
    output_schema=writes.output_schema(
        {
            "vector": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "purpose_vector": VIEW_NUMBERS,
                    "cross_correlations": {**_NUMBERS, "maxItems": PAIR_COUNT},
                    "group_alignments": GROUP_NUMBERS,
                    "confidence": _UNIT,
                    "provisional": {"type": "boolean", "description": "No goal was there to be aligned with"},
                    "tucker_core": {
                        "type": "object",
                        "properties": {
                            "ranks": {"type": "array", "items": {"type": "integer"}},
                            "core": {**_NUMBERS, "description": "Row by row, with three digits"},
                            "factor_shapes": {"type": "array"},
                            "explained_variance": _UNIT,
                            "compression_ratio": {"type": "number"},
                        },
                    },
                },
            },
            "embedding_latency_ms": {"type": "number"},
            "fusion_confidence": _UNIT,
            "component_scores": {"type": "object", "additionalProperties": {"type": "number"}},
            "metadata": {"type": "object"},
            "per_embedder": {"type": "array", "items": {"type": "object"}},
        }
    ),
)

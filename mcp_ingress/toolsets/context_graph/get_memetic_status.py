"""get_memetic_status: how much is remembered, what it has taught of late, and whether all parts work."""

from __future__ import annotations

import asyncio
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.embedders import available_count
from mcp_ingress.toolsets.context_graph.layers import NAMES, STATUSES, probe
from mcp_ingress.toolsets.context_graph.learning_state import ADVISORY, LearningState, read_learning_state
from mcp_ingress.toolsets.context_graph.pulse import PULSE, beat
from processors.context_graph.rules.johari import ACTIONS, QUADRANTS, quadrant
from processors.memory.vector_facts import VECTOR_STAGE
from storage.statements import execute

_COUNT = {"type": "integer", "minimum": 0}
_LIVING = "NOT EXISTS (FROM context_ends e WHERE e.namespace = m.namespace AND e.memory_id = m.memory_id)"
_MEMORIES = (
    "SELECT count(*), coalesce(sum(strlen(content)), 0)::BIGINT, count(*) FILTER ($2::VARCHAR IS NULL OR EXISTS "
    "(SELECT 1 FROM embeddings e WHERE e.label = m.label AND e.space = $2)), "
    "(SELECT count(*) FROM context_goals WHERE namespace = $1) "
    f"FROM context_memories m WHERE namespace = $1 AND {_LIVING}"
)
_MEASURED = (
    "SELECT entropy > 0.5, coherence > 0.5, count(*) FROM context_memories m "
    f"WHERE namespace = ? AND entropy IS NOT NULL AND coherence IS NOT NULL AND {_LIVING} GROUP BY ALL"
)


async def get_memetic_status(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Counts of the memories, the means that the pulse tells, and the five layers."""
    is_fresh = await call.fresh(VECTOR_STAGE)
    embedder = call.services.embedder
    space = None if embedder is None else embedder.info.space
    counts, layers, state = await asyncio.gather(
        call.read(lambda cursor: _counts(cursor, call.namespace, space)), probe(call), read_learning_state(call)
    )
    return {
        "success": True,
        "phase": state.means.phase.name,
        "embedderCount": available_count(call.services),
        **counts,
        "utl": _utl(state),
        "layers": {name: layer.status for name, layer in layers.items()},
        "advisory": state.advisory,
        PULSE.field: beat(state.means),
        **({} if is_fresh else {"stale": True}),
    }


def _utl(state: LearningState) -> dict[str, Any]:
    means = state.means
    return {
        "entropy": means.entropy,
        "coherence": means.coherence,
        "learningScore": means.learning_score,
        "johariQuadrant": means.quadrant,
        "consolidationPhase": state.consolidation_phase,
        "suggestedAction": ACTIONS[means.quadrant],
    }


def _counts(cursor: duckdb.DuckDBPyConnection, namespace: str, space: str | None) -> dict[str, Any]:
    row = execute(cursor, _MEMORIES, [namespace, space]).fetchone()
    assert row is not None
    quadrants = dict.fromkeys((name.lower() for name in QUADRANTS), 0)
    for is_new, fits, count in execute(cursor, _MEASURED, [namespace]).fetchall():
        quadrants[quadrant(float(is_new), float(fits)).lower()] += count
    memories, size, fingerprints, goals = row
    return {
        "fingerprintCount": fingerprints,
        "nodeCount": memories + goals,
        "quadrantCounts": {**quadrants, "unmeasured": memories - sum(quadrants.values())},
        "storageBackend": "duckdb",
        "storageSizeBytes": size,
    }


TOOL = Tool(
    name="get_memetic_status",
    toolset="context_graph",
    title="Memory status",
    description="Get current system status with LIVE UTL metrics, node count and the five layers. `fingerprintCount` "
    "counts memories that are searched by meaning already, `nodeCount` all, and goals. `advisory` names a call to "
    "make next.",
    kind="read",
    handler=get_memetic_status,
    input_schema={"type": "object", "properties": {}},
    output_schema=writes.output_schema(
        {
            "phase": {"type": "string", "enum": ["Infancy", "Growth", "Maturity"]},
            "fingerprintCount": _COUNT,
            "nodeCount": _COUNT,
            "embedderCount": {**_COUNT, "description": "Views that this node can give, of 13"},
            "utl": {
                "type": "object",
                "properties": {
                    "entropy": {"type": "number"},
                    "coherence": {"type": "number"},
                    "learningScore": {"type": "number"},
                    "johariQuadrant": {"type": "string", "enum": list(QUADRANTS)},
                    "consolidationPhase": {"type": "string", "enum": ["NREM", "REM", "Wake"]},
                    "suggestedAction": {"type": "string", "enum": list(ACTIONS.values())},
                },
            },
            "layers": {
                "type": "object",
                "properties": {name: {"type": "string", "enum": list(STATUSES)} for name in NAMES},
            },
            "quadrantCounts": {
                "type": "object",
                "description": "Memories by quadrant of E1; `unmeasured`: by store_memory, or without a model",
            },
            "storageBackend": {"type": "string"},
            "storageSizeBytes": {**_COUNT, "description": "Of what the memories say, in UTF-8"},
            "advisory": ADVISORY,
        }
    ),
)

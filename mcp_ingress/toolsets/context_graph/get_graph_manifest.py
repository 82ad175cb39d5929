"""get_graph_manifest: what Context Graph is made of, each part as it is in this node."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.embedders import views_of_node
from mcp_ingress.toolsets.context_graph.layers import STATUSES, probe
from processors.context_graph.rules.views.catalogue import View
from storage.search.vectors.view_spaces import ViewBuild

LAYERS = {
    "perception": "Takes calls and records, and encodes their texts",
    "memory": "Keeps memories and finds them",
    "reasoning": "Relates memories to what was asked and recalled",
    "meta": "Follows what is learned, and tells it as the pulse",
    "action": "Puts what is decided on the log",
}
DISPLAY_ONLY = (
    *("consolidationPhase", "phase_angle", "shouldStore", "shouldConsolidate", "thresholds", "temperatures"),
    *("recalibration_levels_1_3_4", "C", "acetylcholine"),
)
"""Quantities that callers expect and that nothing depends on."""
UTL = {
    "description": "Entropy (ΔS): mean distance of the nearest ten of the last 100 memories in E1, as a percentile of "
    "the last 500, 0.5 at the 80th. Coherence (ΔC): how near these ten are to each other, 0.5 at the 20th. "
    "The other twelve views have no part in them.",
    "formula": "L = clamp(4·λ_S·λ_C·ΔS·ΔC·wₑ·cos φ, 0, 1)",
}
TELEOLOGICAL = {"pairs": 78, "groups": 6, "tucker_default_ranks": [4, 4, 128]}


async def get_graph_manifest(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """The layers by their probes, and the views by the model in use."""
    layers = await probe(call)
    views, building = views_of_node(call.services), call.services.indexes.views.building
    return {
        "success": True,
        "architecture": "5-layer-bio-nervous",
        "description": "Events on a log, folded into a store with its indexes, in five layers.",
        "layers": [
            {"name": name.capitalize(), "description": LAYERS[name], **layer._asdict()}
            for name, layer in layers.items()
        ],
        "fingerprintType": "TeleologicalFingerprint",
        "embedderCount": len(views),
        "embedders": [_embedder(view, building.get(view.embedder)) for view in views],
        "utl": UTL,
        "teleological": TELEOLOGICAL,
        "display_only": list(DISPLAY_ONLY),
    }


def _embedder(view: View, build: ViewBuild | None) -> dict[str, Any]:
    reason = {} if view.unavailable_because is None else {"unavailable_because": view.unavailable_because}
    building = {} if build is None else {"building": build.to_json()}
    return {
        "embedder": view.label,
        "name": view.name,
        "purpose": view.purpose,
        "provider": view.provider,
        "model": view.model,
        "trained": view.trained,
        "stands_in_for": view.stands_in_for,
        "derived_from": list(view.derived_from),
        "dimension": view.dimension,
        "native_dimension": view.native_dimension,
        "quantization": view.quantization,
        "frequency_hz": view.hertz,
        "available": view.available,
        **reason,
        **building,
    }


TOOL = Tool(
    name="get_graph_manifest",
    toolset="context_graph",
    title="Graph manifest",
    description="Get the 5-layer architecture with layer statuses, probed now, and the 13 embedders with the model "
    "that really makes each. `derived_from` says which follow from one another. Nothing depends on `display_only`.",
    kind="read",
    handler=get_graph_manifest,
    input_schema={"type": "object", "properties": {}},
    output_schema=writes.output_schema(
        {
            "architecture": {"type": "string"},
            "description": {"type": "string"},
            "layers": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "description": {"type": "string"},
                        "status": {"type": "string", "enum": list(STATUSES)},
                        "detail": {"type": "string"},
                    },
                },
            },
            "fingerprintType": {"type": "string"},
            "embedderCount": {"type": "integer"},
            "embedders": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "embedder": {"type": "string"},
                        "trained": {"type": "boolean", "description": "A learned model makes it"},
                        "stands_in_for": {"type": ["string", "null"], "description": "The named model it is not"},
                        "available": {"type": "boolean"},
                        "building": {
                            "type": "object",
                            "description": "The model that is to make it, and how many memories it has encoded",
                        },
                    },
                },
            },
            "utl": {"type": "object", "description": "How learning is measured"},
            "teleological": {"type": "object"},
            "display_only": {"type": "array", "items": {"type": "string"}},
        }
    ),
)

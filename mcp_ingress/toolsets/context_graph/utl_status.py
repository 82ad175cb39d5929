"""utl_status: what the memories have taught of late, and by which rules it is measured."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.learning_state import ADVISORY, read_learning_state
from mcp_ingress.toolsets.context_graph.pulse import PULSE, beat
from processors.context_graph.rules.johari import QUADRANTS
from processors.context_graph.rules.learning import AWAKE, intensity
from processors.context_graph.rules.lifecycle import Phase


async def utl_status(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """The means that the pulse tells, the phase of life, and its weights and thresholds."""
    is_fresh = await call.fresh()
    state = await read_learning_state(call)
    means = state.means
    return {
        "success": True,
        "interaction_count": means.interactions,
        "entropy": means.entropy,
        "coherence": means.coherence,
        "learning_score": means.learning_score,
        "johari_quadrant": means.quadrant,
        "consolidation_phase": state.consolidation_phase,
        "phase_angle": AWAKE,
        **_rules(means.phase),
        "intensity": intensity(means.learning_score),
        "advisory": state.advisory,
        PULSE.field: beat(means),
        **({} if is_fresh else {"stale": True}),
    }


def _rules(phase: Phase) -> dict[str, Any]:
    """What a phase of life sets."""
    weights = {"lambda_s": phase.lambda_s, "lambda_c": phase.lambda_c}
    return {"lifecycle_phase": phase.name, "stance": phase.stance, **weights, "thresholds": phase.thresholds}


TOOL = Tool(
    name="utl_status",
    toolset="context_graph",
    title="Learning status",
    description="Query current UTL (Unified Theory of Learning) state. `advisory` names a call to make next. "
    "`phase_angle` and `consolidation_phase` are shown only.",
    kind="read",
    handler=utl_status,
    input_schema={"type": "object", "properties": {}},
    output_schema=writes.output_schema(
        {
            "lifecycle_phase": {"type": "string", "enum": ["Infancy", "Growth", "Maturity"]},
            "stance": {"type": "string"},
            "interaction_count": {"type": "integer", "description": "Memories stored or injected, repeats too"},
            "entropy": {"type": "number"},
            "coherence": {"type": "number"},
            "learning_score": {"type": "number"},
            "johari_quadrant": {"type": "string", "enum": list(QUADRANTS)},
            "consolidation_phase": {"type": "string", "enum": ["NREM", "REM", "Wake"]},
            "phase_angle": {"type": "number", "description": "Radians"},
            "lambda_s": {"type": "number"},
            "lambda_c": {"type": "number"},
            "thresholds": {"type": "object"},
            "intensity": {"type": "string", "enum": ["Low", "Medium", "High"]},
            "advisory": ADVISORY,
        }
    ),
)

"""get_neuromodulation_state: the four modulators as they are now, and what they do to a search."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.session_state import moment, read_state
from processors.context_graph.read.state import read_learning_scores, read_levels
from processors.context_graph.rules.consciousness import is_surprised
from processors.context_graph.rules.modulators import (
    ACETYLCHOLINE,
    ALERT_ABOVE,
    MODULATORS,
    Modulator,
    acetylcholine,
)
from processors.context_graph.rules.workspace import WHOLE


async def get_neuromodulation_state(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Each modulator's level, range and effect, and the parameters that follow."""
    now = moment(call)
    (levels, scores), notes = await read_state(
        call,
        lambda cursor: (read_levels(cursor, call.namespace, now), read_learning_scores(cursor, call.namespace, WHOLE)),
    )
    learning = acetylcholine(is_surprised=is_surprised(scores))
    known = {name: getattr(levels, name, learning) for name in MODULATORS}
    return {
        "success": True,
        **{name: _shown(modulator, known[name]) for name, modulator in MODULATORS.items()},
        "derived_parameters": {
            "hopfield_beta": known["dopamine"],
            "attention_temp": known["noradrenaline"],
            "space_weight_factor": 2 * known["serotonin"],
            "utl_learning_rate": learning,
            "is_alert": known["noradrenaline"] > ALERT_ABOVE,
            "is_learning_elevated": learning > ACETYLCHOLINE.baseline,
        },
        **notes,
    }


def _shown(modulator: Modulator, level: float) -> dict[str, Any]:
    return {
        "level": level,
        "range": {"min": modulator.least, "baseline": modulator.baseline, "max": modulator.most},
        "parameter": modulator.parameter,
        "trigger": modulator.trigger,
        "effect": modulator.effect,
        "read_only": modulator.is_read_only,
    }


_MODULATOR = {"type": "object", "properties": {"level": {"type": "number"}, "read_only": {"type": "boolean"}}}

TOOL = Tool(
    name="get_neuromodulation_state",
    toolset="context_graph",
    title="Modulators",
    description="Get current neuromodulation state: dopamine (how few memories stand behind an answer), serotonin "
    "(how much views other than E1 weigh), noradrenaline (how much is near enough), acetylcholine (shown only). At "
    "their baselines searches are unchanged.",
    kind="read",
    handler=get_neuromodulation_state,
    input_schema={"type": "object", "properties": {}},
    output_schema=writes.output_schema(
        {**dict.fromkeys(MODULATORS, _MODULATOR), "derived_parameters": {"type": "object"}}
    ),
)

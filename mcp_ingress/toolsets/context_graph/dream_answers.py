"""What the tools of dreams say in common: a report, and its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_ingress.toolsets.context_graph.dreams import Dream
from processors.context_graph.read.dreams import StoredDream
from processors.context_graph.rules.dream_report import DreamReport

_COUNT = {"type": "integer", "minimum": 0}
_MS = {"type": "number", "minimum": 0}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_FLAG = {"type": "boolean"}
_NREM: Mapping[str, Any] = {
    "memories_replayed": _COUNT,
    "edges_strengthened": _COUNT,
    "edges_weakened": _COUNT,
    "edges_pruned": _COUNT,
    "clusters_consolidated": {**_COUNT, "description": "Connected components among the strengthened edges"},
    "compression_ratio": {"type": "number", "description": "Edges before by edges after"},
    "shortcut_candidates": _COUNT,
    "memories_merged": _COUNT,
    "duration_ms": _MS,
    "completed": _FLAG,
    "average_weight_delta": {"type": "number"},
}
_REM: Mapping[str, Any] = {
    "queries_generated": {**_COUNT, "description": "Walks among the memories"},
    "blind_spots_found": {**_COUNT, "description": "Walks that ended far from every memory; shown only"},
    "new_edges_created": _COUNT,
    "average_semantic_leap": {"type": "number", "description": "Mean distance of what was joined"},
    "exploration_coverage": {**_SHARE, "description": "Share of the memories near a walk; shown only"},
    "surroundings_embedded": {**_COUNT, "description": "Memories that searches know with what was said around them"},
    "duration_ms": _MS,
    "completed": _FLAG,
}
REPORT: Mapping[str, Any] = {
    "type": ["object", "null"],
    "description": "DreamReport; its counters are of changes that are kept",
    "properties": {
        "completed": _FLAG,
        "nrem_report": {"type": "object", "properties": _NREM},
        "rem_report": {"type": "object", "properties": _REM},
        "total_duration_ms": _MS,
        "wake_reason": {"type": ["string", "null"]},
        "shortcuts_created": _COUNT,
        "peak_gpu_usage": _SHARE,
        "wake_latency_ms": {"type": ["number", "null"]},
        "started_at": {"type": "string"},
        "ended_at": {"type": ["string", "null"]},
    },
}


def report_of(cycle: StoredDream | None, dream: Dream | None = None) -> dict[str, Any] | None:
    """The report as the store has it; of a dream that is not over, what it says of itself."""
    if cycle is not None and cycle.ended_at is not None and cycle.report is not None:
        return cycle.report.to_json()
    report: DreamReport | None = None if cycle is None else cycle.report
    report = report if dream is None else dream.report
    return None if report is None else report.to_json()

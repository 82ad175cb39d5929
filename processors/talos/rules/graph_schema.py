"""The schema of the graph projection, and a row of the store as its node.

Each label and relation of the ontology has its properties with their types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from processors.talos.rules.ontology import KNOWLEDGE_LABELS, LABELS, RELATIONS

_TYPES: Mapping[str, str] = {
    **dict.fromkeys(
        [
            "started_at",
            "ended_at",
            "created_at",
            "observed_at",
            "first_noticed",
            "last_occurred",
            "adopted_at",
            "made_at",
            "occurred_at",
            "raised_at",
            "resolved_at",
            "last_modified",
            "completed_at",
            "discovered_at",
        ],
        "TIMESTAMP",
    ),
    **dict.fromkeys(
        ["duration_seconds", "token_count", "tool_calls", "occurrence_count", "recurrence_count", "number"], "INT64"
    ),
    **dict.fromkeys(["confidence", "intensity"], "DOUBLE"),
    **dict.fromkeys(["goal_achieved", "reversible", "blocking", "context_dependent", "accepting", "active"], "BOOLEAN"),
    **dict.fromkeys(["indicators", "corruptions"], "STRING[]"),
}
_KNOWLEDGE = {"temporal_precision": "STRING", "is_live": "BOOLEAN"}

NODES: Mapping[str, Mapping[str, str]] = {
    label: {**{name: _TYPES.get(name, "STRING") for name in names}, **(_KNOWLEDGE if label in KNOWLEDGE_LABELS else {})}
    for label, names in LABELS.items()
}
"""Label -> property -> type, besides `id`."""

EDGES: Mapping[str, Mapping[str, str]] = {
    "PRODUCED": {"valid_from": "TIMESTAMP", "valid_to": "TIMESTAMP"},
    "LED_TO": {"contribution": "STRING"},
    "USED": {"count": "INT64", "success_rate": "DOUBLE"},
    "EXPERIENCED_STATE": {"intensity": "DOUBLE", "duration_fraction": "DOUBLE"},
    "INDICATES": {"confidence": "DOUBLE"},
    "RESOLVED_BY": {"resolved_at": "TIMESTAMP", "satisfaction": "DOUBLE"},
    "WORKED_WITH": {"role": "STRING"},
    "SERVES": {"contribution_type": "STRING"},
    "BLOCKED_BY": {"severity": "STRING", "resolved_at": "TIMESTAMP"},
    "ENABLED_BY": {"essential": "BOOLEAN"},
    "ACTIVATED": {"duration_fraction": "DOUBLE"},
    "FOLLOWED": {"completed": "BOOLEAN", "deviations": "INT64"},
    "REFINES": {"kind": "STRING"},
    "CONFLICTS_WITH": {"kind": "STRING"},
    "SUPERSEDES": {"superseded_at": "TIMESTAMP", "reason": "STRING"},
    "REVEALED": {"clarity": "DOUBLE"},
    "MERGED_INTO": {"merged_at": "TIMESTAMP"},
}
"""Relation -> property -> type; the others have none."""

_MOMENTS = (
    "started_at",
    "created_at",
    "observed_at",
    "first_noticed",
    "adopted_at",
    "made_at",
    "occurred_at",
    "raised_at",
    "discovered_at",
)
_TEXTS = ("goal", "content", "description", "name")


def schema() -> dict[str, Any]:
    """The projection's tables, as plain JSON.

    `nodes`: label -> property -> type. `edges`: relation -> its pairs of labels and its properties.
    """
    edges = {
        relation: {"pairs": sorted(pairs), "properties": dict(EDGES.get(relation, {}))}
        for relation, pairs in RELATIONS.items()
    }
    return {"nodes": {label: dict(properties) for label, properties in NODES.items()}, "edges": edges}


def node_of(
    label: str, node_id: str, text: str | None, created_at: str | None, stated: Mapping[str, Any]
) -> dict[str, Any]:
    """A row of `graph_nodes` as a node.

    What is stated counts; else text and time stand under the names that the label has for them.
    """
    named = NODES[label]
    node: dict[str, Any] = {name: stated.get(name) for name in named}
    for name in _TEXTS:
        if name in named and node[name] is None:
            node[name] = text
    moment = next((name for name in _MOMENTS if name in named), None)
    if moment is not None and node[moment] is None:
        node[moment] = created_at
    if "temporal_precision" in named and node["temporal_precision"] is None:
        node["temporal_precision"] = "instant"
    if (
        "is_live" in named and node["is_live"] is None
    ):  # patterns, and the names that sessions bring: nothing merges or prunes those
        node["is_live"] = node.get("status") != "deprecated"
    return {"id": node_id, **node}

"""The nodes and edges of a namespace, read from the store for the graph projection."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import duckdb
import orjson

from processors.talos.rules.graph_schema import EDGES, NODES, node_of, schema
from processors.talos.rules.ontology import is_legal
from storage.graph.edge_pruning import INHERITED

_NODES = """
SELECT label, node_id, name, created_at, confidence, domain, category, canonical_form, properties
FROM graph_nodes WHERE namespace = ? OR namespace IS NULL ORDER BY label, node_id"""
_EDGES = (
    "SELECT relation_type, from_label, from_id, to_label, to_id, properties "
    "FROM graph_edges WHERE namespace = ?{but} ORDER BY ALL"
)


def read_graph(cursor: duckdb.DuckDBPyConnection, namespace: str, is_whole: bool = True) -> dict[str, Any]:
    """What the projection is built from: its schema, nodes by label, edges by relation and pair of labels. Plain JSON.

    Without `is_whole` no session has inherited anything.
    """
    but = "" if is_whole else f" AND relation_type <> '{INHERITED}'"
    nodes: dict[str, dict[str, dict[str, Any]]] = {}
    for label, node_id, text, created_at, *columns, properties in cursor.execute(_NODES, [namespace]).fetchall():
        if label in NODES:
            named = dict(zip(("confidence", "domain", "category", "canonical_form"), columns, strict=True))
            stated = {
                **{name: value for name, value in named.items() if value is not None},
                **orjson.loads(properties or "{}"),
            }
            nodes.setdefault(label, {})[node_id] = _typed(
                node_of(label, node_id, text, _text(created_at), stated), NODES[label]
            )
    edges: dict[str, list[dict[str, Any]]] = {}
    for relation, from_label, from_id, to_label, to_id, properties in cursor.execute(
        _EDGES.format(but=but), [namespace]
    ).fetchall():
        if is_legal(relation, from_label, to_label):
            typed = EDGES.get(relation, {})
            stated = orjson.loads(properties or "{}")
            edge = _typed({name: stated.get(name) for name in typed}, typed)
            edges.setdefault(f"{relation} {from_label} {to_label}", []).append({"from": from_id, "to": to_id, **edge})
    return {
        "schema": schema(),
        "nodes": {label: list(found.values()) for label, found in nodes.items()},
        "edges": edges,
    }


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _typed(values: dict[str, Any], types: Any) -> dict[str, Any]:
    return {name: _fitting(value, types.get(name, "STRING")) for name, value in values.items()}


def _fitting(value: Any, kind: str) -> Any:
    """The value as its type has it; None when it is of another kind: a producer may say anything."""
    if value is None:
        return None
    if kind == "STRING[]":
        return [str(item) for item in value] if isinstance(value, list) else None
    if kind == "STRING":
        return value if isinstance(value, str) else orjson.dumps(value).decode()
    if kind == "BOOLEAN":
        return value if isinstance(value, bool) else None
    if kind == "TIMESTAMP":
        return _moment(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if kind == "DOUBLE" else int(value)


def _moment(value: Any) -> str | None:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return moment.replace(tzinfo=None).isoformat(sep=" ")

"""Reducers of edges between memories. Derived topic: what stages find, and what dreams change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from processors.context_graph.rules.edges import ends_of
from processors.frame.reducer import Key, Reducer, Rows, at
from streams.event_types.context_edges import EDGES_CHANGED, EDGES_FOUND
from streams.events import LoggedEvent

EDGES, CHANGES = "context_edges", "context_edge_changes"
CONFIDENCE = 1.0
"""Of an edge that comes without."""


def _key(edge: Mapping[str, Any]) -> Key:
    return (*ends_of(edge["source_id"], edge["target_id"], edge["kind"]), edge["kind"])


def _row(key: Key, edge: Mapping[str, Any]) -> dict[str, Any]:
    source_id, target_id, kind = key
    confidence = edge.get("confidence")
    told = {"weight": float(edge["weight"]), "confidence": CONFIDENCE if confidence is None else float(confidence)}
    return {"source_id": source_id, "target_id": target_id, "kind": kind, **told}


def _found_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    for edge in logged.event.data["edges"]:
        yield EDGES, _key(edge)


def _found(logged: LoggedEvent, rows: Rows) -> None:
    """The first finding stays, and what dreams made of it: found again, it changes with another space.

    A cause that is stated more surely replaces what is known of it.
    """
    moment = at(logged.event.time)
    for edge in logged.event.data["edges"]:
        key = _key(edge)
        if key[0] == key[1]:
            continue
        row, known = _row(key, edge), rows.get(EDGES, *key)
        is_moved = known is not None and edge.get("space") not in (None, known["space"])
        is_surer = known is not None and edge["kind"] == "causal" and row["confidence"] > known["confidence"]
        if known is None or is_moved or is_surer:
            created_at = moment if known is None else known["created_at"]
            about = {name: edge.get(name) for name in ("evidence", "space")}
            rows.put(EDGES, row | about | {"is_removed": False, "created_at": created_at, "changed_at": moment})


def _changed_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    for change in logged.event.data["changes"]:
        yield EDGES, _key(change)


def _changed(logged: LoggedEvent, rows: Rows) -> None:
    """An edge has the weight that the dream gave it, the last said. A change of a memory with itself says nothing.

    An edge that was withdrawn (weight 0) stays so: the dream may have read it before.
    """
    data, moment = logged.event.data, at(logged.event.time)
    for key, change in {_key(change): change for change in data["changes"]}.items():
        if key[0] == key[1]:
            continue
        row, is_removed, known = _row(key, change), bool(change.get("is_removed")), rows.get(EDGES, *key)
        if known is not None and not known["is_removed"] and known["weight"] == 0:
            continue
        before = None if known is None or known["is_removed"] else known["weight"]
        about = {"weight_before": before, "is_removed": is_removed, "dream_id": data["dream_id"]}
        rows.insert(CHANGES, row | about | {"changed_at": moment})
        if known is None:
            known = {"evidence": change.get("evidence"), "space": None, "created_at": moment}
        kept = {name: known[name] for name in ("evidence", "space", "created_at")}
        rows.put(EDGES, row | kept | {"is_removed": is_removed, "changed_at": moment})


REDUCERS = {EDGES_FOUND: Reducer(_found, _found_reads), EDGES_CHANGED: Reducer(_changed, _changed_reads)}

"""Reads how records stand to others: what holds in the place of one, and what is in a tension with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import duckdb
import numpy as np

from processors.memory.kind import Name
from processors.memory.registry import DISPUTES, SUCCESSORS
from storage.search.records.clusters import Clusters
from storage.search.records.hits import DocumentRows, SearchHit
from storage.search.records.label_map import ABSENT
from streams.ids import document_label

MAX_STEPS = 50
"""A line of successors is followed this far."""


def read_successors(
    cursor: duckdb.DuckDBPyConnection, documents: DocumentRows, namespace: str, record_ids: Iterable[str]
) -> dict[str, Name]:
    """By record that was superseded, corrected or merged what holds in its place now, the end of the line."""
    last = {identity: identity for identity in record_ids}
    for _ in range(MAX_STEPS):
        step = _successors(cursor, namespace, set(last.values()))
        if not step:
            break
        last = {identity: step.get(reached, reached) for identity, reached in last.items()}
    ended = {identity: reached for identity, reached in last.items() if reached != identity}
    labels = {document_label(namespace, reached) for reached in ended.values()}
    kinds = {identity: kind for kind, identity in documents.names(cursor, sorted(labels))}
    return {identity: (kinds[reached], reached) for identity, reached in ended.items() if reached in kinds}


def _successors(cursor: duckdb.DuckDBPyConnection, namespace: str, record_ids: Iterable[str]) -> dict[str, str]:
    rows = cursor.execute(
        f"SELECT record_id, successor_id FROM ({SUCCESSORS}) WHERE namespace = $namespace "
        "AND record_id IN (SELECT unnest($record_ids::VARCHAR[])) AND successor_id IS NOT NULL",
        {"namespace": namespace, "record_ids": list(record_ids)},
    ).fetchall()
    return {record_id: successor_id for record_id, successor_id in rows if record_id != successor_id}


def with_disputes(
    cursor: duckdb.DuckDBPyConnection, clusters: Clusters, namespace: str, hits: Sequence[SearchHit]
) -> list[SearchHit]:
    """The hits with the open tensions that each is in."""
    found = read_disputes(cursor, namespace, [(hit.toolset, hit.kind, hit.record_id) for hit in hits])
    disputed = []
    for hit in hits:
        others = found.get(hit.record_id, {})
        disputed_by, tensions = disputes(clusters, namespace, hit.earlier, hit.disputed_by, others)
        disputed.append(replace(hit, disputed_by=disputed_by, tensions=tensions) if tensions else hit)
    return disputed


def read_disputes(
    cursor: duckdb.DuckDBPyConnection, namespace: str, records: Iterable[tuple[str, str, str]]
) -> dict[str, Mapping[Name, str]]:
    """By record what it is in an open tension with -> the tension's id. Given (toolset, kind, record id)."""
    by_kind: dict[tuple[str, str], list[str]] = {}
    for toolset, kind, record_id in records:
        if (toolset, kind) in DISPUTES:
            by_kind.setdefault((toolset, kind), []).append(record_id)
    found: dict[str, Mapping[Name, str]] = {}
    for named, ids in by_kind.items():
        found |= DISPUTES[named](cursor, namespace, ids)
    return found


def disputes(
    clusters: Clusters,
    namespace: str,
    earlier: Sequence[Name],
    disputed_by: Sequence[Name],
    tensions: Mapping[Name, str],
) -> tuple[list[Name], Mapping[Name, str]]:
    """What disputes a record, and its tensions by what is named.

    What changes it disputes it, and what it is in tension with but does not change. Of several memories that
    state the same one is named: the one that `earlier` or `disputed_by` names, else the first.
    """
    if not tensions:
        return list(disputed_by), tensions
    names = [*earlier, *disputed_by, *tensions]
    numbers = clusters.find(np.array([document_label(namespace, identity) for _, identity in names], np.int64))
    named: dict[int, Name] = {}
    own: dict[Name, str] = {}
    for name, number in zip(names, numbers.tolist(), strict=True):
        one = name if number == ABSENT else named.setdefault(number, name)
        if name in tensions:
            own.setdefault(one, tensions[name])
    return list(dict.fromkeys([*disputed_by, *(other for other in own if other not in earlier)])), own

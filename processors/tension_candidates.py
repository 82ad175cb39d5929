"""Which beliefs a new one may be in tension with, read from the store: for the detector, and for the answer that runs ahead of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from processors.belief_rows import read_beliefs, read_labelled
from processors.belief_standing import read_standing, stands
from processors.valence.beliefs import label_of_record
from processors.valence.confidence import WEIGHTS, Confidence
from processors.valence.tensions import CANDIDATES, Finding, Held, judge
from storage.search.engine import SearchIndexes
from storage.statements import execute, marks

if TYPE_CHECKING:
    import duckdb

READ_AT_ONCE = CANDIDATES + 4
_HELD = f"""belief_id, content, created_at, domain_path, valid_from, valid_until, status, links, corroboration_count, overall,
overall_origin, {", ".join(WEIGHTS)}"""
_OLD_PARTNERS = """
SELECT CASE WHEN t.belief_a_id = b.supersedes_id THEN t.belief_b_id ELSE t.belief_a_id END
FROM valence_beliefs b JOIN tension_findings t ON t.namespace = b.namespace AND b.supersedes_id IN (t.belief_a_id, t.belief_b_id)
WHERE b.label = $1 AND b.namespace = $2 AND b.supersedes_id IS NOT NULL"""


@dataclass(frozen=True, slots=True)
class Stated:
    """A belief that is looked at for conflicts: whether it is held, the entities it is linked to, and what it has superseded."""

    is_active: bool
    linked: frozenset[str]
    supersedes_id: str | None


def read_stated(cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Collection[str]) -> dict[str, Stated]:
    """Those of these beliefs that there are, by id."""
    rows = read_beliefs(cursor, "belief_id, links, supersedes_id, status", namespace, ids)
    return {
        belief_id: Stated(status == "active", frozenset(link["entity_id"] for link in orjson.loads(links)), supersedes_id)
        for belief_id, links, supersedes_id, status in rows
    }


def find_tensions(
    cursor: duckdb.DuckDBPyConnection,
    indexes: SearchIndexes,
    namespace: str,
    belief_id: str,
    stated: Stated,
    vector: np.ndarray | None,
    near: Mapping[str, float],
    *,
    space: str | None = None,
) -> list[Finding]:
    """The conflicts of a belief with others, best score first; none when it is not held any more.

    `vector`: the unit vector of its text in `space`, None without a model; `near`: what `nearest_held` found for it.
    """
    if not stated.is_active:
        return []
    others = beliefs_about(cursor, namespace, set(_canonical(cursor, namespace, stated.linked).values()))
    if stated.supersedes_id is not None:
        others.update(other for (other,) in execute(cursor, _OLD_PARTNERS, [label_of_record(namespace, belief_id), namespace]).fetchall())
    others = (others | near.keys()) - {belief_id}
    if not others:
        return []
    cosines = {**_cosines(indexes, vector, space, {other: label_of_record(namespace, other) for other in others - near.keys()}), **near}
    ordered = sorted(others, key=lambda other: (-cosines.get(other, -1.0), other))
    [new, *best] = _first_held(cursor, namespace, [belief_id, *ordered], CANDIDATES + 1)
    findings = (judge(other, new, cosines.get(other.belief_id)) for other in best)
    return sorted((finding for finding in findings if finding is not None), key=lambda finding: (-finding.score, finding.tension_id))


def nearest_held(
    cursor: duckdb.DuckDBPyConnection,
    indexes: SearchIndexes,
    namespace: str,
    vectors: np.ndarray,
    least: float,
    enough: int,
    *,
    space: str | None = None,
) -> list[dict[str, float]]:
    """For each of (n, dim) unit vectors of `space` the active beliefs whose cosine is at least this, belief id -> cosine;
    the nearest of them, when they are more than `enough`.

    The index holds other records and other namespaces too: it is asked for more until enough of what it names are beliefs.
    """
    found: list[dict[str, float]] = [{} for _ in vectors]
    left, asked = list(range(len(vectors))), 4 * enough
    while left:
        near = dict(zip(left, indexes.nearest_to_each(vectors[left], asked, least, space=space), strict=True))
        held = _held_among(cursor, namespace, sorted({label for matches in near.values() for label, _ in matches}))
        for number, matches in near.items():
            found[number] = {held[label]: cosine for label, cosine in matches if label in held}
        left = [number for number in left if len(near[number]) == asked and len(found[number]) < enough]
        asked *= 4
    return found


def _held_among(cursor: duckdb.DuckDBPyConnection, namespace: str, labels: Sequence[int]) -> dict[int, str]:
    """Those of these labels that are active beliefs', with their ids."""
    rows = read_labelled(cursor, "belief_id, label, status", namespace, labels)
    return {label: belief_id for belief_id, label, status in rows if status == "active"}


def beliefs_about(cursor: duckdb.DuckDBPyConnection, namespace: str, entities: Collection[str]) -> set[str]:
    """Every belief, whatever has become of it, that is linked to one of these canonical entities or to what was merged into it."""
    if not entities:
        return set()
    merged = execute(
        cursor,
        f"SELECT entity_id FROM entity_resolutions WHERE namespace = ? AND canonical_id IN ({marks(entities)})",
        [namespace, *entities],
    ).fetchall()
    group = [*entities, *(entity_id for (entity_id,) in merged)]
    rows = execute(
        cursor, f"SELECT belief_id FROM valence_belief_entities WHERE namespace = ? AND entity_id IN ({marks(group)})", [namespace, *group]
    ).fetchall()
    return {belief_id for (belief_id,) in rows}


def _canonical(cursor: duckdb.DuckDBPyConnection, namespace: str, entities: Collection[str]) -> dict[str, str]:
    """What each of these entities goes by: itself, unless it was merged."""
    if not entities:
        return {}
    merged = execute(
        cursor,
        f"SELECT entity_id, canonical_id FROM entity_resolutions WHERE namespace = ? AND entity_id IN ({marks(entities)})",
        [namespace, *entities],
    ).fetchall()
    return {entity: entity for entity in entities} | dict(merged)


def _first_held(cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Sequence[str], count: int) -> list[Held]:
    """The first so many of these beliefs that are active, in this order."""
    found: list[Held] = []
    for start in range(0, len(ids), READ_AT_ONCE):
        held = _read(cursor, namespace, ids[start : start + READ_AT_ONCE])
        found += [held[belief_id] for belief_id in ids[start : start + READ_AT_ONCE] if belief_id in held]
        if len(found) >= count:
            break
    return found[:count]


def _read(cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Sequence[str]) -> dict[str, Held]:
    rows = [row for row in read_beliefs(cursor, _HELD, namespace, ids) if row[6] == "active"]
    standing = read_standing(cursor, namespace, [row[0] for row in rows if row[10] == "computed"])  # the others keep their overall
    subjects = {row[0]: [link["entity_id"] for link in orjson.loads(row[7]) if link["role"] == "subject"] for row in rows}
    canonical = _canonical(cursor, namespace, {entity for named in subjects.values() for entity in named})
    held = {}
    for belief_id, content, created_at, domain_path, valid_from, valid_until, status, _, count, overall, origin, *dimensions in rows:
        given = {name: value for name, value in zip(WEIGHTS, dimensions, strict=True) if value is not None}
        confidence, _ = stands(Confidence(overall, origin, given), status, count, standing.get(belief_id))
        about = frozenset(canonical[entity] for entity in subjects[belief_id])
        held[belief_id] = Held(belief_id, content, confidence.overall, created_at, domain_path, valid_from, valid_until, about)
    return held


def _cosines(indexes: SearchIndexes, vector: np.ndarray | None, space: str | None, labels: Mapping[str, int]) -> dict[str, float]:
    if vector is None or not labels:
        return {}
    found: Any = indexes.cosines(vector, np.array(list(labels.values()), np.int64), space=space)
    return {identity: float(cosine) for identity, cosine in zip(labels, found, strict=True) if not np.isnan(cosine)}

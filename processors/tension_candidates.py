"""Which beliefs a new one may be in tension with, read from the store: for the detector, and for the answer that runs ahead of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from processors.valence.tensions import CANDIDATE_COSINE, CANDIDATES, Finding, Held, judge
from storage.search.engine import SearchIndexes

if TYPE_CHECKING:
    import duckdb

NEAR = 64
"""Records near to the new one that are looked at: not all of them are beliefs that are held."""

_HELD = """
SELECT b.belief_id, b.content, b.overall, b.created_at, b.domain_path, b.valid_from, b.valid_until, b.label
FROM beliefs b WHERE b.namespace = $1 AND b.belief_id IN (SELECT unnest($2::VARCHAR[]))"""
_SHARING = """
SELECT DISTINCT o.belief_id FROM belief_entities n
JOIN belief_entities o ON o.namespace = n.namespace AND o.entity_id = n.entity_id
JOIN valence_beliefs b ON b.namespace = o.namespace AND b.belief_id = o.belief_id AND b.status = 'active'
WHERE n.namespace = $1 AND n.belief_id = $2 AND o.belief_id <> $2"""
_NEAR = """
SELECT belief_id, label FROM valence_beliefs
WHERE namespace = $1 AND label IN (SELECT unnest($2::BIGINT[])) AND status = 'active' AND belief_id <> $3"""
_OLD_PARTNERS = """
SELECT CASE WHEN t.belief_a_id = b.supersedes_id THEN t.belief_b_id ELSE t.belief_a_id END
FROM valence_beliefs b JOIN tension_findings t ON t.namespace = b.namespace AND b.supersedes_id IN (t.belief_a_id, t.belief_b_id)
JOIN valence_beliefs o ON o.namespace = b.namespace AND o.status = 'active'
     AND o.belief_id = CASE WHEN t.belief_a_id = b.supersedes_id THEN t.belief_b_id ELSE t.belief_a_id END
WHERE b.namespace = $1 AND b.belief_id = $2 AND o.belief_id <> $2"""


def find_tensions(
    cursor: duckdb.DuckDBPyConnection, indexes: SearchIndexes, namespace: str, belief_id: str, vector: np.ndarray | None
) -> list[Finding]:
    """The conflicts of an active belief with others, best score first. `vector`: the unit vector of its text, None without a model."""
    own = cursor.execute(
        "SELECT content FROM valence_beliefs WHERE namespace = $1 AND belief_id = $2 AND status = 'active'", [namespace, belief_id]
    ).fetchall()
    if not own:
        return []
    near: dict[str, float] = {}
    if vector is not None:
        found = {label: cosine for label, cosine in indexes.nearest(cursor, vector, NEAR) if cosine >= CANDIDATE_COSINE}
        rows = cursor.execute(_NEAR, [namespace, list(found), belief_id]).fetchall() if found else []
        near = {other: found[label] for other, label in rows}
    others = [other for (other,) in cursor.execute(_SHARING, [namespace, belief_id]).fetchall()]
    others += [other for (other,) in cursor.execute(_OLD_PARTNERS, [namespace, belief_id]).fetchall()]
    wanted = dict.fromkeys([*near, *others])
    if not wanted:
        return []
    held, labels = _read(cursor, namespace, [belief_id, *wanted])
    new = held.pop(belief_id)
    cosines = _cosines(indexes, vector, labels) | near
    best = sorted(held.values(), key=lambda other: (-cosines.get(other.belief_id, -1.0), other.belief_id))[:CANDIDATES]
    findings = (judge(other, new, cosines.get(other.belief_id)) for other in best)
    return sorted((finding for finding in findings if finding is not None), key=lambda finding: (-finding.score, finding.tension_id))


def _read(cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Sequence[str]) -> tuple[dict[str, Held], dict[str, int]]:
    rows = cursor.execute(_HELD, [namespace, list(ids)]).fetchall()
    subjects: dict[str, set[str]] = {}
    links = cursor.execute(
        "SELECT belief_id, entity_id FROM belief_entities "
        "WHERE namespace = $1 AND role = 'subject' AND belief_id IN (SELECT unnest($2::VARCHAR[]))",
        [namespace, list(ids)],
    )
    for belief_id, entity_id in links.fetchall():
        subjects.setdefault(belief_id, set()).add(entity_id)
    held = {row[0]: replace(Held(*row[:7]), subjects=frozenset(subjects.get(row[0], ()))) for row in rows}
    return held, {row[0]: row[7] for row in rows}


def _cosines(indexes: SearchIndexes, vector: np.ndarray | None, labels: Mapping[str, int]) -> dict[str, float]:
    if vector is None or not labels:
        return {}
    found: Any = indexes.cosines(vector, np.array(list(labels.values()), np.int64))
    return {identity: float(cosine) for identity, cosine in zip(labels, found, strict=True) if not np.isnan(cosine)}

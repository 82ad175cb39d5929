"""The consistency of a few beliefs with their tensions, read from the tables.

The view `beliefs` says the same of all beliefs, at fifty times the cost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from processors.valence.read.belief_rows import read_beliefs
from processors.valence.rules.beliefs import KIND as BELIEF
from processors.valence.rules.confidence import Confidence, under_tension
from processors.valence.rules.tensions import CONSISTENT
from storage.statements import execute, marks

if TYPE_CHECKING:
    import duckdb

GRAVE = ("high", "critical")
_FINDINGS = "SELECT tension_id, belief_a_id, belief_b_id, severity, consistency_a, consistency_b FROM tension_findings"
_MANY = 200
"""For more beliefs all findings are read once."""


class Consistency(NamedTuple):
    """A belief that was ever in a tension: its consistency now, and whether an open tension is grave."""

    value: float
    is_disputed: bool


def read_consistency(cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Sequence[str]) -> dict[str, Consistency]:
    """Those of these beliefs that were ever in a tension, by id."""
    found: dict[str, Consistency] = {}
    wanted = set(ids)
    for (_, a, b, severity, consistency_a, consistency_b), is_open in _judged(cursor, namespace, ids):
        for belief_id, consistency in ((a, consistency_a), (b, consistency_b)):
            if belief_id in wanted:
                found[belief_id] = _worse(found.get(belief_id), is_open, severity, consistency)
    return {
        belief_id: Consistency(CONSISTENT if left > 1 else left, grave) for belief_id, (left, grave) in found.items()
    }


def open_tensions(
    cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Collection[str]
) -> dict[str, dict[tuple[str, str], str]]:
    """By belief the others that it is in an open tension with, as (kind, id) -> the tension's id."""
    found: dict[str, dict[tuple[str, str], str]] = {}
    for (tension, a, b, *_), is_open in _judged(cursor, namespace, list(ids)):
        for belief_id, other in ((a, b), (b, a)):
            if is_open and belief_id in ids:
                found.setdefault(belief_id, {})[BELIEF, other] = tension
    return found


def _judged(
    cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Sequence[str]
) -> list[tuple[tuple[Any, ...], bool]]:
    """The findings about these beliefs, where both are there, and whether each is open."""
    findings = _findings(cursor, namespace, ids) if ids else []
    if not findings:
        return []
    known = {belief_id for row in findings for belief_id in row[1:3]}
    closed = dict(read_beliefs(cursor, "belief_id, closed_at IS NOT NULL", namespace, known))
    resolved = _resolved(cursor, namespace, [row[0] for row in findings])
    return [
        (row, not (row[0] in resolved or closed[row[1]] or closed[row[2]]))
        for row in findings
        if row[1] in closed and row[2] in closed
    ]


def _findings(cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Sequence[str]) -> list[tuple[Any, ...]]:
    """The findings about these beliefs. Twice where about two of them: each side has an index, unused by an OR."""
    if len(ids) > _MANY:
        either = "(belief_a_id IN (SELECT unnest(?::VARCHAR[])) OR belief_b_id IN (SELECT unnest(?::VARCHAR[])))"
        return execute(
            cursor, f"{_FINDINGS} WHERE namespace = ? AND {either}", [namespace, list(ids), list(ids)]
        ).fetchall()
    sides = [f"{_FINDINGS} WHERE {side} IN ({marks(ids)}) AND namespace = ?" for side in ("belief_a_id", "belief_b_id")]
    return execute(cursor, " UNION ALL ".join(sides), [*ids, namespace, *ids, namespace]).fetchall()


def _worse(known: Consistency | None, is_open: bool, severity: str, consistency: float) -> Consistency:
    """The least of the open ones; more than 1 while there is none."""
    left, grave = known or Consistency(2.0, False)
    return Consistency(min(left, consistency), grave or severity in GRAVE) if is_open else Consistency(left, grave)


def _resolved(cursor: duckdb.DuckDBPyConnection, namespace: str, tensions: Sequence[str]) -> set[str]:
    where = f"WHERE namespace = ? AND action IS NOT NULL AND tension_id IN ({marks(tensions)})"
    rows = execute(cursor, f"SELECT tension_id FROM tension_resolutions {where}", [namespace, *tensions]).fetchall()
    return {tension for (tension,) in rows}


def with_tensions(
    confidence: Confidence, status: str, count: int, tensions: Consistency | None
) -> tuple[Confidence, str]:
    """Confidence and status of a belief with its tensions counted in; `count`: its sources."""
    if tensions is None:
        return confidence, status
    disputed = status == "active" and tensions.is_disputed
    return under_tension(confidence, tensions.value, count), "disputed" if disputed else status

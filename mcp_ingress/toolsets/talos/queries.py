"""What the Talos tools ask of the store: SQL over the public tables, one function a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import duckdb

from processors.talos.ontology import INHERITED_LABELS, PRELOADED

MAX_RELATED = 10
MAX_SIMILAR = 5


@dataclass(frozen=True, slots=True)
class Counters:
    """What happened in a session: calls of tools, input + output tokens, knowledge produced."""

    tool_calls: int
    token_count: int
    insights_produced: int
    frictions_logged: int


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A friction's own occurrence number in its cluster, and the earlier ones, newest first."""

    count: int
    similar: list[dict[str, str]]


def session_exists(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> bool:
    """Whether the session was ever opened."""
    found = cursor.execute("SELECT 1 FROM talos_sessions WHERE namespace = ? AND session_id = ?", [namespace, session_id]).fetchone()
    return found is not None


def count_inherited(cursor: duckdb.DuckDBPyConnection, namespace: str, opened_at: datetime) -> dict[str, int]:
    """Live entities of the seven inherited kinds that were there when the session opened; `opened_at` is UTC without zone."""
    rows = cursor.execute(
        "SELECT label, count(*) FROM entities_live WHERE namespace = ? AND created_at < ? AND label IN (SELECT unnest(?)) GROUP BY label",
        [namespace, opened_at, list(INHERITED_LABELS.values())],
    ).fetchall()
    counts = dict(rows)
    return {part: counts.get(label, 0) for part, label in INHERITED_LABELS.items()}


def count_session(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> Counters:
    """The session's counters; zero for what was never published."""
    row = cursor.execute(
        """
        SELECT (SELECT count(*) FROM tool_calls WHERE namespace = $1 AND session_id = $2),
               (SELECT coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)), 0)
                FROM model_calls WHERE namespace = $1 AND session_id = $2),
               (SELECT count(*) FROM entities_live WHERE namespace = $1 AND session_id = $2 AND label = 'Insight'),
               (SELECT count(*) FROM entities WHERE namespace = $1 AND session_id = $2 AND label = 'Friction')
        """,
        [namespace, session_id],
    ).fetchone()
    assert row is not None, "a query of scalar subqueries has one row"
    return Counters(*(int(value) for value in row))


def find_recurrence(cursor: duckdb.DuckDBPyConnection, namespace: str, friction_id: str) -> Recurrence | None:
    """How often this friction had occurred when it was logged; None when it is not there."""
    own = cursor.execute(
        "SELECT occurrence, canonical_id FROM frictions WHERE namespace = ? AND friction_id = ?", [namespace, friction_id]
    ).fetchone()
    if own is None:
        return None
    occurrence, canonical_id = own
    earlier = cursor.execute(
        "SELECT friction_id, description FROM frictions WHERE namespace = ? AND canonical_id = ? AND occurrence < ? "
        "ORDER BY occurrence DESC LIMIT ?",
        [namespace, canonical_id, occurrence, MAX_SIMILAR],
    ).fetchall()
    return Recurrence(occurrence, [{"id": identity, "description": description} for identity, description in earlier])


def find_related(cursor: duckdb.DuckDBPyConnection, namespace: str, record_ids: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """The live neighbours of each record, one hop, at most ten, sessions first: `{"type": label, "id": id}`.

    An edge counts where both of its ends exist; those of a merged record are its cluster's. A journal entry's neighbours
    are its session and what was found in it.
    """
    ids = list(dict.fromkeys(record_ids))
    edges = cursor.execute(
        """
        WITH asked AS (SELECT unnest($2::VARCHAR[]) AS record_id),
        members AS (
            SELECT record_id, record_id AS member_id FROM asked
            UNION SELECT a.record_id, m.record_id FROM asked a JOIN merges m ON m.namespace = $1 AND m.into_id = a.record_id),
        edges AS (
            SELECT record_id, to_id AS end_id FROM members JOIN relations r ON r.namespace = $1 AND r.from_id = member_id
            UNION SELECT record_id, from_id FROM members JOIN relations r ON r.namespace = $1 AND r.to_id = member_id
            UNION SELECT record_id, session_id FROM asked JOIN talos_journal j ON j.namespace = $1 AND j.entry_id = record_id
            UNION SELECT record_id, entity_id FROM asked JOIN talos_journal j ON j.namespace = $1 AND j.entry_id = record_id
                  JOIN entities e ON e.namespace = $1 AND e.source_event_id = j.event_id
            UNION SELECT record_id, session_id FROM asked JOIN talos_sessions s ON s.namespace = $1 AND s.goal_id = record_id),
        neighbours AS (
            SELECT DISTINCT edges.record_id, coalesce(m.into_id, end_id) AS other_id
            FROM edges LEFT JOIN merges m ON m.namespace = $1 AND m.record_id = end_id)
        SELECT n.record_id, other_id, CASE WHEN s.session_id IS NOT NULL THEN 'Session' ELSE e.label END AS label
        FROM neighbours n
        LEFT JOIN talos_sessions s ON s.namespace = $1 AND s.session_id = other_id
        LEFT JOIN entities e ON e.namespace = $1 AND e.entity_id = other_id
        WHERE other_id <> n.record_id
        ORDER BY n.record_id, s.session_id IS NULL, other_id
        """,
        [namespace, ids],
    ).fetchall()
    related: dict[str, list[dict[str, str]]] = {identity: [] for identity in ids}
    for record_id, other_id, known_label in edges:
        label = known_label or PRELOADED.get(other_id, (None, ""))[0]
        if label is not None and len(related[record_id]) < MAX_RELATED:
            related[record_id].append({"type": label, "id": other_id})
    return related

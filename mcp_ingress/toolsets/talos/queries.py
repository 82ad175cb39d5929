"""What the Talos tools ask of the store: SQL over the public tables, one function a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
import orjson

from processors.session_state import read_state
from processors.significance_counts import count_significance
from processors.talos.ontology import INHERITED_LABELS, PRELOADED
from processors.talos.session_signals import indicators_now
from processors.talos.significance import Counts

MAX_RELATED = 10
MAX_SIMILAR = 5
MAX_SIGNALS = 50


@dataclass(frozen=True, slots=True)
class SessionCounters:
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


@dataclass(frozen=True, slots=True)
class Seen:
    """What pattern_check answers from: the session's goal and frictions, what holds in it now, what is known of all sessions."""

    texts: list[str]
    indicators: set[str]
    patterns: list[dict[str, Any]]
    signals: list[dict[str, Any]]
    counts: Counts


def read_patterns(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str, now: datetime) -> Seen | None:
    """None when there is no such session."""
    state = read_state(cursor, namespace, session_id, now)
    if state is None:
        return None
    key = [namespace, session_id]
    texts = cursor.execute(
        "SELECT goal FROM talos_sessions WHERE namespace = $1 AND session_id = $2 UNION ALL "
        "SELECT text FROM entities WHERE namespace = $1 AND session_id = $2 AND label = 'Friction'",
        key,
    ).fetchall()
    patterns = cursor.execute(
        "SELECT pattern_id, name, status, last_occurred_at, total_occurrences, indicators FROM patterns WHERE namespace = ?", [namespace]
    ).fetchall()
    signals = cursor.execute(
        "SELECT description, occurrences FROM signals WHERE namespace = ? AND occurrences = 2 ORDER BY last_signalled_at DESC, signal_id LIMIT ?",
        [namespace, MAX_SIGNALS],
    ).fetchall()
    return Seen(
        [text for (text,) in texts],
        indicators_now(state),
        [
            {
                "id": identity,
                "name": name,
                "status": status,
                "last_occurred": last.date().isoformat(),
                "total_occurrences": occurrences,
                "indicators": orjson.loads(indicators or "[]"),
            }
            for identity, name, status, last, occurrences, indicators in patterns
        ],
        [{"description": description, "occurrences": occurrences} for description, occurrences in signals],
        count_significance(cursor, namespace),
    )


def session_exists(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> bool:
    """Whether the session was ever opened."""
    found = cursor.execute("SELECT 1 FROM talos_sessions WHERE namespace = ? AND session_id = ?", [namespace, session_id]).fetchone()
    return found is not None


def count_inherited(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> dict[str, int]:
    """How much of each of the seven inherited kinds was live when the session opened: its INHERITED edges."""
    rows = cursor.execute(
        "SELECT label, count(*) FROM session_inherited WHERE namespace = ? AND session_id = ? GROUP BY label", [namespace, session_id]
    ).fetchall()
    counts = dict(rows)
    return {part: counts.get(label, 0) for part, label in INHERITED_LABELS.items()}


def count_session(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> SessionCounters:
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
    return SessionCounters(*(int(value) for value in row))


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
    are its session and what was found in it, a pattern's the sessions that showed it.
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
            UNION SELECT record_id, session_id FROM asked JOIN talos_sessions s ON s.namespace = $1 AND s.goal_id = record_id
            UNION SELECT record_id, session_id FROM asked JOIN pattern_signals p ON p.namespace = $1 AND p.signal_id = record_id),
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

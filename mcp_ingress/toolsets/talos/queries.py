"""What the Talos tools ask of the store: SQL over the public tables, one function a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
import orjson

from processors.talos.read.session_state import read_state
from processors.talos.read.significance_counts import count_significance
from processors.talos.rules.ontology import INHERITED_LABELS, JOURNAL_ENTRY, PRELOADED
from processors.talos.rules.session_signals import indicators_now
from processors.talos.rules.significance import SignificanceCounts
from storage.search.index_set import IndexSet
from storage.search.records.hits import SearchHit
from storage.statements import execute

MAX_RELATED = 10
MAX_SIMILAR = 5
MAX_SIGNALS = 50
MAX_KNOWN_SESSIONS = 10_000


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
class PatternContext:
    """What pattern_check compares: the session's goal and frictions, and the patterns that are known."""

    texts: list[str]
    patterns: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class PatternEvidence:
    """What pattern_check weighs: what holds in the session now, and what is known of all sessions."""

    indicators: set[str]
    signals: list[dict[str, Any]]
    counts: SignificanceCounts


def read_context(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> PatternContext | None:
    """None when there is no such session."""
    texts = execute(
        cursor,
        "SELECT goal FROM talos_sessions WHERE namespace = $1 AND session_id = $2 UNION ALL "
        "SELECT text FROM entities WHERE namespace = $1 AND session_id = $2 AND label = 'Friction'",
        [namespace, session_id],
    ).fetchall()
    if not texts or not session_exists(cursor, namespace, session_id):
        return None
    patterns = execute(
        cursor,
        "SELECT pattern_id, name, status, last_occurred_at, total_occurrences, indicators FROM patterns "
        "WHERE namespace = ? AND status <> 'deprecated'",
        [namespace],
    ).fetchall()
    return PatternContext(
        [text for (text,) in texts],
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
    )


def read_evidence(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str, now: datetime) -> PatternEvidence:
    """An existing session's indicators, emerging signals and counts of significance.

    An emerging signal lacks one occurrence to be a pattern.
    """
    state = read_state(cursor, namespace, session_id, now)
    signals = execute(
        cursor,
        "SELECT description, occurrences FROM signals WHERE namespace = ? AND occurrences = 2 "
        "ORDER BY last_signalled_at DESC, signal_id LIMIT ?",
        [namespace, MAX_SIGNALS],
    ).fetchall()
    return PatternEvidence(
        set() if state is None else indicators_now(state),
        [{"description": description, "occurrences": occurrences} for description, occurrences in signals],
        count_significance(cursor, namespace),
    )


def session_exists(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> bool:
    """Whether the session was ever opened."""
    found = execute(
        cursor, "SELECT 1 FROM talos_sessions WHERE namespace = ? AND session_id = ?", [namespace, session_id]
    ).fetchone()
    return found is not None


def count_inherited(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> dict[str, int]:
    """How much of each of the seven inherited kinds was live when the session opened: its INHERITED edges."""
    rows = execute(
        cursor,
        "SELECT label, count(*) FROM session_inherited WHERE namespace = ? AND session_id = ? GROUP BY label",
        [namespace, session_id],
    ).fetchall()
    counts = dict(rows)
    return {part: counts.get(label, 0) for part, label in INHERITED_LABELS.items()}


def count_session(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> SessionCounters:
    """The session's counters; zero for what was never published."""
    row = execute(
        cursor,
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
    own = execute(
        cursor,
        "SELECT occurrence, canonical_id FROM frictions WHERE namespace = ? AND friction_id = ?",
        [namespace, friction_id],
    ).fetchone()
    if own is None:
        return None
    occurrence, canonical_id = own
    earlier = execute(
        cursor,
        "SELECT friction_id, description FROM frictions WHERE namespace = ? AND canonical_id = ? AND occurrence < ? "
        "ORDER BY occurrence DESC LIMIT ?",
        [namespace, canonical_id, occurrence, MAX_SIMILAR],
    ).fetchall()
    return Recurrence(occurrence, [{"id": identity, "description": description} for identity, description in earlier])


def find_related(
    cursor: duckdb.DuckDBPyConnection,
    indexes: IndexSet,
    namespace: str,
    hits: Sequence[SearchHit],
    may_hold: Callable[[str, tuple[str, ...]], bool] = lambda table, key: True,
) -> dict[str, list[dict[str, str]]]:
    """The live neighbours of each record, one hop away, at most ten, sessions first.

    Each is `{"type": label, "id": id}`. An edge counts where both of its ends exist; those of a merged record
    are its cluster's. A journal entry's neighbours are its session and what was found in it, a pattern's the sessions
    that showed it. `may_hold`: False of a table and a primary key that the store surely has no row for.
    """
    ends = {hit.record_id: _ends(cursor, indexes, namespace, hit) for hit in hits}
    for kind, source in _SESSIONS_OF.items():
        if ids := [hit.record_id for hit in hits if hit.kind == kind]:
            for record_id, session_id in execute(cursor, source, [namespace, ids]).fetchall():
                ends[record_id].setdefault(session_id)
    unlabelled = {end for some in ends.values() for end, label in some.items() if label is None}
    unknown = [end for end in unlabelled if may_hold("talos_sessions", (namespace, end))]
    sessions = _sessions(cursor, indexes, namespace, sorted(unknown))
    related: dict[str, list[dict[str, str]]] = {}
    for record_id, some in ends.items():
        labels = {end: "Session" if end in sessions else label for end, label in some.items()}
        order = sorted(
            (end for end, label in labels.items() if label is not None), key=lambda end: (end not in sessions, end)
        )
        related[record_id] = [{"type": str(labels[end]), "id": end} for end in order[:MAX_RELATED]]
    return related


_SESSIONS_OF = {
    "Goal": "SELECT goal_id, session_id FROM talos_sessions "
    "WHERE namespace = $1 AND goal_id IN (SELECT unnest($2::VARCHAR[]))",
    "Pattern": "SELECT signal_id, session_id FROM pattern_signals "
    "WHERE namespace = $1 AND signal_id IN (SELECT unnest($2::VARCHAR[]))",
}
"""(record, session) of kinds that no relation joins with their sessions."""


def _ends(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, namespace: str, hit: SearchHit
) -> dict[str, str | None]:
    """id -> label of what a record is joined with, None where only the sessions can tell."""
    is_entry = hit.kind == JOURNAL_ENTRY
    relations = indexes.records.follow_relations(cursor)
    ends = relations.ends(namespace, hit.record_id, hit.event_id if is_entry else None)
    if is_entry and hit.session_id is not None:
        ends.setdefault(hit.session_id)
    return {end: label or PRELOADED.get(end, (None, ""))[0] for end, label in ends.items()}


def _sessions(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, namespace: str, ids: Sequence[str]) -> set[str]:
    """Those of the ids that are sessions which were opened."""
    known: dict[str, bool] = indexes.records.cached(cursor, ("sessions", namespace), _opened)
    if unknown := [identity for identity in ids if identity not in known]:
        rows = execute(
            cursor,
            "SELECT session_id FROM talos_sessions WHERE namespace = ? AND session_id IN (SELECT unnest(?::VARCHAR[]))",
            [namespace, unknown],
        ).fetchall()
        opened = {session_id for (session_id,) in rows}
        known.update({identity: identity in opened for identity in unknown})
        return {identity for identity in ids if identity in opened or known.get(identity)}
    return {identity for identity in ids if known[identity]}


def _opened(known: dict[str, bool] | None, rows: Mapping[str, int]) -> dict[str, bool]:
    """The ids that are known to be sessions: what was none may be one after the next commit."""
    opened = [identity for identity, is_opened in list((known or {}).items()) if is_opened]
    return dict.fromkeys(opened[-MAX_KNOWN_SESSIONS:], True)

"""Why a session is, or is not, among the sessions that answer a question.

The search for sessions itself is run.
"""

from __future__ import annotations

import duckdb

from storage.search.captured import CAPTURED, MEMORIES, reading, turns_asked
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.sessions import search_sessions
from storage.search.why import Explanation, failed_filters, filter_reason


def is_session(cursor: duckdb.DuckDBPyConnection, namespace: str, identity: str) -> bool:
    """Whether something is known of a session of this id."""
    row = cursor.execute(
        "SELECT EXISTS (FROM sessions WHERE namespace = $1 AND session_id = $2) "
        "OR EXISTS (FROM documents WHERE namespace = $1 AND session_id = $2) "
        "OR EXISTS (FROM turns WHERE namespace = $1 AND session_id = $2)",
        [namespace, identity],
    ).fetchone()
    return row is not None and bool(row[0])


def explain_session(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query, session_id: str) -> Explanation:
    """Why `search_sessions` returns the session for this query, or does not. `parts` are those of its score."""
    filter, limit = query.filter, query.limit
    searched = (MEMORIES, CAPTURED) if turns_asked(indexes, query) is not None else (MEMORIES,)
    counted = {schema: _count(cursor, schema, filter, session_id) for schema in searched}
    records = sum(count for count, _ in counted.values())
    if not records:
        return Explanation("unmatched", reasons=("It is a session, but no record of it can be searched.",))
    failed = next((failed for count, failed in sorted(counted.values(), key=lambda each: len(each[1])) if count), ())
    if failed:
        reasons = tuple(f"None of its {records} records: {filter_reason(filter, name)}" for name in failed)
        return Explanation("filtered", filtered_by=failed, reasons=reasons)
    ranked = search_sessions(cursor, indexes, query).ranked
    place, found = next(
        ((place, hit) for place, hit in enumerate(ranked, 1) if hit.session_id == session_id), (None, None)
    )
    if place is None or found is None:
        return Explanation(
            "unmatched",
            reasons=(f"None of its {records} records is among those compared, and none holds a word of the query.",),
        )
    where = f"of {limit} that were asked for" if place <= limit else f"of {len(ranked)}, below the limit of {limit}"
    best = found.hits[0].record_id if found.hits else None
    said = (f"Its best record is {best}.",) if best else ("No record of it is near; its words are what counts.",)
    return Explanation(
        "returned" if place <= limit else "outranked",
        place,
        parts=found.parts,
        reasons=(f"It is session {place} {where}.", *said),
    )


def _count(
    cursor: duckdb.DuckDBPyConnection, schema: str, filter: Filter, session_id: str
) -> tuple[int, tuple[str, ...]]:
    """How many memories, or turns, the session has, and the conditions that none of them meets."""
    with reading(cursor, schema):
        row = cursor.execute(
            "SELECT count(*) FROM documents WHERE namespace = ? AND session_id = ?", [filter.namespace, session_id]
        ).fetchone()
        count = row[0] if row is not None else 0
        return count, failed_filters(cursor, filter, session_id, "session_id") if count else ()

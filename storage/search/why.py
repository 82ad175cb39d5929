"""Why a record is, or is not, among the results of a search.

Filters come first, then each side, floors, pools and ranks. The search itself is run: whether a record is returned is
never computed a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import duckdb
import numpy as np

from storage.search.captured import CAPTURED, MEMORIES, is_turn, reading
from storage.search.index_set import IndexSet
from storage.search.query import MIN_COSINE, MIN_COSINE_RANKED, Query, pool_of
from storage.search.records.filter import Filter, TagFilter, predicate
from storage.search.records.hits import SearchResult
from storage.search.search import search
from storage.search.words.analyzer import document_terms, query_terms
from storage.vector_codec import read_vector

Verdict = Literal["returned", "unknown", "merged", "superseded", "filtered", "repeated", "unmatched", "outranked"]
Search = Callable[[duckdb.DuckDBPyConnection, IndexSet, Query], SearchResult]
WIDE_POOL = 10_000
"""The pool that finds the place of a record which a search's own pool leaves out."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a record, or a session, has the place that it has.

    `place` is its place among all that was found (1 = best), `sides` what each side says of it, within `WIDE_POOL`:
    side -> (rank, raw score), `parts` what each side adds to its score. `filtered_by`: conditions that it fails.
    `reasons` are sentences.
    """

    verdict: Verdict
    place: int | None = None
    sides: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    filtered_by: tuple[str, ...] = ()
    cosine: float | None = None
    is_embedded: bool = False
    reasons: tuple[str, ...] = ()
    parts: Mapping[str, float] = field(default_factory=dict)


def explain(
    cursor: duckdb.DuckDBPyConnection,
    indexes: IndexSet,
    query: Query,
    record_id: str,
    search: Search = search,
) -> Explanation:
    """Why the search returns the record for this query, or does not. `search` gets memories' indexes and cursor."""
    if indexes.turns is not None and is_turn(cursor, query.filter.namespace, record_id):

        def search_all(cursor: duckdb.DuckDBPyConnection, _: IndexSet, query: Query) -> SearchResult:
            with reading(cursor, MEMORIES):
                return search(cursor, indexes, query)

        with reading(cursor, CAPTURED):
            return _explain(cursor, indexes.turns, query, record_id, search_all)
    return _explain(cursor, indexes, query, record_id, search)


def _explain(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query, record_id: str, search: Search
) -> Explanation:
    namespace, limit = query.filter.namespace, query.limit
    known = cursor.execute(
        "SELECT label, text FROM documents WHERE namespace = ? AND record_id = ?", [namespace, record_id]
    ).fetchone()
    if known is None:
        return Explanation("unknown", reasons=(_unknown(cursor, namespace, record_id),))
    label, stored = known
    cosine = _cosine(cursor, indexes, query.vector, label)
    failed = failed_filters(cursor, query.filter, record_id)
    if failed:
        verdict: Verdict = "merged" if "exclude_merged" in failed else "filtered"
        reasons = tuple(_filter_reason(cursor, query.filter, name, record_id) for name in failed)
        return Explanation(verdict, filtered_by=failed, cosine=cosine, is_embedded=cosine is not None, reasons=reasons)
    if query.distinct and (stand_in := _stand_in(cursor, indexes, query.filter, label)) is not None:
        reason = f"It states the same as {stand_in}, or a part of it, and counts as that."
        return Explanation("repeated", cosine=cosine, is_embedded=cosine is not None, reasons=(reason,))
    pool = pool_of(limit)
    everything = search(cursor, indexes, replace(query, limit=WIDE_POOL, pool=pool))
    place = next((place for place, hit in enumerate(everything.hits, 1) if hit.record_id == record_id), None)
    wide = search(cursor, indexes, replace(query, limit=WIDE_POOL, pool=WIDE_POOL))
    sides = next((dict(hit.sides) for hit in wide.hits if hit.record_id == record_id), {})
    parts = dict(everything.hits[place - 1].parts) if place is not None else {}
    found = Explanation("returned", place, sides, cosine=cosine, is_embedded=cosine is not None, parts=parts)
    if place is not None and place <= limit:
        return replace(found, reasons=(f"It is result {place} of {limit} that were asked for.",))
    if place is not None:
        reason = f"It is result {place} of {everything.total}, below the limit of {limit}."
        return replace(found, verdict="outranked", reasons=(reason,))
    superseded = _superseded(cursor, namespace, record_id)
    if superseded and not sides:
        return replace(found, verdict="superseded", reasons=(superseded,))
    floor = MIN_COSINE_RANKED if any("late" in hit.sides for hit in wide.hits) else MIN_COSINE
    reasons = (
        *_beyond(sides, pool, with_turns=query.with_turns),
        *_vector_reason(query.vector, cosine, sides, indexes, floor),
    )
    reasons += tuple(_other_reasons(query.matter, stored, sides))
    return replace(found, verdict="outranked" if sides else "unmatched", reasons=reasons)


def _stand_in(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, filter: Filter, label: int) -> str | None:
    """The id of the record that stands for what this one states; None when it does so itself."""
    with indexes.serving():
        indexes.records.follow_relations(cursor)
        allowed = indexes.records.allowed(cursor, filter)
        (other,) = indexes.records.clusters.representatives(
            np.array([label], np.int64), allowed.labels, excerpts=bool(filter.kinds)
        ).tolist()
        names = [] if other == label else indexes.records.documents.names(cursor, [other])
    return names[0][1] if names else None


def failed_filters(
    cursor: duckdb.DuckDBPyConnection, filter: Filter, identity: str, column: str = "record_id"
) -> tuple[str, ...]:
    """Names of the filter's conditions that the record does not meet, each asked alone.

    With `session_id` as the column: those that no record of the session meets.
    """
    bare = Filter(filter.namespace, exclude_merged=False)
    names = (
        "kinds",
        "toolsets",
        "session_ids",
        "domains",
        "tags",
        "entities",
        "created_from",
        "created_before",
        "known_at",
        "valid_at",
    )
    alone = {name: replace(bare, **{name: getattr(filter, name)}) for name in names if getattr(filter, name)}
    if filter.exclude_merged and filter.valid_at is None:
        alone["exclude_merged"] = replace(bare, exclude_merged=True, known_at=filter.known_at)
    if filter.valid_at is not None:
        alone["valid_at"] = replace(bare, valid_at=filter.valid_at, known_at=filter.known_at)
    failed = tuple(name for name, one in alone.items() if not _meets(cursor, one, identity, column))
    # what was not known yet is not also said to be merged or invalid
    return (
        tuple(name for name in failed if name not in ("exclude_merged", "valid_at")) if "known_at" in failed else failed
    )


def _meets(cursor: duckdb.DuckDBPyConnection, filter: Filter, identity: str, column: str) -> bool:
    condition = predicate(filter)
    row = cursor.execute(
        f"SELECT count(*) FROM documents d WHERE d.{column} = ? AND {condition.sql}", [identity, *condition.parameters]
    ).fetchone()
    return row is not None and row[0] > 0


def _cosine(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, vector: np.ndarray | None, label: int
) -> float | None:
    """The record's cosine to the query; None when it has no vector of this model, or the query has none."""
    model = indexes.model
    if model is None or vector is None:
        return None
    row = cursor.execute(
        "SELECT vector FROM embeddings WHERE label = ? AND space = ? AND model_id = ? AND dim = ?",
        [label, model.space, model.model_id, model.dim],
    ).fetchone()
    return None if row is None else float(np.dot(read_vector(row[0]), np.asarray(vector, np.float32)))


def _unknown(cursor: duckdb.DuckDBPyConnection, namespace: str, record_id: str) -> str:
    """Why there is no text: never written, forgotten, or of another namespace, which is not told apart."""
    row = cursor.execute(
        "SELECT kind FROM memories WHERE namespace = ? AND memory_id = ?", [namespace, record_id]
    ).fetchone()
    if row is not None:
        return (
            f"It is a memory of kind {row[0]}, but no text of it is kept for searches: "
            "its kind is not searched, or it was forgotten."
        )
    return "No such record can be found in this namespace: it was never applied, or it was forgotten."


def _filter_reason(cursor: duckdb.DuckDBPyConnection, filter: Filter, name: str, record_id: str) -> str:
    if name == "exclude_merged":
        row = cursor.execute(
            "SELECT into_id, how FROM merges WHERE namespace = $1 AND record_id = $2 "
            "UNION ALL SELECT merged_into, how FROM context_ends WHERE namespace = $1 AND memory_id = $2",
            [filter.namespace, record_id],
        ).fetchone()
        if row:
            return f"It was merged into {row[0]} ({row[1]}), which stands for it."
        return _corrected(cursor, filter.namespace, record_id) or "It is hidden: hardly anybody believed it."
    ended = _superseded(cursor, filter.namespace, record_id) if name == "valid_at" else None
    return f"{filter_reason(filter, name)} {ended or ''}".strip()


def _corrected(cursor: duckdb.DuckDBPyConnection, namespace: str, record_id: str) -> str | None:
    row = cursor.execute(
        "SELECT successor_id, reason FROM corrections WHERE namespace = ? AND record_id = ?", [namespace, record_id]
    ).fetchone()
    if row is None:
        return None
    because = f", because {row[1]}" if row[1] else ""
    return f"It was corrected to {row[0]}{because}." if row[0] else f"It was retracted{because}."


def filter_reason(filter: Filter, name: str) -> str:
    """What a condition that is not met asks for, as a sentence."""
    condition: Any = getattr(filter, name)
    if isinstance(condition, TagFilter):
        condition = condition.names
    shown = ", ".join(condition) if isinstance(condition, tuple) else condition
    return f"The filter `{name}` ({shown}) leaves it out."


def _superseded(cursor: duckdb.DuckDBPyConnection, namespace: str, record_id: str) -> str | None:
    row = cursor.execute(
        "SELECT superseded_by FROM memories WHERE namespace = ? AND memory_id = ? AND NOT is_live",
        [namespace, record_id],
    ).fetchone()
    if row is None:
        return None
    return f"It was superseded by {row[0]}." if row[0] else "It is not held any more."


def _beyond(sides: Mapping[str, tuple[int, float]], pool: int, *, with_turns: bool) -> list[str]:
    """What the sides would have said of it, had they been looked into deeper."""

    def where(rank: int) -> str:
        if rank <= pool and with_turns:
            return f"and of memories and turns together the best {pool} are looked at"
        return f"{'' if rank > pool else 'reached only through what lies '}beyond the {pool} that are looked at"

    return [f"On the {side} side it is number {rank}, {where(rank)}." for side, (rank, _) in sides.items()]


def _vector_reason(
    vector: np.ndarray | None,
    cosine: float | None,
    sides: Mapping[str, tuple[int, float]],
    indexes: IndexSet,
    floor: float,
) -> list[str]:
    """Why the vector side does not find it at all."""
    if "vector" in sides:
        return []
    if indexes.model is None or vector is None:
        return ["The vector side was not asked: there is no embedder, or it did not answer."]
    if cosine is None:
        return [f"It is not embedded yet by {indexes.model.model_id}."]
    return [f"Its cosine {cosine:.3f} is below the floor of {floor:g}."] if cosine < floor else []


def _other_reasons(text: str, stored: str, sides: Mapping[str, tuple[int, float]]) -> list[str]:
    """Why words and relations do not find it at all."""
    reasons = []
    if "keyword" not in sides:
        shared = set(query_terms(text)) & set(document_terms(stored))
        reasons.append("The keyword side ranks it nowhere." if shared else "It shares no word with the query.")
    if "graph" not in sides:
        reasons.append("No relation leads to it from the best hits.")
    return reasons

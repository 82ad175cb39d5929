"""Why a record is, or is not, among the results of a search: filters first, then each side, floors, pools and ranks.

It asks the engine itself: whether a record is returned is decided by the very search, never computed a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import duckdb
import numpy as np

from storage.search.engine import MIN_COSINE, MIN_COSINE_RANKED, MIN_POOL, SearchIndexes, SearchResult
from storage.search.records.filter import Filter, predicate
from storage.search.words.analyzer import document_terms, query_terms
from storage.vector_codec import read_vector

Verdict = Literal["returned", "unknown", "merged", "superseded", "filtered", "unmatched", "outranked"]
Search = Callable[..., SearchResult]
WIDE = 10_000
"""So deep each side is looked into for the place of a record that a search's own pool leaves out."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """`place` is the record's place among all that was found (1 = best), `sides` what each side says of it, within `WIDE`:
    side -> (rank, raw score), `parts` what each side adds to its score. `filtered_by`: conditions it does not meet. `reasons` are sentences."""

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
    indexes: SearchIndexes,
    text: str,
    vector: np.ndarray | None,
    filter: Filter,
    limit: int,
    record_id: str,
    search: Search | None = None,
) -> Explanation:
    """Why `indexes.search` with these arguments returns the record, or does not. `search`: another way to call it."""
    ask = search or indexes.search
    known = cursor.execute(
        "SELECT label, text FROM documents WHERE namespace = ? AND record_id = ?", [filter.namespace, record_id]
    ).fetchone()
    if known is None:
        return Explanation("unknown", reasons=(_unknown(cursor, filter.namespace, record_id),))
    label, stored = known
    cosine = _cosine(cursor, indexes, vector, label)
    failed = failed_filters(cursor, filter, record_id)
    if failed:
        verdict: Verdict = "merged" if "exclude_merged" in failed else "filtered"
        reasons = tuple(_filter_reason(cursor, filter, name, record_id) for name in failed)
        return Explanation(verdict, filtered_by=failed, cosine=cosine, is_embedded=cosine is not None, reasons=reasons)
    pool = max(3 * limit, MIN_POOL)
    everything = ask(cursor, text, vector, filter, WIDE, pool=pool)
    place = next((place for place, hit in enumerate(everything.hits, 1) if hit.record_id == record_id), None)
    wide = ask(cursor, text, vector, filter, WIDE, pool=WIDE)
    sides = next((dict(hit.sides) for hit in wide.hits if hit.record_id == record_id), {})
    parts = dict(everything.hits[place - 1].parts) if place is not None else {}
    found = Explanation("returned", place, sides, cosine=cosine, is_embedded=cosine is not None, parts=parts)
    if place is not None and place <= limit:
        return replace(found, reasons=(f"It is result {place} of {limit} that were asked for.",))
    if place is not None:
        return replace(
            found,
            verdict="outranked",
            reasons=(f"It is result {place} of {everything.total}, below the limit of {limit}.",),
        )
    superseded = _superseded(cursor, filter.namespace, record_id)
    if superseded and not sides:
        return replace(found, verdict="superseded", reasons=(superseded,))
    floor = MIN_COSINE_RANKED if any("late" in hit.sides for hit in wide.hits) else MIN_COSINE
    reasons = (*_beyond(sides, pool), *_unmatched(text, stored, vector, cosine, sides, indexes, floor))
    return replace(found, verdict="outranked" if sides else "unmatched", reasons=reasons)


def failed_filters(
    cursor: duckdb.DuckDBPyConnection, filter: Filter, identity: str, column: str = "record_id"
) -> tuple[str, ...]:
    """Names of the filter's conditions that the record (no record of the session, when `column` is `session_id`) meets, each asked alone."""
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
    cursor: duckdb.DuckDBPyConnection, indexes: SearchIndexes, vector: np.ndarray | None, label: int
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
    """No text to find: never written, forgotten, or of another namespace (which is not told apart for who may not see it)."""
    row = cursor.execute(
        "SELECT kind FROM memories WHERE namespace = ? AND memory_id = ?", [namespace, record_id]
    ).fetchone()
    if row is not None:
        return f"It is a memory of kind {row[0]}, but no text of it is kept for searches: its kind is not searched, or it was forgotten."
    return "No such record can be found in this namespace: it was never applied, or it was forgotten."


def _filter_reason(cursor: duckdb.DuckDBPyConnection, filter: Filter, name: str, record_id: str) -> str:
    if name == "exclude_merged":
        row = cursor.execute(
            "SELECT into_id, how FROM merges WHERE namespace = ? AND record_id = ?", [filter.namespace, record_id]
        ).fetchone()
        return (
            f"It was merged into {row[0]} ({row[1]}), which stands for it."
            if row
            else "It is hidden: hardly anybody believed it."
        )
    ended = _superseded(cursor, filter.namespace, record_id) if name == "valid_at" else None
    return f"{filter_reason(filter, name)} {ended or ''}".strip()


def filter_reason(filter: Filter, name: str) -> str:
    """What a condition that is not met asks for, as a sentence."""
    asked: Any = getattr(filter, name)
    shown = ", ".join(asked) if isinstance(asked, tuple) else asked
    return f"The filter `{name}` ({shown}) leaves it out."


def _superseded(cursor: duckdb.DuckDBPyConnection, namespace: str, record_id: str) -> str | None:
    row = cursor.execute(
        "SELECT superseded_by FROM memories WHERE namespace = ? AND memory_id = ? AND NOT is_live",
        [namespace, record_id],
    ).fetchone()
    if row is None:
        return None
    return f"It was superseded by {row[0]}." if row[0] else "It is not held any more."


def _beyond(sides: Mapping[str, tuple[int, float]], pool: int) -> list[str]:
    """What the sides would have said of it, had they been looked into deeper."""
    beyond = f"beyond the {pool} that are looked at"
    return [
        f"On the {side} side it is number {rank}, {'' if rank > pool else 'reached only through what lies '}{beyond}."
        for side, (rank, _) in sides.items()
    ]


def _unmatched(
    text: str,
    stored: str,
    vector: np.ndarray | None,
    cosine: float | None,
    sides: Mapping[str, tuple[int, float]],
    indexes: SearchIndexes,
    floor: float,
) -> list[str]:
    """Why a side does not know it at all."""
    reasons = []
    if "vector" not in sides:
        if indexes.model is None or vector is None:
            reasons.append("The vector side was not asked: there is no embedder, or it did not answer.")
        elif cosine is None:
            reasons.append(f"It is not embedded yet by {indexes.model.model_id}.")
        elif cosine < floor:
            reasons.append(f"Its cosine {cosine:.3f} is below the floor of {floor:g}.")
    if "keyword" not in sides:
        shared = set(query_terms(text)) & set(document_terms(stored))
        reasons.append("The keyword side ranks it nowhere." if shared else "It shares no word with the query.")
    if "graph" not in sides:
        reasons.append("No relation leads to it from the best hits.")
    return reasons

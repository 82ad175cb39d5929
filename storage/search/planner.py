"""What a search may find: a filter over `documents`, resolved to labels in DuckDB before any index is asked.

Filtering afterwards would lose matches when filter and query correlate; the indexes get the labels instead and
choose for themselves (few labels: exact over their rows; many: the graph with a filter).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np

_NOT_MERGED = "NOT EXISTS (FROM merges m WHERE m.namespace = d.namespace AND m.record_id = d.record_id)"
_NOT_MERGED_THEN = "NOT EXISTS (FROM merges m WHERE m.namespace = d.namespace AND m.record_id = d.record_id AND m.merged_at <= ?)"
_VALID = (
    "NOT EXISTS (FROM memories v WHERE v.namespace = d.namespace AND v.memory_id = d.record_id "
    "AND (v.valid_from > ? OR v.valid_until <= ? AND v.valid_until <= ?))"
)
"""Valid unless it is known otherwise: a record that ended is judged by what was known then."""
_ABOUT = (
    "(d.record_id = ? OR EXISTS (FROM relations r WHERE r.namespace = d.namespace AND (r.from_id = ? AND r.to_id = d.record_id "
    "OR r.to_id = ? AND r.from_id = d.record_id)) OR EXISTS (FROM entities e WHERE e.namespace = d.namespace AND e.entity_id = ? "
    "AND e.source_event_id = d.event_id))"
)


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that a document must meet, all of them. An empty tuple or None restricts nothing.

    `domains` compare without case; times are aware, `created_from` inclusive, `created_before` exclusive.
    `tags`: the record has one of them. `entities`: the record is one of them, a relation away from it, or was where it was
    found. `known_at` (transaction time): as the store knew it then; `valid_at` (valid time): what held then.
    """

    namespace: str
    kinds: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    created_from: datetime | None = None
    created_before: datetime | None = None
    exclude_merged: bool = True
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    known_at: datetime | None = None
    valid_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Predicate:
    """SQL over `documents d` with its parameters."""

    sql: str
    parameters: list[Any]


def predicate(filter: Filter) -> Predicate:
    """The filter as a condition on `documents d`."""
    clauses, parameters = ["d.namespace = ?"], list[Any]([filter.namespace])
    lists = (("d.kind", filter.kinds), ("d.toolset", filter.toolsets), ("d.session_id", filter.session_ids))
    for column, values in lists:
        if values:
            clauses.append(f"{column} IN ({_marks(values)})")
            parameters += values
    if filter.domains:
        clauses.append(f"lower(d.domain) IN ({_marks(filter.domains)})")
        parameters += [domain.lower() for domain in filter.domains]
    for condition, moment in (("d.created_at >= ?", filter.created_from), ("d.created_at < ?", filter.created_before)):
        if moment is not None:
            clauses.append(condition)
            parameters.append(_naive(moment))
    for clause, given in (*_related(filter), *_timed(filter)):
        clauses.append(clause)
        parameters += given
    return Predicate(" AND ".join(clauses), parameters)


def _related(filter: Filter) -> Iterator[tuple[str, list[Any]]]:
    if filter.tags:
        tagged = f"SELECT t.record_id FROM document_tags t WHERE t.namespace = ? AND t.tag IN ({_marks(filter.tags)})"
        yield f"d.record_id IN ({tagged})", [filter.namespace, *filter.tags]
    if filter.entities:
        yield "(" + " OR ".join([_ABOUT] * len(filter.entities)) + ")", [entity for entity in filter.entities for _ in range(4)]


def _timed(filter: Filter) -> Iterator[tuple[str, list[Any]]]:
    known = None if filter.known_at is None else _naive(filter.known_at)
    if known is not None:
        yield "d.created_at <= ?", [known]
    if filter.exclude_merged:
        yield (_NOT_MERGED, []) if known is None else (_NOT_MERGED_THEN, [known])
    if filter.valid_at is not None:
        valid = _naive(filter.valid_at)
        yield _VALID, [valid, valid, known or datetime.max]


def _naive(moment: datetime) -> datetime:
    """UTC, as the tables keep times."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def resolve(cursor: duckdb.DuckDBPyConnection, filter: Filter) -> np.ndarray | None:
    """The labels that the filter leaves, sorted, int64; None when it leaves every document there is.

    None is a hint, good until the next commit: what is found is read from `documents` under the same predicate.
    """
    condition = predicate(filter)
    labels = cursor.execute(f"SELECT label FROM documents d WHERE {condition.sql}", condition.parameters).fetchnumpy()["label"]
    total = cursor.execute("SELECT count(*) FROM documents").fetchone()
    if total is not None and len(labels) == total[0]:
        return None
    return np.sort(np.asarray(labels, np.int64))


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))

"""What a search may find: a filter over `documents`, resolved to labels in DuckDB before any index is asked.

Filtering afterwards would lose matches when filter and query correlate; the indexes get the labels instead and
choose for themselves (few labels: exact over their rows; many: the graph with a filter).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np

_NOT_MERGED = (
    "NOT EXISTS (FROM merges m WHERE m.namespace = d.namespace AND m.record_id = d.record_id) "
    "AND NOT EXISTS (FROM prunes p WHERE p.namespace = d.namespace AND p.record_id = d.record_id)"
)


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that a document must meet, all of them. An empty tuple or None restricts nothing.

    `domains` compare without case; times are aware, `created_from` inclusive, `created_before` exclusive.
    """

    namespace: str
    kinds: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    created_from: datetime | None = None
    created_before: datetime | None = None
    exclude_merged: bool = True


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
            parameters.append(moment.astimezone(UTC).replace(tzinfo=None))
    if filter.exclude_merged:
        clauses.append(_NOT_MERGED)
    return Predicate(" AND ".join(clauses), parameters)


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

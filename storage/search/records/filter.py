"""A filter over `documents`, resolved to labels in DuckDB before any index is searched.

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

from storage.statements import marks

_NOT_MERGED = (
    "NOT EXISTS (FROM merges m WHERE m.namespace = d.namespace AND m.record_id = d.record_id) "
    "AND NOT EXISTS (FROM prunes p WHERE p.namespace = d.namespace AND p.record_id = d.record_id) "
    "AND NOT EXISTS (FROM corrections c WHERE c.namespace = d.namespace AND c.record_id = d.record_id) "
    "AND NOT EXISTS (FROM context_ends x WHERE x.namespace = d.namespace AND x.memory_id = d.record_id)"
)
_NOT_MERGED_BY = (
    "NOT EXISTS (FROM merges m WHERE m.namespace = d.namespace AND m.record_id = d.record_id AND m.merged_at <= ?) "
    "AND NOT EXISTS (FROM prunes p WHERE p.namespace = d.namespace AND p.record_id = d.record_id AND p.pruned_at <= ?) "
    "AND NOT EXISTS (FROM corrections c WHERE c.namespace = d.namespace AND c.record_id = d.record_id "
    "AND c.changed_at <= ?) "
    "AND NOT EXISTS (FROM context_ends x WHERE x.namespace = d.namespace AND "
    "(x.memory_id = d.record_id AND x.ended_at <= ? OR x.merged_into = d.record_id AND x.ended_at > ?))"
)
_TAGGED = (
    "EXISTS (FROM {source} t WHERE t.namespace = d.namespace AND t.record_id = d.record_id "
    "AND lower(t.tag) IN ({marks}))"
)
_VALID = (
    "(EXISTS (FROM memories m WHERE m.namespace = d.namespace AND m.memory_id = d.record_id AND m.valid_from <= ? "
    "AND (m.valid_until IS NULL OR m.valid_until > ? OR coalesce(m.valid_until > ?, false))) "
    "OR (d.created_at <= ? "
    "AND NOT EXISTS (FROM memories m WHERE m.namespace = d.namespace AND m.memory_id = d.record_id)))"
)
_ABOUT = (
    "(d.record_id = ? OR EXISTS (FROM relations r WHERE r.namespace = d.namespace "
    "AND (r.from_id = ? AND r.to_id = d.record_id OR r.to_id = ? AND r.from_id = d.record_id)) "
    "OR EXISTS (FROM entities e WHERE e.namespace = d.namespace AND e.entity_id = ? "
    "AND e.source_event_id = d.event_id))"
)


@dataclass(frozen=True, slots=True)
class TagFilter:
    """Names of tags, compared without case; each of `categories` SELECTs (namespace, record_id, tag).

    A record has a tag that is its domain, in `document_tags`, or in one of the categories.
    """

    names: tuple[str, ...]
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that a document must meet, all of them. An empty tuple or None restricts nothing.

    `domains` compare without case; `tags`: one of them is enough; times are aware, `created_from`
    inclusive, `created_before` exclusive. `entities`: the record is one of them, a relation away from it, or was where
    it was found. `valid_at` (valid time) asks for what held then, `known_at` (transaction time) for what had been
    recorded by then: a merge, a prune, or an end of validity, that came later does not count.
    """

    namespace: str
    kinds: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    created_from: datetime | None = None
    created_before: datetime | None = None
    exclude_merged: bool = True
    tags: TagFilter | None = None
    entities: tuple[str, ...] = ()
    valid_at: datetime | None = None
    known_at: datetime | None = None


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
            clauses.append(f"{column} IN ({marks(values)})")
            parameters += values
    if filter.domains:
        clauses.append(f"lower(d.domain) IN ({marks(filter.domains)})")
        parameters += [domain.lower() for domain in filter.domains]
    for condition, moment in (("d.created_at >= ?", filter.created_from), ("d.created_at < ?", filter.created_before)):
        if moment is not None:
            clauses.append(condition)
            parameters.append(_utc(moment))
    if filter.tags is not None:
        names = [name.lower() for name in filter.tags.names]
        sources = ("document_tags", *(f"({select})" for select in filter.tags.categories))
        tagged = [f"lower(d.domain) IN ({marks(names)})"]
        tagged += [_TAGGED.format(source=source, marks=marks(names)) for source in sources]
        clauses.append(f"({' OR '.join(tagged)})")
        parameters += names * len(tagged)
    if filter.entities:
        clauses.append("(" + " OR ".join([_ABOUT] * len(filter.entities)) + ")")
        parameters += [entity for entity in filter.entities for _ in range(4)]
    _add_times(filter, clauses, parameters)
    return Predicate(" AND ".join(clauses), parameters)


def _add_times(filter: Filter, clauses: list[str], parameters: list[Any]) -> None:
    """What held and what was known; a merge ends what is valid, so that it is looked at once."""
    known = None if filter.known_at is None else _utc(filter.known_at)
    if known is not None:
        clauses.append("d.created_at <= ?")
        parameters.append(known)
    if filter.valid_at is not None:
        moment = _utc(filter.valid_at)
        clauses.append(_VALID)
        parameters += [moment, moment, known, moment]
    elif filter.exclude_merged:
        clauses.append(_NOT_MERGED if known is None else _NOT_MERGED_BY)
        parameters += [] if known is None else [known] * 5


ROW_COLUMNS = "d.namespace, d.kind, d.toolset, d.session_id, lower(d.domain), d.created_at"
"""What `leaves` is told of a document."""


def is_plain(filter: Filter) -> bool:
    """Whether `leaves` and what has ended decide alone."""
    return (
        filter.tags is None
        and not filter.entities
        and filter.valid_at is None
        and (filter.known_at is None or not filter.exclude_merged)
    )


def leaves(filter: Filter, row: Sequence[Any]) -> bool:
    """Whether a plain filter leaves a document with these ROW_COLUMNS, unless it has ended."""
    namespace, kind, toolset, session_id, domain, created_at = row
    listed = ((kind, filter.kinds), (toolset, filter.toolsets), (session_id, filter.session_ids))
    return (
        namespace == filter.namespace
        and all(not values or value in values for value, values in listed)
        and (not filter.domains or domain in {name.lower() for name in filter.domains})
        and (filter.created_from is None or created_at >= _utc(filter.created_from))
        and (filter.created_before is None or created_at < _utc(filter.created_before))
        and (filter.known_at is None or created_at <= _utc(filter.known_at))
    )


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


def resolve(cursor: duckdb.DuckDBPyConnection, filter: Filter) -> np.ndarray:
    """The labels that the filter leaves, sorted, int64, good until the next commit."""
    condition = predicate(filter)
    labels = cursor.execute(f"SELECT label FROM documents d WHERE {condition.sql}", condition.parameters).fetchnumpy()[
        "label"
    ]
    return np.sort(np.asarray(labels, np.int64))

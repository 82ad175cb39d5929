"""What a search gives, and reading it from `documents` under the filter's own condition, so that no index can leak a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import duckdb
import numpy as np

from storage.search.passages import Passage
from storage.search.planner import Filter, Predicate
from storage.search.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found.

    `sides`: side -> (rank from 1, raw score: cosine, BM25, weighted mean of token cosines, or place of its best parent).
    `parts`: side -> what it adds to the score; their sum is the score. `passage`: of a long text the part that fits best.
    """

    label: int
    record_id: str
    kind: str
    toolset: str
    session_id: str | None
    domain: str | None
    text: str
    created_at: datetime
    score: float = 0.0
    sides: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    passage: Passage | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`total`: matches before the limit, of the pools of all sides. `degraded`: what was missing, a sentence, or None."""

    hits: list[Hit]
    total: int
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One search on its way through the sides. `fits`: document -> the label of what in it fitted best."""

    cursor: duckdb.DuckDBPyConnection
    text: str
    vector: np.ndarray | None
    tokens: Tokens | None
    condition: Predicate
    filter: Filter
    size: int
    fits: dict[int, int]


def read_hits(
    cursor: duckdb.DuckDBPyConnection,
    condition: Predicate,
    column: str,
    values: Sequence[int] | Sequence[str],
    *,
    with_text: bool = True,
) -> dict[int, Hit]:
    """The documents with these labels or record ids that meet the condition, by label."""
    if not values:
        return {}
    text = "d.text" if with_text else "''"
    rows = cursor.execute(
        f"SELECT d.label, d.record_id, d.kind, d.toolset, d.session_id, d.domain, {text}, d.created_at FROM documents d "
        f"WHERE d.{column} IN (SELECT unnest(?)) AND {condition.sql}",
        [list(values), *condition.parameters],
    ).fetchall()
    return {row[0]: Hit(*row) for row in rows}


def read_texts(cursor: duckdb.DuckDBPyConnection, labels: Sequence[int]) -> dict[int, str]:
    """The texts of a few documents, by label."""
    if not labels:
        return {}
    marks = ", ".join("?" * len(labels))
    return dict(cursor.execute(f"SELECT label, text FROM documents WHERE label IN ({marks})", list(labels)).fetchall())

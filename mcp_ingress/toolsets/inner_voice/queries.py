"""What a retrieval asks of the store: eligible rows of one logical table, the most similar of them, and their texts.

Each logical table (thoughts, entities, observations) is fetched by a query of its own over `documents`, whichever
toolset remembers; `FACETS` says where a toolset keeps what `documents` does not hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from processors.inner_voice.kinds import TableName, kinds_of, origin_of
from processors.inner_voice.selection import Candidate
from storage.search.engine import SearchIndexes
from storage.search.vector import VectorModel

PRIVATE = "private"


@dataclass(frozen=True, slots=True)
class Facet:
    """A table or view with more about a record than `documents` has: SQL over its row `f`, for role, tags and privacy."""

    relation: str
    key: str
    role: str = "NULL::VARCHAR"
    tags: str = "[]::VARCHAR[]"
    is_private: str = "false"


FACETS = (
    Facet("talos_journal", "entry_id", tags="[f.category]"),
    Facet("entities", "entity_id", tags="[f.category]"),
    Facet("vkb_exchanges", "exchange_id", role="f.role"),
    Facet("valence_beliefs", "belief_id", tags="f.domain_path"),
)
"""One line a table; one whose toolset is not in this store is left out."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a row must be to count: of these tags one (unless there are none), of those none; private thoughts on demand."""

    namespace: str
    include_private: bool = False
    include_tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fetched:
    """The most similar candidates of one table, and how many rows were eligible before that cut."""

    candidates: list[Candidate]
    eligible: int


def fetch_candidates(
    cursor: duckdb.DuckDBPyConnection,
    indexes: SearchIndexes,
    model: VectorModel,
    vector: np.ndarray,
    table: TableName,
    wanted: Wanted,
    cap: int,
) -> Fetched:
    """The `cap` rows of the table most similar to the unit vector, of those that pass the filters."""
    labels = eligible_labels(cursor, model, table, wanted)
    near = indexes.nearest_of(vector, cap, labels)
    return Fetched(_read(cursor, table, dict(near)), len(labels))


def eligible_labels(cursor: duckdb.DuckDBPyConnection, model: VectorModel, table: TableName, wanted: Wanted) -> np.ndarray:
    """Labels of the live rows with a vector of this very model that pass privacy and tags; sorted, int64."""
    present = cursor.execute("SELECT DISTINCT toolset, kind FROM documents WHERE namespace = ?", [wanted.namespace]).fetchall()
    kinds = kinds_of(table, present)
    source = _source(cursor)
    clauses = [
        "d.namespace = ?",
        "(d.toolset, d.kind) IN (SELECT (unnest(?), unnest(?)))",
        "EXISTS (FROM embeddings e WHERE e.label = d.label AND e.space = ? AND e.model_id = ? AND e.dim = ?)",
        "NOT EXISTS (FROM memories m WHERE m.namespace = d.namespace AND m.memory_id = d.record_id AND NOT m.is_live)",
    ]
    parameters = [wanted.namespace, [toolset for toolset, _ in kinds], [kind for _, kind in kinds], model.space, model.model_id, model.dim]
    if not kinds:
        return np.empty(0, np.int64)
    known = _tags(cursor, source, wanted.namespace) if wanted.include_tags or wanted.exclude_tags else []
    if wanted.include_tags:
        clauses.append("list_has_any(tags, ?::VARCHAR[])")
        parameters.append(_spellings(known, wanted.include_tags))
    if wanted.exclude_tags:
        clauses.append("NOT list_has_any(tags, ?::VARCHAR[])")
        parameters.append(_spellings(known, wanted.exclude_tags))
    if table == "thoughts" and not wanted.include_private:
        clauses.append("NOT is_private AND NOT list_contains(list_transform(tags, lambda tag: lower(tag)), ?)")
        parameters.append(PRIVATE)
    rows = cursor.execute(f"SELECT d.label FROM ({source}) d WHERE {' AND '.join(clauses)}", parameters).fetchnumpy()
    return np.sort(np.asarray(rows["label"], np.int64))


def _source(cursor: duckdb.DuckDBPyConnection) -> str:
    """`documents` with role, tags and privacy from every facet that this store has."""
    relations = cursor.execute("SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views()").fetchall()
    names = {name for (name,) in relations}
    facets = [facet for facet in FACETS if facet.relation in names]
    joins = [
        f"LEFT JOIN (SELECT f.namespace, f.{facet.key} AS record_id, {facet.role} AS role, {facet.tags} AS tags, "
        f"{facet.is_private} AS is_private FROM {facet.relation} f) f{number} "
        f"ON f{number}.namespace = d.namespace AND f{number}.record_id = d.record_id"
        for number, facet in enumerate(facets)
    ]
    numbers = range(len(facets))
    roles = ", ".join(f"f{number}.role" for number in numbers)
    tags = ", ".join(["[d.domain]", *(f"f{number}.tags" for number in numbers)])
    private = " OR ".join(f"coalesce(f{number}.is_private, false)" for number in numbers)
    return (
        f"SELECT d.*, coalesce({roles}) AS role, list_distinct(flatten([{tags}])) AS tags, ({private}) AS is_private "
        f"FROM documents d {' '.join(joins)}"
    )


def _tags(cursor: duckdb.DuckDBPyConnection, source: str, namespace: str) -> list[str]:
    """Every spelling of every tag in the namespace: far fewer than rows, so that Python's casefold decides on equality."""
    rows = cursor.execute(f"SELECT DISTINCT unnest(tags) FROM ({source}) WHERE namespace = ?", [namespace]).fetchall()
    return [tag for (tag,) in rows if tag is not None]


def _spellings(known: Sequence[str], asked: Collection[str]) -> list[str]:
    """The known tags that are one of those asked for, but for case."""
    folded = {tag.casefold() for tag in asked}
    return [tag for tag in known if tag.casefold() in folded]


def _read(cursor: duckdb.DuckDBPyConnection, table: TableName, cosines: dict[int, float]) -> list[Candidate]:
    """The rows of these labels as candidates; scores to six digits, so that a floor equals what is shown."""
    if not cosines:
        return []
    rows = cursor.execute(
        f"SELECT d.label, d.record_id, d.toolset, d.kind, d.text, d.created_at, d.role FROM ({_source(cursor)}) d "
        "WHERE d.label IN (SELECT unnest(?::BIGINT[]))",
        [list(cosines)],
    ).fetchall()
    return [
        Candidate(table, record_id, text, round(min(cosines[label], 1.0), 6), created_at, origin_of(toolset, kind, role))
        for label, record_id, toolset, kind, text, created_at, role in rows
    ]

"""What a retrieval asks of the store: eligible rows of each logical table, the most similar of them, and their texts.

Which rows are eligible is one query over all tables, remembered until something is applied. The candidates of each table
(thoughts, entities, observations) are then looked for by themselves, and only those are read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from mcp_ingress.toolsets.inner_voice import facets
from processors.inner_voice.kinds import ID_PREFIXES, TableName, origin_of, place_of
from processors.inner_voice.selection import Candidate
from storage.search.engine import SearchIndexes
from storage.search.vector import VectorModel

TABLES: tuple[TableName, ...] = tuple(ID_PREFIXES)
_TAGGED = f"d.record_id IN (SELECT record_id FROM ({facets.union(facets.TAGS)}) WHERE tag IN (SELECT unnest($%s::VARCHAR[])))"
_IS_ABSENT = f"EXISTS (FROM ({facets.union(facets.ABSENT)}) x WHERE x.record_id = d.record_id)"


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
    tables: Sequence[TableName],
    wanted: Wanted,
    cap: int,
) -> dict[TableName, Fetched]:
    """Of each of these tables the `cap` rows most similar to the unit vector, of those that pass the filters."""
    key = ("inner_voice", wanted, model.space, model.model_id, model.dim)
    eligible = indexes.remembered(key, lambda: eligible_labels(cursor, model, wanted))
    found_labels = indexes.nearest_of(vector, cap, [eligible[table] for table in tables], space=model.space)
    near = {table: dict(some) for table, some in zip(tables, found_labels, strict=True)}
    found = _read(cursor, wanted.namespace, {label: cosine for some in near.values() for label, cosine in some.items()})
    return {
        table: Fetched([found[table, label] for label in some if (table, label) in found], len(eligible[table]))
        for table, some in near.items()
    }


def eligible_labels(cursor: duckdb.DuckDBPyConnection, model: VectorModel, wanted: Wanted) -> dict[TableName, np.ndarray]:
    """For each table the labels of the live rows with a vector of this very model that pass privacy and tags; sorted, int64."""
    kinds = _kinds(cursor, wanted.namespace)
    parameters: dict[str, object] = {
        "namespace": wanted.namespace,
        "toolsets": [toolset for toolset, _, _ in kinds],
        "kinds": [kind for _, kind, _ in kinds],
        "tables": [TABLES.index(table) for _, _, table in kinds],
        "space": model.space,
        "model": model.model_id,
        "dim": model.dim,
    }
    clauses = [f"NOT {_IS_ABSENT}"]
    known = _tags(cursor, wanted.namespace) if wanted.include_tags or wanted.exclude_tags else []
    if wanted.include_tags:
        clauses.append(_TAGGED % "included")
        parameters["included"] = _spellings(known, wanted.include_tags)
    if wanted.exclude_tags:
        clauses.append("NOT " + _TAGGED % "excluded")
        parameters["excluded"] = _spellings(known, wanted.exclude_tags)
    if not wanted.include_private and (private := _private(cursor, wanted.namespace)):
        clauses.append(f"NOT (p.place = {TABLES.index('thoughts')} AND d.record_id IN (SELECT unnest($private::VARCHAR[])))")
        parameters["private"] = private
    rows = cursor.execute(
        "SELECT d.label, p.place FROM documents d "
        "JOIN (SELECT unnest($toolsets::VARCHAR[]) AS toolset, unnest($kinds::VARCHAR[]) AS kind, unnest($tables::TINYINT[]) AS place) p "
        "ON p.toolset = d.toolset AND p.kind = d.kind "
        "WHERE d.namespace = $namespace "
        "AND d.label IN (SELECT label FROM embeddings WHERE space = $space AND model_id = $model AND dim = $dim) "
        f"AND {' AND '.join(clauses)}",
        parameters,
    ).fetchnumpy()
    labels, places = np.asarray(rows["label"], np.int64), np.asarray(rows["place"], np.int8)
    return {table: np.sort(labels[places == place]) for place, table in enumerate(TABLES)}


def _kinds(cursor: duckdb.DuckDBPyConnection, namespace: str) -> list[tuple[str, str, TableName]]:
    """(toolset, kind, table) of what the namespace remembers, but for kinds that are no snippets."""
    present = cursor.execute("SELECT DISTINCT toolset, kind FROM documents WHERE namespace = ?", [namespace]).fetchall()
    return [(toolset, kind, place.table) for toolset, kind in present if (place := place_of(toolset, kind)) is not None]


def _private(cursor: duckdb.DuckDBPyConnection, namespace: str) -> list[str]:
    """Private thoughts; asked for by themselves, as there are mostly none."""
    return [record_id for (record_id,) in cursor.execute(facets.union(facets.PRIVATE), {"namespace": namespace}).fetchall()]


def _tags(cursor: duckdb.DuckDBPyConnection, namespace: str) -> list[str]:
    """Every spelling of every tag in the namespace: far fewer than rows, so that Python's casefold decides on equality."""
    rows = cursor.execute(f"SELECT DISTINCT tag FROM ({facets.union(facets.TAGS)})", {"namespace": namespace}).fetchall()
    return [tag for (tag,) in rows if tag is not None]


def _spellings(known: Sequence[str], asked: Collection[str]) -> list[str]:
    """The known tags that are one of those asked for, but for case."""
    folded = {tag.casefold() for tag in asked}
    return [tag for tag in known if tag.casefold() in folded]


def _read(cursor: duckdb.DuckDBPyConnection, namespace: str, cosines: dict[int, float]) -> dict[tuple[TableName, int], Candidate]:
    """The rows of these labels as candidates; scores to six digits, so that a floor equals what is shown."""
    if not cosines:
        return {}
    rows = cursor.execute(
        "SELECT label, record_id, toolset, kind, text, created_at FROM documents WHERE label IN (SELECT unnest(?::BIGINT[]))",
        [list(cosines)],
    ).fetchall()
    places = {label: place for label, _, toolset, kind, *_ in rows if (place := place_of(toolset, kind)) is not None}
    roles = _roles(cursor, namespace, [row[1] for row in rows if row[0] in places and places[row[0]].origin is None])
    found: dict[tuple[TableName, int], Candidate] = {}
    for label, record_id, toolset, kind, text, created_at in rows:
        if label in places:
            table, score = places[label].table, round(min(cosines[label], 1.0), 6)
            origin = origin_of(toolset, kind, roles.get(record_id))
            found[table, label] = Candidate(table, record_id, text, score, created_at, origin)
    return found


def _roles(cursor: duckdb.DuckDBPyConnection, namespace: str, record_ids: list[str]) -> dict[str, str]:
    """Who said each of these records, where a table knows it."""
    if not record_ids:
        return {}
    query = f"SELECT record_id, role FROM ({facets.union(facets.ROLES)}) WHERE record_id IN (SELECT unnest($ids::VARCHAR[]))"
    return dict(cursor.execute(query, {"namespace": namespace, "ids": record_ids}).fetchall())

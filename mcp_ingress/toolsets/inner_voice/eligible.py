"""Cache of the rows that a retrieval may find: live ones with a vector, that pass privacy and tags.

After a write it is brought up to date. Without tags it reads only new documents, those that had no vector yet, and the
ids of rows that have ended or are private.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from processors.inner_voice.rules.provenance import ID_PREFIXES
from processors.memory.kind import TableName
from processors.memory.registry import ENDED, PRIVATE, TAGS, place_of
from storage.append_only import Mark, mark, new_rows
from storage.search.index_set import IndexSet
from storage.search.vectors.vector_model import VectorModel
from streams.ids import document_label

TABLES: tuple[TableName, ...] = tuple(ID_PREFIXES)
MAX_PENDING = 1_000
"""With more rows that have no vector yet (a new model), everything is asked anew."""
_TAGGED = (
    f"d.record_id IN (SELECT record_id FROM ({TAGS}) WHERE namespace = $namespace "
    "AND tag IN (SELECT unnest($%s::VARCHAR[])))"
)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which rows are eligible: by namespace, tags and privacy.

    A row needs one of `include_tags`, if there are any, and none of `exclude_tags`.
    """

    namespace: str
    include_private: bool = False
    include_tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _EligibleRows:
    """What is known: `labels` are those `embedded` which are not `hidden`. Of `pending` no vector is known yet."""

    documents: Mark
    embedded: Mapping[TableName, np.ndarray]
    pending: Sequence[tuple[int, TableName]]
    hidden: Mapping[TableName, frozenset[str]]
    labels: Mapping[TableName, np.ndarray]


def find_eligible(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, model: VectorModel, row_filter: RowFilter
) -> Mapping[TableName, np.ndarray]:
    """The labels (int64) of the eligible rows of each table.

    These are live rows with a vector of this model that pass privacy and tags.
    """

    def find(known: _EligibleRows | None, rows: Mapping[str, int]) -> _EligibleRows:
        hidden = _hidden(cursor, row_filter)
        extended = (
            None
            if known is None or row_filter.include_tags or row_filter.exclude_tags
            else _extend(cursor, indexes, model, row_filter, known, rows)
        )
        documents, embedded, pending = extended or _read_all(cursor, model, row_filter)
        if (
            known is not None
            and hidden == known.hidden
            and all(embedded[table] is known.embedded[table] for table in TABLES)
        ):
            return _EligibleRows(documents, embedded, pending, hidden, known.labels)
        labels = {table: _without(embedded[table], hidden[table], row_filter.namespace) for table in TABLES}
        return _EligibleRows(documents, embedded, pending, hidden, labels)

    return indexes.records.cached(
        cursor, ("inner_voice", row_filter, model.space, model.model_id, model.dim), find
    ).labels


_Rows = tuple[Mark, Mapping[TableName, np.ndarray], Sequence[tuple[int, TableName]]]
"""How far the documents were read, the labels with a vector, and those without."""


def _extend(
    cursor: duckdb.DuckDBPyConnection,
    indexes: IndexSet,
    model: VectorModel,
    row_filter: RowFilter,
    known: _EligibleRows,
    rows: Mapping[str, int],
) -> _Rows | None:
    """What was known with what has come since. None when the documents have not simply grown, or much has no vector."""
    fresh = new_rows(cursor, "documents", "label, namespace, toolset, kind", known.documents, rows["documents"])
    if fresh is None or len(known.pending) + len(fresh[0]) > MAX_PENDING:
        return None
    places = [
        (label, place_of(toolset, kind))
        for label, namespace, toolset, kind in fresh[0]
        if namespace == row_filter.namespace
    ]
    waiting = [*known.pending, *((label, place.table) for label, place in places if place is not None)]
    has_vector = indexes.space(model.space).embedded([label for label, _ in waiting])
    pending = [(label, table) for label, table in waiting if label not in has_vector]
    come = [(label, table) for label, table in waiting if label in has_vector]
    embedded = {table: _with(known.embedded[table], [label for label, of in come if of == table]) for table in TABLES}
    return fresh[1], embedded, pending


def _with(labels: np.ndarray, new: list[int]) -> np.ndarray:
    return np.union1d(labels, np.array(new, np.int64)) if new else labels


def _without(labels: np.ndarray, hidden: Iterable[str], namespace: str) -> np.ndarray:
    gone = np.array([document_label(namespace, record_id) for record_id in hidden], np.int64)
    return np.setdiff1d(labels, gone, assume_unique=True) if len(gone) else labels


def _hidden(cursor: duckdb.DuckDBPyConnection, row_filter: RowFilter) -> dict[TableName, frozenset[str]]:
    """The ids of the rows of each table that are never found.

    They are merged, pruned, superseded or archived, or private thoughts.
    """
    absent = _ids(cursor, ENDED, row_filter.namespace)
    private = frozenset[str]() if row_filter.include_private else _ids(cursor, PRIVATE, row_filter.namespace)
    return {table: absent | private if table == "thoughts" else absent for table in TABLES}


def _ids(cursor: duckdb.DuckDBPyConnection, select: str, namespace: str) -> frozenset[str]:
    rows = cursor.execute(f"SELECT record_id FROM ({select}) WHERE namespace = $namespace", {"namespace": namespace})
    return frozenset(record_id for (record_id,) in rows.fetchall())


def _read_all(cursor: duckdb.DuckDBPyConnection, model: VectorModel, row_filter: RowFilter) -> _Rows:
    documents = mark(cursor, "documents")
    kinds = _kinds(cursor, row_filter.namespace)
    parameters: dict[str, object] = {
        "namespace": row_filter.namespace,
        "toolsets": [toolset for toolset, _, _ in kinds],
        "kinds": [kind for _, kind, _ in kinds],
        "tables": [TABLES.index(table) for _, _, table in kinds],
        "space": model.space,
        "model": model.model_id,
        "dim": model.dim,
    }
    clauses = ["d.namespace = $namespace"]
    known = _tags(cursor, row_filter.namespace) if row_filter.include_tags or row_filter.exclude_tags else []
    if row_filter.include_tags:
        clauses.append(_TAGGED % "included")
        parameters["included"] = _spellings(known, row_filter.include_tags)
    if row_filter.exclude_tags:
        clauses.append("NOT " + _TAGGED % "excluded")
        parameters["excluded"] = _spellings(known, row_filter.exclude_tags)
    rows = cursor.execute(
        "SELECT d.label, p.place, "
        "d.label IN (SELECT label FROM embeddings WHERE space = $space AND model_id = $model AND dim = $dim) "
        "AS is_embedded "
        "FROM documents d "
        "JOIN (SELECT unnest($toolsets::VARCHAR[]) AS toolset, unnest($kinds::VARCHAR[]) AS kind, "
        "unnest($tables::TINYINT[]) AS place) p "
        f"ON p.toolset = d.toolset AND p.kind = d.kind WHERE {' AND '.join(clauses)}",
        parameters,
    ).fetchnumpy()
    labels, places, has_vector = (
        np.asarray(rows["label"], np.int64),
        np.asarray(rows["place"], np.int8),
        np.asarray(rows["is_embedded"], bool),
    )
    embedded = {table: np.sort(labels[has_vector & (places == place)]) for place, table in enumerate(TABLES)}
    lacking = zip(labels[~has_vector].tolist(), places[~has_vector].tolist(), strict=True)
    return documents, embedded, [(label, TABLES[place]) for label, place in lacking]


def _kinds(cursor: duckdb.DuckDBPyConnection, namespace: str) -> list[tuple[str, str, TableName]]:
    """(toolset, kind, table) of what the namespace remembers, without kinds that are never snippets."""
    present = cursor.execute("SELECT DISTINCT toolset, kind FROM documents WHERE namespace = ?", [namespace]).fetchall()
    return [(toolset, kind, place.table) for toolset, kind in present if (place := place_of(toolset, kind)) is not None]


def _tags(cursor: duckdb.DuckDBPyConnection, namespace: str) -> list[str]:
    """Every spelling of every tag in the namespace.

    There are far fewer of them than rows, so Python's casefold decides on equality.
    """
    rows = cursor.execute(
        f"SELECT DISTINCT tag FROM ({TAGS}) WHERE namespace = $namespace", {"namespace": namespace}
    ).fetchall()
    return [tag for (tag,) in rows if tag is not None]


def _spellings(known: Sequence[str], tags: Collection[str]) -> list[str]:
    """The known tags that equal one of these, case apart."""
    folded = {tag.casefold() for tag in tags}
    return [tag for tag in known if tag.casefold() in folded]

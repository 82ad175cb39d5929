"""The queries of a retrieval: the most similar eligible rows of each logical table.

A cache that follows the tables says which rows are eligible (`eligible`). The candidates of each table (thoughts,
entities, observations) are then searched by themselves, and only those are read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np

from mcp_ingress.toolsets.inner_voice.eligible import RowFilter, find_eligible
from processors.inner_voice.rules.provenance import origin_of
from processors.inner_voice.rules.selection import Candidate, ranked
from processors.memory.kind import TableName
from processors.memory.read.standing import disputes, read_disputes
from processors.memory.registry import ROLES, place_of
from storage.search.captured import CAPTURED, read_turns, reading
from storage.search.index_set import IndexSet
from storage.search.ranked_list import MAX_OTHERS
from storage.search.ranking.newest import lifted, read_changes
from storage.search.records.label_map import ABSENT
from storage.search.records.records import Records
from storage.search.search import CATCH_UP_S
from storage.search.vectors.vector_model import VectorModel
from streams.ids import document_label

THOUGHTS: TableName = "thoughts"


@dataclass(frozen=True, slots=True)
class Fetched:
    """The most similar candidates of one table, and how many rows were eligible before that cut."""

    candidates: list[Candidate]
    eligible: int


def fetch_candidates(
    cursor: duckdb.DuckDBPyConnection,
    indexes: IndexSet,
    model: VectorModel,
    vector: np.ndarray,
    tables: Sequence[TableName],
    row_filter: RowFilter,
    cap: int,
) -> dict[TableName, Fetched]:
    """The `cap` rows of each table that are most similar to the unit vector and pass the filters.

    What was said in captured sessions are thoughts too.
    """
    found = _fetch(cursor, indexes, model, vector, tables, row_filter, cap)
    turns = indexes.searched_turns(row_filter.namespace)
    if turns is None or THOUGHTS not in tables:
        return found
    turns.catch_up(CATCH_UP_S)
    with reading(cursor, CAPTURED):
        said = _fetch(cursor, turns, model, vector, (THOUGHTS,), row_filter, cap)[THOUGHTS]
    labels = {document_label(row_filter.namespace, one.record_id): one for one in said.candidates}
    about = read_turns(cursor, list(labels))
    candidates = [replace(one, said=about.get(label, {})) for label, one in labels.items()]
    best = ranked([*found[THOUGHTS].candidates, *candidates])[:cap]
    return found | {THOUGHTS: Fetched(best, found[THOUGHTS].eligible + said.eligible)}


def _fetch(
    cursor: duckdb.DuckDBPyConnection,
    indexes: IndexSet,
    model: VectorModel,
    vector: np.ndarray,
    tables: Sequence[TableName],
    row_filter: RowFilter,
    cap: int,
) -> dict[TableName, Fetched]:
    eligible = find_eligible(cursor, indexes, model, row_filter)
    clusters, groups = indexes.records.clusters, [eligible[table] for table in tables]
    nearest = indexes.space(model.space).nearest_of_each(vector, math.ceil(cap * clusters.copies), groups)
    near = {
        table: dict(clusters.distinct(some, group)[:cap])
        for table, some, group in zip(tables, nearest, groups, strict=True)
    }
    found = _read(
        cursor, row_filter.namespace, {label: cosine for some in near.values() for label, cosine in some.items()}
    )
    found = _with_repeats(cursor, indexes.records, eligible, found)
    found = _with_changes(cursor, indexes.records, row_filter.namespace, found)
    return {
        table: Fetched([found[table, label] for label in some if (table, label) in found], len(eligible[table]))
        for table, some in near.items()
    }


def _with_repeats(
    cursor: duckdb.DuckDBPyConnection,
    records: Records,
    eligible: Mapping[TableName, np.ndarray],
    found: Mapping[tuple[TableName, int], Candidate],
) -> dict[tuple[TableName, int], Candidate]:
    """The candidates, with what else may be found that states the same."""
    labels = [label for _, label in found]
    stated = dict(zip(found, records.statements(labels, list(eligible.values()), MAX_OTHERS), strict=True))
    numbers = dict(zip(found, records.clusters.find(np.array(labels, np.int64)).tolist(), strict=True))
    others = records.documents.names_of(cursor, [each.others for each in stated.values()])
    names = dict(zip(found, others, strict=True))
    return {
        key: replace(
            candidate,
            cluster=None if numbers[key] == ABSENT else numbers[key],
            also=names[key],
            times=stated[key].times,
        )
        for key, candidate in found.items()
    }


def _with_changes(
    cursor: duckdb.DuckDBPyConnection,
    records: Records,
    namespace: str,
    found: Mapping[tuple[TableName, int], Candidate],
) -> dict[tuple[TableName, int], Candidate]:
    """The candidates, each of which is at least as near as one that it changes, and what they change."""
    records.follow_relations(cursor)
    pairs = records.change_pairs(np.array([label for _, label in found], np.int64))
    scores = lifted(np.array([candidate.score for candidate in found.values()]), pairs).tolist()
    changed = {}
    for (key, candidate), score in zip(found.items(), scores, strict=True):
        earlier, disputed_by = read_changes(cursor, records, namespace, key[1])
        disputed_by, tensions = disputes(records.clusters, namespace, earlier, disputed_by, candidate.tensions)
        changed[key] = replace(candidate, score=score, earlier=earlier, disputed_by=disputed_by, tensions=tensions)
    return changed


def _read(
    cursor: duckdb.DuckDBPyConnection, namespace: str, cosines: dict[int, float]
) -> dict[tuple[TableName, int], Candidate]:
    """The rows of these labels as candidates; scores to six digits, so that a floor equals what is shown."""
    if not cosines:
        return {}
    rows = cursor.execute(
        "SELECT label, record_id, toolset, kind, text, created_at FROM documents "
        "WHERE label IN (SELECT unnest(?::BIGINT[]))",
        [list(cosines)],
    ).fetchall()
    places = {label: place for label, _, toolset, kind, *_ in rows if (place := place_of(toolset, kind)) is not None}
    roles = _roles(cursor, namespace, [row[1] for row in rows if row[0] in places and places[row[0]].origin is None])
    tensions = read_disputes(cursor, namespace, [(row[2], row[3], row[1]) for row in rows])
    found: dict[tuple[TableName, int], Candidate] = {}
    for label, record_id, _, _, text, created_at in rows:
        if label in places:
            table, score = places[label].table, round(min(cosines[label], 1.0), 6)
            origin = origin_of(places[label], roles.get(record_id))
            own = tensions.get(record_id, {})
            found[table, label] = Candidate(table, record_id, text, score, created_at, origin, tensions=own)
    return found


def _roles(cursor: duckdb.DuckDBPyConnection, namespace: str, record_ids: list[str]) -> dict[str, str]:
    """Who said each of these records, where a table knows it."""
    if not record_ids:
        return {}
    query = (
        f"SELECT record_id, role FROM ({ROLES}) WHERE namespace = $namespace "
        "AND record_id IN (SELECT unnest($ids::VARCHAR[]))"
    )
    return dict(cursor.execute(query, {"namespace": namespace, "ids": record_ids}).fetchall())

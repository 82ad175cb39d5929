"""What the teleological tools read: a query's candidates, and the purpose that both are aligned with.

Until a goal is bootstrapped the purpose is provisional: the centre of the first FIRST memories.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from processors.context_graph.read.fingerprints import FingerprintReader, UnencodedText
from processors.context_graph.read.goals import GOALS, Purposes, purpose_of
from processors.context_graph.rules import synergy
from processors.context_graph.rules.goals import Goal, north_star_id
from processors.context_graph.rules.groups import VIEW_COUNT
from processors.context_graph.rules.memories import TOOLSET
from processors.context_graph.rules.views.alignment import alignments
from processors.context_graph.rules.views.centre import centre
from processors.context_graph.rules.views.fingerprint import Fingerprint
from processors.embedding.query import EncodedQuery
from storage.search.query import Query
from storage.search.search import Keywords, search
from storage.statements import execute

if TYPE_CHECKING:
    import duckdb

    from storage.search.vectors.model_vector import ModelVector

FIRST = 50
CANDIDATES, MOST_CANDIDATES = 50, 400
"""A namespace with no more memories has all of them compared, a larger one those that the search engine ranks first.

With 50 a search finds more of what is right than with 400, in a quarter of the time. 400 are for one that compares
single views, which the engine does not rank by.
"""
OF_A_VIEW = 10
"""This many of the nearest in each view with a model of its own are compared beside those; of a view that alone is
asked for as many as of the engine's."""
_LIVING = "AND NOT EXISTS (FROM context_ends e WHERE e.namespace = d.namespace AND e.memory_id = d.record_id)"
"""The provisional purpose is made of what was stored, merged or not, so that a merge does not change it."""
_SIDE = 200
"""Candidates of each side of the engine, at most."""


class Purpose(NamedTuple):
    """What memories are aligned with: the centre of a goal, or without one of the first memories."""

    centre: Fingerprint | None
    """None in an empty store"""
    goal: Goal | None = None


class TextQuestion(NamedTuple):
    """A text that memories are compared with, and what all are aligned with, None in an empty store."""

    text: UnencodedText
    towards: Fingerprint | None


@dataclass(frozen=True)
class Compared:
    """Candidates of a query with their alignments, and the purposes of both; NaN where a view is missing."""

    ids: Sequence[str]
    alignments: np.ndarray
    """[n, 13]"""
    query_purpose: np.ndarray
    """[13]"""
    purposes: np.ndarray
    """[n, 13]"""
    degraded: str | None = None


def question_of(reader: FingerprintReader, purposes: Purposes, text: str, at: datetime) -> TextQuestion:
    """The question that a text asks at a time."""
    return TextQuestion(reader.unencoded(text, at), purpose(reader, purposes).centre)


def compare(
    reader: FingerprintReader,
    question: TextQuestion,
    query: Query,
    prefetched: Keywords | None,
    memory_id: str | None = None,
    view: int | None = None,
) -> Compared:
    """Compare a text with at most `query.limit` memories of its namespace that the engine finds.

    Those that are nearest in a view with a model of its own are compared too. `memory_id`: the stored memory whose
    text it is; it is compared too. `view`: the one that alone is asked for.
    """
    of_models = reader.query_vectors(query.text, memory_id)
    ids, degraded = _candidates(reader, query, prefetched, of_models, view)
    if memory_id is not None and memory_id not in ids:
        ids = [memory_id, *ids]
    found = [one for one in reader.stored(ids) if one is not None]
    own = next((one for one in found if one.memory_id == memory_id), None) if memory_id is not None else None
    if own is None:
        asked = reader.of_text(question.text, EncodedQuery(query.vector, query.tokens, query.space))
    else:
        asked = reader.as_query(own)
    return Compared(
        [str(one.memory_id) for one in found],
        alignments(asked, found).astype(np.float64),
        purpose_vectors(question.towards, [asked])[0],
        purpose_vectors(question.towards, found),
        degraded,
    )


def purpose_vectors(towards: Fingerprint | None, texts: Sequence[Fingerprint]) -> np.ndarray:
    """[n, 13]: how each text is aligned with a purpose; zeros without one."""
    if towards is None:
        return np.zeros((len(texts), VIEW_COUNT))
    return alignments(towards, texts).astype(np.float64)


def mean_alignment(aligned: np.ndarray) -> float:
    """The mean of (13,) alignments over the views that say something; 0 where none does."""
    known = aligned[~np.isnan(aligned)]
    return float(known.mean()) if len(known) else 0.0


def purpose(reader: FingerprintReader, purposes: Purposes) -> Purpose:
    """The North Star's centre; until there is one, the centre of the first memories."""
    has_goal = reader.may_hold(GOALS, (reader.namespace, north_star_id(reader.namespace)))
    goal = purposes.north_star(reader.cursor, reader.namespace) if has_goal else None
    if goal is not None and (found := purpose_of(reader, purposes, goal)) is not None:
        return Purpose(found, goal)
    return Purpose(_provisional(reader, purposes))


def _provisional(reader: FingerprintReader, purposes: Purposes) -> Fingerprint | None:
    """The centre of the first memories in the order of the log; None in an empty store."""
    live, space = reader.indexes.spaces.live, reader.spaces
    if (known := purposes.known(reader.namespace, space)) is not None:
        return known
    first = [one for one in reader.stored(_first_ids(reader.cursor, reader.namespace, FIRST)) if one is not None]
    if not first:
        return None
    found = centre(first)
    if len(first) == FIRST and all((one.vector is None) == (live is None) for one in first):
        purposes.keep(reader.namespace, space, found)
    return found


def read_synergy(reader: FingerprintReader) -> np.ndarray:
    """[13, 13]: the synergy matrix as judged results have left it."""
    if not reader.may_hold("context_synergy", (reader.namespace,)):
        return synergy.INITIAL
    query = "SELECT pairs FROM context_synergy WHERE namespace = ?"
    row = execute(reader.cursor, query, [reader.namespace]).fetchone()
    return synergy.INITIAL if row is None else synergy.from_pairs(row[0])


def _candidates(
    reader: FingerprintReader,
    query: Query,
    prefetched: Keywords | None,
    of_models: Mapping[int, ModelVector],
    view: int | None,
) -> tuple[list[str], str | None]:
    """The ids of what the engine finds, and of the nearest in each view whose model has made all."""
    allowed = reader.indexes.records.allowed(reader.cursor, query.filter)
    if len(allowed.labels) <= query.limit:
        return _ids(reader.cursor, reader.namespace, allowed.labels), None
    deep = replace(query, pool=min(query.limit, _SIDE), distinct=False)
    found = search(reader.cursor, reader.indexes, deep, prefetched)
    ids = [hit.record_id for hit in found.hits]
    own = reader.nearest_of_models(of_models, OF_A_VIEW if view is None else query.limit, allowed.labels, view)
    known = {hit.label for hit in found.hits}
    added = [label for label in own if label not in known]
    return ids + (_ids(reader.cursor, reader.namespace, np.array(added, np.int64)) if added else []), found.degraded


def _ids(cursor: duckdb.DuckDBPyConnection, namespace: str, labels: np.ndarray) -> list[str]:
    rows = execute(
        cursor,
        "SELECT record_id FROM documents WHERE label IN (SELECT unnest(?::BIGINT[])) AND namespace = ? "
        'ORDER BY "offset", label',
        [labels.tolist(), namespace],
    ).fetchall()
    return [str(row[0]) for row in rows]


def _first_ids(cursor: duckdb.DuckDBPyConnection, namespace: str, most: int, also: str = "") -> list[str]:
    rows = execute(
        cursor,
        f"SELECT record_id FROM documents d WHERE namespace = ? AND toolset = ? {also} "
        'ORDER BY "offset", label LIMIT ?',
        [namespace, TOOLSET, most],
    ).fetchall()
    return [str(row[0]) for row in rows]

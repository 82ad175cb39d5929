"""`hybrid_search` as a function, for the tool, the resource and the golden test.

It searches both sides in parallel and fuses them by rank.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np
import orjson

from mcp_ingress.call import Call
from processors.cognitive.rules.identifiers import L2, TOOLSET, normalised, number_in
from processors.cognitive.rules.ranking import POOL, TRIGRAM_SIMILARITY, Fused, K, fuse, trigrams, word_similarity
from storage.search.query import Query
from storage.search.ranked_list import MAX_OTHERS
from storage.search.ranking.distinct import WIDER, nearest_clusters
from storage.search.ranking.fusion import imputed_order
from storage.search.ranking.newest import lifted, read_changes
from storage.search.records.filter import Filter, predicate
from storage.search.words.tantivy_schema import WORDS
from storage.statements import dicts

Names = Sequence[tuple[str, str]]
Others = tuple[Names, int, Names, Names]
"""(kind, id) of what states the same, how often it was stated, what it changes, and what changes it."""
COSINE_DIGITS = 5
MAX_TRIGRAMS = 24
MAX_SCANNED = 2_000


@dataclass(frozen=True, slots=True)
class FoundInsight:
    """An insight and its place; `distance` is 1 − cosine, None when the semantic side has not found it.

    `also`: (kind, record id) of other insights that state the same; `times`: how often it was stated.
    """

    row: Mapping[str, Any]
    place: Fused
    distance: float | None
    also: Sequence[tuple[str, str]] = ()
    times: int = 1
    earlier: Sequence[tuple[str, str]] = ()
    """(kind, record id) of memories of which it changes what they say."""
    disputed_by: Sequence[tuple[str, str]] = ()
    """(kind, record id) of memories that change what it says."""

    def states(self, numbers: Collection[int]) -> int:
        """The number by which it is expected: that of another insight which states the same, else its own."""
        others = (number_in(record) for _, record in self.also)
        return next((number for number in (self.row["id"], *others) if number in numbers), int(self.row["id"]))


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a search found, best first, and how many each side found."""

    insights: list[FoundInsight]
    semantic: int
    keyword: int


def insights(namespace: str, *, created_from: datetime | None = None, created_before: datetime | None = None) -> Filter:
    """The filter of a namespace's insights. Times are UTC without a zone, as in the tables, the second exclusive."""
    first, last = (None if moment is None else moment.replace(tzinfo=UTC) for moment in (created_from, created_before))
    return Filter(
        namespace, kinds=(L2,), toolsets=(TOOLSET,), created_from=first, created_before=last, exclude_merged=False
    )


async def retrieve(call: Call, query: Query, weights: Mapping[str, float]) -> Retrieval:
    """The insights nearest to the vector, and those with the words of the text, fused by rank.

    A side of weight 0 is not searched; each brings `query.pool` candidates, POOL times the limit by default. Nothing
    matches the words better than the very text: a stored text is found first by itself. An insight without a vector yet
    has the semantic rank that its words give it, and no distance.
    """
    size, text = query.pool or POOL * query.limit, query.text
    near, hits = await asyncio.gather(_semantic(call, query, size, weights), _keyword(call, query, size, weights))
    rows = await call.read(lambda cursor: _read(cursor, call.namespace, list({*hits, *(label for label, _ in near)})))
    own = [label for label, row in rows.items() if normalised(row["content"]) == normalised(text)]
    words = [*own, *(label for label in hits if label not in own)] if weights["keyword"] else []
    embedded = call.services.indexes.space(query.space).embedded(words)
    meaning = imputed_order(_nearest_first(near, own), words, embedded) if near else []
    fused = fuse(meaning, words, weights)
    distances = {label: round(1 - cosine, 6) for label, cosine in near}

    def choose(cursor: duckdb.DuckDBPyConnection) -> list[FoundInsight]:
        best = _newest_first(cursor, call, [each for each in fused if each.label in rows], rows)[: query.limit]
        others = _others(cursor, call, query.filter, [each.label for each in best])
        return [FoundInsight(rows[each.label], each, distances.get(each.label), *others[each.label]) for each in best]

    found = await call.read(choose)
    return Retrieval(found, len(near), len(hits))


def _newest_first(
    cursor: duckdb.DuckDBPyConnection, call: Call, fused: list[Fused], rows: Mapping[int, Mapping[str, Any]]
) -> list[Fused]:
    """The places: what changes another has at least its score, and of equals the newer is first."""
    records = call.services.indexes.records
    records.follow_relations(cursor)
    pairs = records.change_pairs(np.array([each.label for each in fused], np.int64))
    if not pairs:
        return fused
    scores = lifted(np.array([each.rrf_score for each in fused]), pairs).tolist()
    found = [replace(each, rrf_score=raw, score=(K + 1) * raw) for each, raw in zip(fused, scores, strict=True)]
    by_age = sorted(found, key=lambda each: rows[each.label]["created_at"], reverse=True)
    return sorted(by_age, key=lambda each: -round(each.rrf_score, 15))


def _others(cursor: duckdb.DuckDBPyConnection, call: Call, chosen: Filter, labels: Sequence[int]) -> dict[int, Others]:
    """By label what other memories have to do with an insight."""
    records = call.services.indexes.records
    allowed = records.allowed(cursor, chosen).labels
    stated = records.statements(labels, [allowed], MAX_OTHERS)
    names = records.documents.names_of(cursor, [each.others for each in stated])
    return {
        label: (also, each.times, *read_changes(cursor, records, chosen.namespace, label))
        for label, also, each in zip(labels, names, stated, strict=True)
    }


def _nearest_first(near: Sequence[tuple[int, float]], own: Collection[int]) -> list[int]:
    """Nearest first; of equally near insights the one with the very text: two texts may be one to a model."""
    return [
        label for label, _ in sorted(near, key=lambda match: (-round(match[1], COSINE_DIGITS), match[0] not in own))
    ]


async def _semantic(call: Call, query: Query, size: int, weights: Mapping[str, float]) -> Sequence[tuple[int, float]]:
    vector, indexes = query.vector, call.services.indexes
    if vector is None or not weights["semantic"]:
        return []

    def search(cursor: duckdb.DuckDBPyConnection) -> Sequence[tuple[int, float]]:
        records = indexes.records
        allowed = records.allowed(cursor, query.filter)
        return nearest_clusters(indexes.space(query.space), records.clusters, vector, size, allowed).matches

    return await call.read(search)


async def _keyword(call: Call, query: Query, size: int, weights: Mapping[str, float]) -> list[int]:
    if not weights["keyword"]:
        return []

    def search(cursor: duckdb.DuckDBPyConnection) -> list[int]:
        indexes = call.services.indexes
        allowed, clusters = indexes.records.allowed(cursor, query.filter), indexes.records.clusters
        said, depth = list[int](), math.ceil(size * clusters.copies)
        while True:
            matches = indexes.words.search(cursor, query.text, allowed, depth, field=WORDS).matches
            said = [label for label, _ in clusters.distinct(matches, allowed.labels)][:size]
            if len(said) == size or len(matches) < depth:
                break
            depth *= WIDER
        if len(said) >= query.limit:
            return said
        alike = clusters.distinct(_alike(cursor, query.text, query.filter), allowed.labels)
        return list(dict.fromkeys([*said, *(label for label, _ in alike)]))[:size]

    return await call.read(search)


def _alike(cursor: duckdb.DuckDBPyConnection, text: str, chosen: Filter) -> list[tuple[int, float]]:
    """Insights like the text, as (label, share of the trigrams), best first.

    So parts of words and other spellings are found. The newest are compared.
    """
    # of a long query those within words first: they are also in the middle of compounds
    parts = sorted(
        (part[1:] if part.startswith("  ") else part for part in trigrams(text)), key=lambda part: (" " in part, part)
    )[:MAX_TRIGRAMS]
    if not parts:
        return []
    shared = " + ".join(["contains(folded, ?)::INTEGER"] * len(parts))
    condition = predicate(chosen)
    folded = "' ' || translate(lower(text), chr(9) || chr(10) || chr(13), '   ') || ' '"
    rows = cursor.execute(
        f"SELECT label, text FROM (SELECT label, text, created_at, {folded} AS folded FROM documents d "
        f"WHERE {condition.sql}) WHERE {shared} >= ? ORDER BY created_at DESC LIMIT {MAX_SCANNED}",
        [*condition.parameters, *parts, max(1, int(TRIGRAM_SIMILARITY * len(parts)))],
    ).fetchall()
    scored = [(label, word_similarity(text, said)) for label, said in rows]
    alike = [(label, share) for label, share in scored if share >= TRIGRAM_SIMILARITY]
    return sorted(alike, key=lambda each: (-each[1], each[0]))


def _read(cursor: duckdb.DuckDBPyConnection, namespace: str, labels: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The insights with these labels."""
    if not labels:
        return {}
    records = cursor.execute(
        "SELECT label, record_id FROM documents WHERE label IN (SELECT unnest(?::BIGINT[]))", [list(labels)]
    ).fetchall()
    numbers = {number_in(record): label for label, record in records}
    rows = read_insights(
        cursor, "WHERE namespace = ? AND id IN (SELECT unnest(?::BIGINT[]))", [namespace, list(numbers)]
    )
    return {numbers[row["id"]]: row for row in rows}


def read_insights(cursor: duckdb.DuckDBPyConnection, condition: str, parameters: Sequence[Any]) -> list[dict[str, Any]]:
    """Rows of `l2_insights` as plain values."""
    result = cursor.execute(
        "SELECT id, content, created_at, source_ids, fidelity_score, fidelity_warning, warning_message, "
        f"source_coverage FROM l2_insights {condition}",
        list(parameters),
    )
    return [row | {"source_ids": orjson.loads(row["source_ids"])} for row in dicts(result)]

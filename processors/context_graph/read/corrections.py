"""Corrections: what the one in force makes of a search, and how one is tried before it is applied."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from processors.context_graph.read.drift import DriftReader, Observation
from processors.context_graph.rules.corrections import (
    FORCED_FACTOR,
    NONE,
    REORDERED,
    TREND_FACTORS,
    Corrected,
    Correction,
    Probe,
    correct,
    strategy_of,
    top_alignment,
)
from processors.context_graph.rules.drift import Severity
from processors.context_graph.rules.goals import background
from processors.context_graph.rules.memories import TOOLSET
from processors.embedding.model import encode_query
from processors.embedding.query import EncodedQuery
from storage.search.query import Query
from storage.search.ranking.fusion import ordered
from storage.search.ranking.newest import lifted
from storage.search.records.filter import Filter
from storage.search.search import search
from storage.statements import dicts, execute
from streams.errors import EmbedderUnavailable

if TYPE_CHECKING:
    import duckdb

    from processors.embedding.model import Embedder
    from storage.search.records.hits import SearchHit

CORRECTIONS = "context_corrections"
PROBES = 50
"""Searches on which a correction is tried."""


class ProbeQueries:
    """The queries on which corrections are tried: sentences of unrelated matters. Any number of threads."""

    def __init__(self) -> None:
        self._encoded: tuple[str | None, list[tuple[str, EncodedQuery]]] | None = None
        self._lock = threading.Lock()

    def encoded(self, embedder: Embedder | None) -> list[tuple[str, EncodedQuery]]:
        """Each with its vector and tokens; of words only while no model answers."""
        space = None if embedder is None else embedder.info.space
        with self._lock:
            if self._encoded is None or self._encoded[0] != space:
                try:
                    made = [(text, _encoded(embedder, text)) for text in _texts()]
                except EmbedderUnavailable:
                    return [(text, EncodedQuery()) for text in _texts()]
                self._encoded = space, made
            return self._encoded[1]


def _texts() -> Sequence[str]:
    """Every third of the bundled sentences."""
    return background()[::3][:PROBES]


def _encoded(embedder: Embedder | None, text: str) -> EncodedQuery:
    if embedder is None:
        return EncodedQuery()
    vector, tokens = encode_query(embedder, text)
    return EncodedQuery(vector, tokens, embedder.info.space)


def read_correction(cursor: duckdb.DuckDBPyConnection, namespace: str) -> Correction:
    """The correction that is in force; NONE without one."""
    rows = dicts(
        execute(
            cursor,
            f"SELECT strategy, goal_weight, view_weights, threshold, penalty FROM {CORRECTIONS} "
            "WHERE namespace = ? AND (goal_weight > 0 OR penalty > 0)",
            [namespace],
        )
    )
    return Correction.of(rows[0]) if rows else NONE


def in_force(cursor: duckdb.DuckDBPyConnection, namespace: str) -> tuple[str | None, str | None]:
    """The strategy of the correction that is in force, and the severity that it was for; None without one."""
    row = execute(
        cursor,
        f"SELECT strategy, severity FROM {CORRECTIONS} WHERE namespace = ? AND (goal_weight > 0 OR penalty > 0)",
        [namespace],
    ).fetchone()
    return (None, None) if row is None else (row[0], row[1])


def reordered(
    hits: Sequence[SearchHit], correction: Correction, aligned: Mapping[str, np.ndarray]
) -> tuple[list[SearchHit], dict[str, float]]:
    """Hits, the first REORDERED as a correction orders them, and what it added to the score of each.

    `aligned`: by memory its [13] alignments with the goal; one without is taken as it is. What changes another memory
    stays before it.
    """
    first = list(hits[:REORDERED])
    rows = [aligned.get(hit.record_id) for hit in first]
    added = np.array([0.0 if row is None else float(correction.bonus(row[None])[0]) for row in rows])
    places = {(hit.kind, hit.record_id): place for place, hit in enumerate(first)}
    pairs = [(place, places[older]) for place, hit in enumerate(first) for older in hit.earlier if older in places]
    scores = lifted(np.array([hit.score for hit in first]) + added, pairs)
    by_label = {hit.label: hit for hit in first}
    order = ordered(
        dict(zip(by_label, scores.tolist(), strict=True)),
        {hit.label: (hit.created_at, hit.record_id) for hit in first},
    )
    bonuses = {hit.record_id: float(bonus) for hit, bonus in zip(first, added, strict=True)}
    return [*(by_label[label] for label in order), *hits[REORDERED:]], bonuses


def probes(drift: DriftReader, queries: Sequence[tuple[str, EncodedQuery]]) -> list[Probe]:
    """The first results of each search of a namespace, as the engine ranks them, with their alignments.

    They are made anew once the indexes, or the relations of what is in them, have changed.
    """
    records, key = drift.reader.indexes.records, ("probes", drift.key, queries[0][1].space)

    def find(known: tuple[Hashable, list[Probe]] | None, rows: Mapping[str, int]) -> tuple[Hashable, list[Probe]]:
        state = records.contents, *rows.values()
        return known if known is not None and known[0] == state else (state, _probes(drift, queries))

    return (
        records.cached(drift.reader.cursor, key, find)[1]
        if drift.reader.indexes.words.is_whole
        else _probes(drift, queries)
    )


def _probes(drift: DriftReader, queries: Sequence[tuple[str, EncodedQuery]]) -> list[Probe]:
    reader = drift.reader
    chosen = Filter(reader.namespace, toolsets=(TOOLSET,))
    found = []
    for text, (vector, tokens, space) in queries:
        query = Query(text, vector, chosen, REORDERED, tokens, space)
        found.append(search(reader.cursor, reader.indexes, query).hits)
    aligned = drift.purpose_vectors(list(dict.fromkeys(hit.record_id for hits in found for hit in hits)))
    kept = [[hit for hit in hits if hit.record_id in aligned] for hits in found]
    return [
        Probe(np.array([hit.score for hit in hits]), np.array([aligned[hit.record_id] for hit in hits]))
        for hits in kept
        if hits
    ]


def deep_enough(query: Query) -> Query:
    """A query that finds what is reordered, by the same candidates."""
    return replace(query, limit=max(query.limit, REORDERED), pool=query.pool_size)


@dataclass(frozen=True)
class PlannedCorrection:
    """What a state calls for. `tried` is None where that is nothing; `state`: what searches give now."""

    observation: Observation
    severity: Severity
    state: float
    weights_before: list[float]
    tried: Corrected | None

    @property
    def findings(self) -> dict[str, Any]:
        """What its event says. Raises RuntimeError where nothing is to be corrected."""
        if self.tried is None:
            raise RuntimeError("No correction is planned.")
        made = self.tried.correction
        return {
            "goal_id": self.observation.goal.goal_id,
            "severity": self.severity,
            "trend": self.observation.course.trend,
            **told(made),
            "factor": self.tried.factor,
            "iterations": self.tried.iterations,
            "target_alignment": self.tried.target,
            "alignment_before": self.tried.before,
            "alignment_after": self.tried.after,
        }


def told(correction: Correction) -> dict[str, Any]:
    """A correction as events say it."""
    return {
        "strategy": correction.strategy,
        "goal_weight": correction.goal_weight,
        "view_weights": list(correction.view_weights),
        "threshold": correction.threshold,
        "penalty": correction.penalty,
    }


def plan(
    drift: DriftReader,
    observation: Observation,
    queries: Sequence[tuple[str, EncodedQuery]],
    *,
    force: bool = False,
    target: float | None = None,
) -> PlannedCorrection:
    """What the state of a namespace calls for, tried on searches. Nothing is changed by it."""
    tested, in_force = probes(drift, queries), read_correction(drift.reader.cursor, drift.reader.namespace)
    severity, trend = observation.severity, observation.course.trend
    before, strategy = top_alignment(tested, in_force), strategy_of(severity, trend, force=force)
    tried = None
    if strategy != "none":
        factor = TREND_FACTORS[trend] * (FORCED_FACTOR if severity == "none" else 1.0)
        tried = correct(strategy, factor, observation.baseline, observation.drift, tested, before, target)
    return PlannedCorrection(observation, severity, before, list(in_force.view_weights), tried)

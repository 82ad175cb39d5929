"""Candidates for goals: groups of a namespace's memories, and how far each is of one matter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from processors.context_graph.read.ends import followed_all
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.goals import central_ids
from processors.context_graph.rules.clusters import cluster_count, clusters
from processors.context_graph.rules.goals import (
    TIE,
    background,
    coherence_of,
    confidence_of,
    dominant_views,
    goal_text,
    nearness_within,
)
from processors.context_graph.rules.views.alignment import alignments
from processors.context_graph.rules.views.centre import centre
from processors.context_graph.rules.views.fingerprint import Fingerprint
from processors.embedding.model import Embedder, encode_documents
from storage.search.vectors.token_vectors import unit
from storage.statements import execute
from streams.errors import EmbedderUnavailable
from streams.event_types.context_goals import MAX_MEMBERS

if TYPE_CHECKING:
    import duckdb

SEEN_MEMBERS = 32
"""Of a candidate this many memories are compared with its centre in all views."""


class Background:
    """The vectors of the unrelated sentences, by space: a quarter of a second, once a process."""

    def __init__(self) -> None:
        self._rows: dict[str, np.ndarray] = {}

    async def rows(self, embedder: Embedder | None) -> np.ndarray:
        """(m, dim) rows of length 1. Raises EmbedderUnavailable."""
        if embedder is None:
            raise EmbedderUnavailable("Without a model nothing says which memories belong together.")
        space = embedder.info.space
        if space not in self._rows:
            loop = asyncio.get_running_loop()
            self._rows[space] = await loop.run_in_executor(None, encode_documents, embedder, background())
        return self._rows[space]


@dataclass(frozen=True)
class Sample:
    """Memories that goals are looked for in: living ones that have vectors, in the order of their ids.

    At most MAX_MEMBERS of them, those of the lowest labels, which are hashes. `rows`: (n, dim) of length 1.
    """

    ids: Sequence[str]
    rows: np.ndarray
    clusters: Sequence[np.ndarray] = field(init=False)
    """Sorted places of each cluster, largest first"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "clusters", clusters(self.rows, cluster_count(len(self.ids))))


@dataclass(frozen=True)
class GoalCandidate:
    """A group of memories as a goal. `share`: of the sample that it is; `centre`: of SEEN_MEMBERS of its memories.

    `nearness`: mean cosine of a member with the centre of the others.
    """

    member_ids: Sequence[str]
    medoid_id: str
    share: float
    nearness: float
    coherence: float
    confidence: float
    dominant_views: Sequence[str]
    centre: Fingerprint

    def found(self, text: str) -> dict[str, Any]:
        """The fields by which its event tells it; `text`: of its medoid."""
        return {
            "goal_text": goal_text(text),
            "medoid_id": self.medoid_id,
            "member_ids": list(self.member_ids),
            "confidence": round(self.confidence, 6),
            "coherence": round(self.coherence, 6),
            "dominant_embedders": list(self.dominant_views),
        }


def read_sample(reader: FingerprintReader, members: Sequence[str] | None = None) -> Sample:
    """The memories of a namespace, or of these ids what stands for them now."""
    labels = dict(_living(reader.cursor, reader.namespace, members))
    live = reader.indexes.spaces.live
    vectors = {} if live is None else live.vectors(np.array(list(labels.values()), np.int64))
    ids = [identity for identity in sorted(labels) if labels[identity] in vectors]
    rows = np.stack([vectors[labels[identity]] for identity in ids]) if ids else np.empty((0, 0), np.float32)
    return Sample(ids, unit(rows.astype(np.float32)) if ids else rows)


def evaluate(reader: FingerprintReader, sample: Sample, places: np.ndarray, unrelated: np.ndarray) -> GoalCandidate:
    """The candidate of these places of a sample."""
    rows, ids = sample.rows[places], [sample.ids[place] for place in places]
    share = len(ids) / len(sample.ids)
    seen = [one for one in reader.stored(central_ids(reader.namespace, ids, SEEN_MEMBERS)) if one is not None]
    middle = centre(seen)
    names, dominant_share = dominant_views(alignments(middle, seen))
    coherence = coherence_of(rows, unrelated, share)
    confidence = confidence_of(coherence, len(ids), len(sample.ids), dominant_share)
    medoid = ids[int(np.argmax(rows @ unit(rows.sum(axis=0))))]
    nearness = float(nearness_within(rows).mean())
    return GoalCandidate(ids, medoid, share, nearness, coherence, min(confidence, 1.0), names, middle)


def best_of(candidates: Sequence[GoalCandidate], threshold: float) -> GoalCandidate | None:
    """The largest of those that are as good as the best, of those that reach the threshold."""
    passing = [one for one in candidates if round(one.confidence, 6) >= threshold]
    if not passing:
        return None
    best = max(one.confidence for one in passing)
    return max((one for one in passing if one.confidence >= best - TIE), key=lambda one: len(one.member_ids))


def surest(candidates: Sequence[GoalCandidate], least_confidence: float) -> list[GoalCandidate]:
    """Those of at least this confidence, the surest first.

    Of two that are as sure to two digits it is the one whose memories are nearer to each other.
    """
    sure = [one for one in candidates if round(one.confidence, 6) >= least_confidence]
    return sorted(sure, key=lambda one: (-round(one.confidence, 2), -one.nearness))


def read_content(cursor: duckdb.DuckDBPyConnection, namespace: str, memory_id: str) -> str:
    """What was searched of a memory: its content, or what stands for one without words."""
    row = execute(
        cursor,
        "SELECT coalesce(searched, content) FROM context_memories WHERE namespace = ? AND memory_id = ?",
        [namespace, memory_id],
    ).fetchone()
    return "" if row is None else str(row[0])


def _living(cursor: duckdb.DuckDBPyConnection, namespace: str, members: Sequence[str] | None) -> list[tuple[str, int]]:
    """Id and label of memories that were not merged, at most MAX_MEMBERS of the lowest labels."""
    chosen, parameters = "", [namespace]
    if members is not None:
        merged = followed_all(cursor, namespace, members)
        chosen, kept = "AND memory_id IN (SELECT unnest($2::VARCHAR[]))", [merged.get(one, one) for one in members]
        parameters = [namespace, kept]  # type: ignore[list-item]
    rows: list[tuple[str, int]] = execute(
        cursor,
        f"SELECT memory_id, label FROM context_memories m WHERE namespace = $1 {chosen} AND NOT EXISTS "
        "(FROM context_ends e WHERE e.namespace = m.namespace AND e.memory_id = m.memory_id) "
        f"ORDER BY label LIMIT {MAX_MEMBERS}",
        parameters,
    ).fetchall()
    return rows

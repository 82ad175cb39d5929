"""Candidates for goals: groups of a namespace's memories, and how far each is of one matter."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

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

MOST_KERNELS = 96
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


class Kernel(NamedTuple):
    """The centre of a group's SEEN_MEMBERS, and the views in which these are near to it.

    `dominant_share`: of the views that say something.
    """

    centre: Fingerprint
    dominant_views: Sequence[str]
    dominant_share: float


class Kernels:
    """Those of the groups that were looked at last, by space and memories: most groups outlast a write.

    Any number of threads.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[str, str, tuple[str, ...]], Kernel] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, reader: FingerprintReader, memory_ids: Sequence[str]) -> Kernel:
        """The kernel of these memories, at least one of which is stored."""
        key = reader.namespace, reader.spaces, tuple(memory_ids)
        with self._lock:
            known = self._found.pop(key, None)
        if known is None:
            seen = [one for one in reader.stored(memory_ids) if one is not None]
            middle = centre(seen)
            known = Kernel(middle, *dominant_views(alignments(middle, seen)))
            if any(one.vector is None for one in seen):
                return known
        with self._lock:
            self._found[key] = known
            while len(self._found) > MOST_KERNELS:
                self._found.popitem(last=False)
        return known


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


class SampleCandidates(NamedTuple):
    """The candidates of a sample: all of its memories as one, and each cluster.

    `memories`: how many there are; `whole`: None without any.
    """

    memories: int
    whole: GoalCandidate | None
    clusters: Sequence[GoalCandidate]


def read_candidates(
    reader: FingerprintReader, kernels: Kernels, unrelated: np.ndarray, members: Sequence[str] | None = None
) -> SampleCandidates:
    """The candidates among the memories of a namespace, or among what stands for these ids now.

    They are found anew once a memory was stored or embedded, or has ended.
    """
    records, key = reader.indexes.records, None if members is None else tuple(members)

    def find(
        known: tuple[Hashable, SampleCandidates] | None, rows: Mapping[str, int]
    ) -> tuple[Hashable, SampleCandidates]:
        state = records.contents, rows["context_ends"]
        if known is not None and known[0] == state:
            return known
        sample = read_sample(reader, members)
        groups = [evaluate(reader, kernels, sample, places, unrelated) for places in sample.clusters]
        every = np.arange(len(sample.ids))
        whole = evaluate(reader, kernels, sample, every, unrelated) if len(every) else None
        return state, SampleCandidates(len(every), whole, groups)

    return records.cached(reader.cursor, ("goals", reader.namespace, reader.spaces, key), find)[1]


def read_sample(reader: FingerprintReader, members: Sequence[str] | None = None) -> Sample:
    """The memories of a namespace, or of these ids what stands for them now."""
    labels = dict(_living(reader.cursor, reader.namespace, members))
    live = reader.indexes.spaces.live
    vectors = {} if live is None else live.vectors(np.array(list(labels.values()), np.int64))
    ids = [identity for identity in sorted(labels) if labels[identity] in vectors]
    rows = np.stack([vectors[labels[identity]] for identity in ids]) if ids else np.empty((0, 0), np.float32)
    return Sample(ids, unit(rows.astype(np.float32)) if ids else rows)


def evaluate(
    reader: FingerprintReader, kernels: Kernels, sample: Sample, places: np.ndarray, unrelated: np.ndarray
) -> GoalCandidate:
    """The candidate of these places of a sample."""
    rows, ids = sample.rows[places], [sample.ids[place] for place in places]
    share = len(ids) / len(sample.ids)
    middle, names, dominant_share = kernels.of(reader, central_ids(reader.namespace, ids, SEEN_MEMBERS))
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


def read_medoids(
    cursor: duckdb.DuckDBPyConnection, namespace: str, candidates: Sequence[GoalCandidate]
) -> list[dict[str, Any]]:
    """What events tell of these candidates, each with what was searched of its medoid."""
    rows = execute(
        cursor,
        "SELECT memory_id, coalesce(searched, content) FROM context_memories "
        "WHERE namespace = ? AND memory_id IN (SELECT unnest(?::VARCHAR[]))",
        [namespace, [one.medoid_id for one in candidates]],
    ).fetchall()
    texts = dict(rows)
    return [one.found(texts.get(one.medoid_id, "")) for one in candidates]


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

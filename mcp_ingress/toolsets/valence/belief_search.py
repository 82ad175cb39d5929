"""The search of beliefs: which may be found, which match, and in what order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import duckdb
import numpy as np

from mcp_ingress.toolsets.valence.belief_queries import Row, beliefs_of
from processors.memory.read.standing import disputes, read_successors
from processors.valence.read.belief_consistency import open_tensions
from processors.valence.read.tension_candidates import linked_to
from processors.valence.rules.confidence import age_days, recency
from processors.valence.rules.wording import without_grammar
from storage.search.index_set import IndexSet
from storage.search.query import MIN_COSINE, pool_of
from storage.search.ranked_list import MAX_OTHERS
from storage.search.ranking.newest import lifted, read_changes
from storage.search.records.clusters import Clusters
from storage.search.records.label_map import ABSENT
from storage.search.records.matches import Matches
from storage.search.records.records import Records
from storage.valence.belief_follower import BeliefFollower, Beliefs
from streams.ids import document_label

Match = tuple[float, datetime, int, dict[str, float]]
"""Score, time, label and parts of a belief that matches."""
WEIGHTS: Mapping[str, float] = {"semantic": 0.50, "confidence": 0.35, "recency": 0.15}


@dataclass(frozen=True, slots=True)
class BeliefFilter:
    """Which beliefs a search may find.

    `entity_id` is canonical; `include_superseded` adds superseded and expired beliefs.
    """

    namespace: str
    domains: tuple[str, ...] = ()
    entity_id: str | None = None
    include_superseded: bool = False


@dataclass(frozen=True, slots=True)
class BeliefHit:
    """A belief that matches, in full: its rank's score in [0, 1], and the parts that it is made of."""

    belief: Row
    score: float
    parts: Mapping[str, float]
    also: Sequence[str] = ()
    """Ids of other beliefs that state the same."""
    times: int = 1
    earlier: Sequence[tuple[str, str]] = ()
    """(kind, id) of memories of which it changes what they say."""
    disputed_by: Sequence[tuple[str, str]] = ()
    """(kind, id) of memories that change what it says, or are in an open tension with it."""
    tensions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(kind, id) of beliefs that it is in an open tension with -> the tension's id."""
    superseded_by: tuple[str, str] | None = None
    """(kind, id) of what holds now in its place."""


@dataclass(frozen=True, slots=True)
class Prefetched:
    """The part of a search that needs no vector: (n,) arrays over all beliefs, and the best by words."""

    namespace: str
    now: datetime
    beliefs: Beliefs
    allowed: np.ndarray
    matches: np.ndarray
    """Allowed, and with a word of the text."""
    bm25: Mapping[int, float]
    """The keyword score of the best by words, by label."""


def prefetch(
    cursor: duckdb.DuckDBPyConnection,
    indexes: IndexSet,
    follower: BeliefFollower,
    text: str,
    conditions: BeliefFilter,
    pool: int,
    now: datetime,
) -> Prefetched:
    """Filters first, then words: what a search can do while its text is encoded."""
    beliefs = follower.view(cursor, conditions.namespace)
    allowed = _allowed(cursor, beliefs, conditions, now)
    terms = without_grammar(text)
    matches = indexes.words.contained_in(cursor, terms, conditions.namespace, beliefs.members) & allowed
    return Prefetched(
        conditions.namespace,
        now,
        beliefs,
        allowed,
        matches,
        dict(indexes.words.best_of(cursor, terms, conditions.namespace, beliefs.labels[allowed], pool)),
    )


def search_beliefs(
    cursor: duckdb.DuckDBPyConnection,
    indexes: IndexSet,
    prefetched: Prefetched,
    vector: np.ndarray | None,
    limit: int,
    *,
    space: str | None = None,
) -> tuple[list[BeliefHit], int]:
    """The best of all matches, and how many matches there are. A match shares a word or has cosine >= .30.

    Of the active beliefs that state the same, the best stands for all; among the best matches they count once.
    """
    nearby = indexes.space(space)
    beliefs, matches, bm25, best = prefetched.beliefs, prefetched.matches, prefetched.bm25, Matches()
    if vector is not None:
        near, best = nearby.within(vector, MIN_COSINE, beliefs.members, prefetched.allowed, pool_of(limit))
        matches = matches | near
    chosen = np.array(list(dict.fromkeys([*(label for label, _ in best), *bm25])), np.int64)
    meaning = np.full(len(chosen), np.nan) if vector is None else nearby.similarities(vector, chosen)
    most = max(bm25.values(), default=0.0)
    semantic = {
        label: _semantic(cosine, bm25.get(label, 0.0), most)
        for label, cosine in zip(chosen.tolist(), meaning.tolist(), strict=True)
    }
    records = indexes.records
    records.follow_relations(cursor)
    stated = _stated(records.clusters, beliefs, list(semantic))
    ranked = _ranked(cursor, prefetched.namespace, beliefs, semantic, stated, limit, prefetched.now, records)
    return ranked, _count_facts(records.clusters, beliefs, matches)


def _stated(clusters: Clusters, beliefs: Beliefs, labels: Sequence[int]) -> dict[int, int]:
    """label -> the cluster of a belief. One that is not active is a cluster of its own."""
    some = np.array(labels, np.int64)
    is_active = beliefs.is_active[beliefs.members.find(some)]
    found = clusters.find(some)
    return dict(zip(labels, np.where(is_active & (found != ABSENT), found, -some).tolist(), strict=True))


def _count_facts(clusters: Clusters, beliefs: Beliefs, matches: np.ndarray) -> int:
    """How many clusters the (n,) beliefs that match are of, as `_stated` counts them."""
    labels = beliefs.labels[matches]
    found = clusters.find(labels)
    is_one = beliefs.is_active[matches] & (found != ABSENT)
    return len(np.unique(found[is_one])) + int((~is_one).sum())


def _semantic(cosine: float, score: float, most: float) -> float:
    """The cosine; while there is no vector, the keyword score as a share of the best one."""
    if math.isnan(cosine):
        return score / most if most > 0 else 0.0
    return min(1.0, max(0.0, cosine))


def _ranked(
    cursor: duckdb.DuckDBPyConnection,
    namespace: str,
    beliefs: Beliefs,
    semantic: Mapping[int, float],
    stated: Mapping[int, int],
    limit: int,
    now: datetime,
    records: Records,
) -> list[BeliefHit]:
    """.50 semantic + .35 confidence + .15 recency; equals by time, newest first, then by id.

    One that changes what another says has at least the other's score.
    """
    if not semantic:
        return []
    places = beliefs.members.find(np.array(list(semantic), np.int64))
    rank: list[Match] = []
    overall = _overall(cursor, namespace, beliefs, places)
    for label, place in zip(beliefs.labels[places].tolist(), places.tolist(), strict=True):
        created_at = beliefs.created_at(place)
        parts = {
            "semantic": semantic[label],
            "confidence": overall[label],
            "recency": recency(age_days(created_at, now)),
        }
        rank.append((sum(WEIGHTS[name] * part for name, part in parts.items()), created_at, label, parts))
    rank = _newest_first(rank, records)
    rank.sort(key=lambda match: match[:2], reverse=True)
    same: dict[int, list[int]] = {}
    for _, _, label, _ in rank:
        same.setdefault(stated[label], []).append(label)
    rank = [match for match in rank if same[stated[match[2]]][0] == match[2]]
    # those that are equal to the last one go by their ids, which are read with the rows
    shown = [match for match in rank if match[:2] >= rank[min(limit, len(rank)) - 1][:2]]
    rows = {
        document_label(namespace, belief_id): row
        for belief_id, row in beliefs_of(
            cursor, namespace, [label for match in shown for label in same[stated[match[2]]][: MAX_OTHERS + 1]]
        ).items()
    }
    shown.sort(key=lambda match: rows[match[2]]["id"])
    shown.sort(key=lambda match: match[:2], reverse=True)
    hits = [
        BeliefHit(
            rows[label],
            score,
            parts,
            [str(rows[other]["id"]) for other in same[stated[label]][1 : MAX_OTHERS + 1]],
            len(same[stated[label]]),
            *read_changes(cursor, records, namespace, label),
        )
        for score, _, label, parts in shown[:limit]
    ]
    return _with_standing(cursor, records, namespace, hits)


def _with_standing(
    cursor: duckdb.DuckDBPyConnection, records: Records, namespace: str, hits: Sequence[BeliefHit]
) -> list[BeliefHit]:
    """The hits, each with its open tensions and, where it was superseded, with what holds now."""
    ended = [hit.belief["id"] for hit in hits if hit.belief["superseded_by_id"] is not None]
    successors = read_successors(cursor, records.documents, namespace, ended) if ended else {}
    tensions = open_tensions(cursor, namespace, [hit.belief["id"] for hit in hits])
    found = []
    for hit in hits:
        others = tensions.get(hit.belief["id"], {})
        disputed_by, own = disputes(records.clusters, namespace, hit.earlier, hit.disputed_by, others)
        superseded_by = successors.get(hit.belief["id"])
        found.append(replace(hit, disputed_by=disputed_by, tensions=own, superseded_by=superseded_by))
    return found


def _newest_first(rank: list[Match], records: Records) -> list[Match]:
    pairs = records.change_pairs(np.array([label for _, _, label, _ in rank], np.int64))
    if not pairs:
        return rank
    scores = lifted(np.array([score for score, *_ in rank]), pairs).tolist()
    return [(score, *match[1:]) for score, match in zip(scores, rank, strict=True)]


def _overall(
    cursor: duckdb.DuckDBPyConnection, namespace: str, beliefs: Beliefs, places: np.ndarray
) -> dict[int, float]:
    """The overall confidence of each; tensions change one only that was computed."""
    overall = dict(zip(beliefs.labels[places].tolist(), beliefs.overall[places].tolist(), strict=True))
    computed = beliefs.labels[places[beliefs.is_computed[places]]].tolist()
    for belief_id, row in beliefs_of(cursor, namespace, computed).items():
        overall[document_label(namespace, belief_id)] = row["confidence"]["overall"]
    return overall


def _allowed(
    cursor: duckdb.DuckDBPyConnection, beliefs: Beliefs, conditions: BeliefFilter, now: datetime
) -> np.ndarray:
    """(n,) whether each belief meets the conditions."""
    allowed = beliefs.valid_at(now, include_superseded=conditions.include_superseded)
    if conditions.domains:
        found = cursor.execute(
            "SELECT label FROM valence_beliefs WHERE namespace = ? AND list_has_any(domain_path, ?::VARCHAR[])",
            [conditions.namespace, list(conditions.domains)],
        ).fetchnumpy()
        allowed &= _among(beliefs, found["label"])
    if conditions.entity_id is not None:
        allowed &= _among(beliefs, linked_to(cursor, conditions.namespace, conditions.entity_id))
    return allowed


def _among(beliefs: Beliefs, labels: np.ndarray) -> np.ndarray:
    among = np.zeros(len(beliefs.labels), bool)
    among[beliefs.members.find(np.asarray(labels, np.int64))] = True
    return among

"""The search engine: answers a query from all sides, over indexes that are kept equal to the tables (`held`)."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import duckdb
import numpy as np

from storage.search.index_set import HeldIndexes
from storage.search.ranking.candidates import Scored, found_by, ranked, seeds_of
from storage.search.ranking.fusion import WEIGHTS, K, fuse, imputed_order, ordered
from storage.search.records.append_only import TableCounts
from storage.search.records.filter import Filter
from storage.search.records.filter_cache import ENDED_BY, Allowed, AllowedLabels
from storage.search.records.hits import Asked, Heard, Hit, SearchResult, read_best, read_dates
from storage.search.records.label_map import ABSENT, places_in
from storage.search.records.relations import FOLLOWED, Relations
from storage.search.records.selection import Members
from storage.search.vectors.token_vectors import Tokens
from storage.search.vectors.vector_index import Matches, VectorIndex, VectorModel
from storage.search.words.table_scan import SCANNED_ROWS, scan_documents
from storage.search.words.tantivy_schema import TERMS, WORDS, Scores

__all__ = ["Hit", "SearchIndexes", "SearchResult"]

Found = TypeVar("Found")

MIN_POOL = 50
MIN_COSINE = 0.30
MIN_COSINE_RANKED = 0.15
KEYWORD_DEPTH = 400
"""So many BM25 scores count as evidence; candidates are the best of them only."""
PASSAGES_EACH = 3
"""How many entries a side is asked for to get as many documents, where there are long ones."""
REMEMBERED = 8
WARMED_ROWS = 5_000
"""Fewer relations and entities than these are read by the first search that asks (some 20 ms)."""


class SearchIndexes(HeldIndexes):
    """Searches of one data directory. Any number of threads search, each with a cursor of its own."""

    def __init__(
        self,
        directory: Path,
        connect: Callable[[], duckdb.DuckDBPyConnection],
        model: VectorModel | None,
        counted: Sequence[str] = (),
    ) -> None:
        super().__init__(directory, connect, model, counted)
        self._allowed = AllowedLabels()
        self._relations = Relations()
        self._rows = TableCounts(*dict.fromkeys(("documents", *ENDED_BY, *FOLLOWED)))
        self._warming: threading.Thread | None = None
        self._remembered: dict[Hashable, tuple[int, Any]] = {}

    def open(self, positions: Mapping[str, int]) -> None:
        """What `HeldIndexes.open` does; where there is much, what searches remember is read in the background, not by the first of them."""
        super().open(positions)
        cursor = self._connect()
        many = sum(self._rows.at(cursor, self._generation)[table] for table in FOLLOWED) > WARMED_ROWS
        if many or self.are_counted():
            self._warming = threading.Thread(target=self._warm, args=(cursor, many), name="warm-searches")
            self._warming.start()

    def _warm(self, cursor: duckdb.DuckDBPyConnection, has_relations: bool) -> None:
        if has_relations:
            self._follow(cursor)
        self.remember_words()

    def close(self, *, save: bool = True) -> None:
        super().close(save=save)
        if self._warming is not None:
            self._warming.join()

    def _follow(self, cursor: duckdb.DuckDBPyConnection) -> Relations:
        """The relations as of now."""
        generation, relations = self._generation, self._relations
        relations.follow(cursor, generation, self._rows.at(cursor, generation))
        return relations

    def remove(self, labels: Sequence[int]) -> None:
        super().remove(labels)
        # what has gone is not to be told from what has come
        self._allowed, self._relations, self._remembered = AllowedLabels(), Relations(), {}

    def nearest_of(
        self, vector: np.ndarray, k: int, groups: Sequence[np.ndarray], *, space: str | None = None
    ) -> list[Matches]:
        """Of each group of labels (sorted, int64) the k nearest to a unit vector of `space`, as (label, cosine), best first."""
        index = self._index_of(space)
        return index.search_groups(vector, k, groups) if index is not None else [[] for _ in groups]

    def nearest(
        self,
        cursor: duckdb.DuckDBPyConnection,
        vector: np.ndarray,
        k: int,
        filter: Filter | None = None,
        *,
        space: str | None = None,
    ) -> Matches:
        """The k records nearest to a unit vector of `space`, as (label, cosine), best first; of all namespaces without a filter."""
        return self.vector_side(vector, k, None if filter is None else self.allowed(cursor, filter), space)[0]

    def nearest_to_each(self, vectors: np.ndarray, k: int, least: float, *, space: str | None = None) -> list[Matches]:
        """For each of (n, dim) unit vectors of `space` the k records of all namespaces with at least this cosine, best first."""
        index = self._index_of(space)
        return index.search_many(vectors, k, least, self._pace.pause) if index is not None else [[] for _ in vectors]

    def give_way(self) -> None:
        """Call after every few milliseconds of work that nobody waits for: who waits for something else goes first."""
        self._pace.pause()

    def vectors(self, labels: np.ndarray, *, space: str | None = None) -> dict[int, np.ndarray]:
        """Those of a few labels that have a vector in `space`, with it."""
        index = self._index_of(space)
        return {} if index is None else index.vectors(labels)

    def embedded(self, labels: Sequence[int], *, space: str | None = None) -> set[int]:
        """Those of a few labels that have a vector in `space`."""
        index, asked = self._index_of(space), np.array(labels, np.int64)
        return set() if index is None else set(asked[index.places(asked) != ABSENT].tolist())

    def _index_of(self, space: str | None) -> VectorIndex | None:
        """The index in which a vector of this space (None: the one that answers) may be looked for."""
        if space is None:
            return self._vectors
        return next((held.vectors for held in self._spaces.values() if held.vectors.model.space == space), None)

    def cosines(self, vector: np.ndarray, labels: np.ndarray, *, space: str | None = None) -> np.ndarray:
        """The cosine of each of the (n,) labels to a unit vector of `space`; NaN for one without a vector in it."""
        index = self._index_of(space)
        return np.full(len(labels), np.nan, np.float32) if index is None else index.cosines(vector, labels)

    def within(
        self,
        vector: np.ndarray,
        least: float,
        members: Members,
        allowed: np.ndarray,
        k: int,
        *,
        space: str | None = None,
    ) -> tuple[np.ndarray, Matches]:
        """(n,) whether each member is (n,) allowed and its cosine at least this; and the k nearest of these, as (label, cosine), best first."""
        index = self._index_of(space)
        if index is None:
            return np.zeros(len(allowed), bool), []
        return index.within(vector, least, np.where(allowed, members.numbers_in(index), ABSENT), k)

    def words(
        self, cursor: duckdb.DuckDBPyConnection, text: str, namespace: str, k: int, allowed: np.ndarray
    ) -> Scores:
        """The k best by keywords among the (n,) sorted labels, as (label, BM25), best first. Every word is an alternative."""
        if len(allowed) == 0:
            return []
        if not self._keywords_ready:
            said = self._spoken_meanwhile(cursor, text, Filter(namespace), len(allowed), None, None)
            inside = set(allowed.tolist())
            return [match for match in said if match[0] in inside][:k]
        return self._index_of_keywords().search(text, namespace, k, allowed)

    def holding(self, cursor: duckdb.DuckDBPyConnection, text: str, namespace: str, members: Members) -> np.ndarray:
        """(n,) whether each member, of this namespace, holds a word of the text."""
        if self._keywords_ready:
            return self._index_of_keywords().holding(text, members)
        said = self.words(cursor, text, namespace, len(members.labels), members.labels)
        marked = np.zeros(len(members.labels), bool)
        marked[members.find(np.array([label for label, _ in said], np.int64))] = True
        return marked

    def said(self, cursor: duckdb.DuckDBPyConnection, text: str, k: int, filter: Filter) -> Scores:
        """The k records that say the words of a text as they are spelled, as (label, BM25), best first: no language's rules."""
        return self.keyword_side(cursor, text, filter, k, field=WORDS)[0]

    def allowed(self, cursor: duckdb.DuckDBPyConnection, filter: Filter) -> Allowed:
        """What the filter leaves, remembered until something is applied, and then brought up to date."""
        generation = self._generation
        return self._allowed.get(cursor, filter, generation, self._rows.at(cursor, generation))

    def ends(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, record_id: str, event_id: str | None = None
    ) -> dict[str, str | None]:
        """id -> kind of what is one relation away from a record, and of the entities that were found in its event; the kind of what is
        no entity is None."""
        return self._follow(cursor).ends(namespace, record_id, event_id)

    def followed(
        self,
        cursor: duckdb.DuckDBPyConnection,
        asked: Hashable,
        find: Callable[[Found | None, Mapping[str, int]], Found],
    ) -> Found:
        """What `find` gives, remembered under what was asked until something is applied. It is told what it gave last, None where that
        is forgotten, and how many rows `documents` and what ends them have."""
        generation = self._generation  # read before asking: what is committed meanwhile belongs to the next one
        known = self._remembered  # replaced, never changed: readers share it
        last, found = known.get(asked, (-1, None))
        if last != generation:
            found = find(found, self._rows.at(cursor, generation))
            others = [(other, one) for other, one in known.items() if other != asked]
            if self._remembered is known:  # else it was forgotten, or somebody else came first
                self._remembered = dict([*others[1 - REMEMBERED :], (asked, (generation, found))])
        return cast(Found, found)

    def listen(self, cursor: duckdb.DuckDBPyConnection, text: str, filter: Filter) -> Heard:
        """What a search can do while its text is encoded: the keyword side, and bringing up to date what is remembered of the tables."""
        with self.searching():
            heard = Heard(*self.keyword_side(cursor, text, filter, KEYWORD_DEPTH, alone=False))
            self._follow(cursor)
            return heard

    def search(
        self,
        cursor: duckdb.DuckDBPyConnection,
        text: str,
        vector: np.ndarray | None,
        filter: Filter,
        limit: int,
        *,
        min_cosine: float | None = None,
        pool: int | None = None,
        weights: Mapping[str, float] | None = None,
        tokens: Tokens | None = None,
        space: str | None = None,
        sessions: int = 0,
        heard: Heard | None = None,
    ) -> SearchResult:
        """Hybrid search: filter first, then every side.

        `vector` and `tokens` are those of `text`; without a vector the search is by words, dates and graph only. With tokens,
        or where nothing is embedded, the result is ranked as `ranking` says; else, or with `weights` (of the sides vector,
        keyword and graph), by reciprocal-rank fusion. What is not embedded yet stands among what is where its
        words put it. `space` is the one that both are of, when the live one may have changed
        since. `pool`: candidates a side, and all records of the `sessions` sessions that are met first among them; `min_cosine`:
        below it the vector side finds nothing, 0.30 for a fusion of ranks, 0.15 where the cosine itself is what counts. `heard`:
        what `listen` gave for this text and filter.
        """
        size = pool or max(3 * limit, MIN_POOL)
        with self.searching():
            is_live = space is None or (self.model is not None and space == self.model.space)
            allowed = self.allowed(cursor, filter)
            near, fits = ([], {}) if vector is None else self.vector_side(vector, size, allowed, space)
            has_tokens = tokens is not None and bool(self.late.tokens)
            is_ranked = weights is None and (vector is None or (is_live and (has_tokens or not near)))
            if near:
                floor = min_cosine if min_cosine is not None else MIN_COSINE_RANKED if is_ranked else MIN_COSINE
                near = [match for match in near if match[1] >= floor]
            depth = KEYWORD_DEPTH if is_ranked else size
            if heard is not None and depth <= KEYWORD_DEPTH and (vector is not None or self._keywords_ready):
                said, spoken = heard.said[:depth], heard.fits
            else:
                said, spoken = self.keyword_side(cursor, text, filter, depth, alone=vector is None)
            asked = Asked(cursor, text, vector, tokens, filter, allowed, size, fits | spoken)
            if is_ranked:
                return self._answer(asked, ranked(self, asked, near, said, sessions), limit)
            return self._fused(asked, near, said, limit, WEIGHTS if weights is None else weights, space)

    def vector_side(
        self, vector: np.ndarray, k: int, allowed: Allowed | None, space: str | None = None
    ) -> tuple[Matches, dict[int, int]]:
        """The vector side: the k nearest documents, by their best passages; and document -> label of what fitted best."""
        index = self._index_of(space)
        if index is None:
            return [], {}
        passages = self.late.passages
        if not len(passages):
            return index.search(vector, k, None if allowed is None else allowed.restriction), {}
        wide = None if allowed is None else allowed.widened(passages)
        found = passages.folded(index.search(vector, PASSAGES_EACH * k, wide))
        return [(label, cosine) for label, (cosine, _) in found.items()][:k], {
            label: part for label, (_, part) in found.items()
        }

    def keyword_side(
        self,
        cursor: duckdb.DuckDBPyConnection,
        text: str,
        filter: Filter,
        k: int,
        *,
        field: str = TERMS,
        alone: bool = True,
    ) -> tuple[Scores, dict[int, int]]:
        """The keyword side: the k best documents by the whole text or their best passages; and label of what fitted best.

        While the index is rebuilt what is in it is joined by what the table says: when it is asked `alone` of all the rest,
        beside other sides of the newest `SCANNED_ROWS` of them.
        """
        allowed = self.allowed(cursor, filter)
        passages = self.late.passages
        more = PASSAGES_EACH * k if len(passages) else k
        wide = allowed.widened(passages)
        if self._keywords_ready:
            said = self._index_of_keywords().search(text, filter.namespace, more, wide, field=field)
        else:
            said = self._spoken_meanwhile(
                cursor, text, filter, more, wide, None if alone else SCANNED_ROWS, field=field
            )
        found = passages.folded(said)
        return [(label, score) for label, (score, _) in found.items()][:k], {
            label: part for label, (_, part) in found.items()
        }

    def _spoken_meanwhile(
        self,
        cursor: duckdb.DuckDBPyConnection,
        text: str,
        filter: Filter,
        k: int,
        allowed: np.ndarray | None,
        rows: int | None,
        *,
        field: str = TERMS,
    ) -> Scores:
        """The keyword side while its index is built: what is in it already, and what the table says of (some of) the rest."""
        # before searching: what is added meanwhile is found twice
        index, below = (
            self._index_of_keywords(),
            self._unindexed,
        )
        scanned = index.score(text, scan_documents(cursor, text, filter, below, rows, field=field), field=field)
        found = dict(scanned) | dict(index.search(text, filter.namespace, k, allowed, field=field))
        return sorted(found.items(), key=lambda match: (-match[1], match[0]))[:k]

    def keyword_holders(
        self, cursor: duckdb.DuckDBPyConnection, text: str, filter: Filter, k: int
    ) -> dict[str, set[int]]:
        """For each word of the text the documents that hold it, at most k; nothing while the index is being built."""
        if not self._keywords_ready:
            return {}
        passages = self.late.passages
        allowed = self.allowed(cursor, filter).widened(passages)
        held = self._index_of_keywords().holders(text, filter.namespace, k, allowed)
        return {term: {passages.owner(label) for label in labels} for term, labels in held.items()}

    def _fused(
        self, asked: Asked, near: Matches, said: Scores, limit: int, weights: Mapping[str, float], space: str | None
    ) -> SearchResult:
        """Reciprocal-rank fusion of the sides vector, keyword and graph."""
        sides = found_by(asked, near, said)
        sides["graph"] = self._dated(asked, self.graph_side(asked, sides))[: asked.size]
        ranks = {side: [label for label, _ in matches] for side, matches in sides.items()}
        if near:
            ranks["vector"] = imputed_order(
                ranks["vector"], ranks["keyword"], self.embedded(ranks["keyword"], space=space)
            )
        scores = fuse(ranks, weights)
        labels = np.fromiter(scores, np.int64, len(scores))
        order = np.argsort(labels)
        labels, values = labels[order], np.fromiter(scores.values(), np.float64, len(scores))[order]
        parts = {side: np.full(len(labels), np.nan) for side in sides}
        for side, order_of in ranks.items():
            places = places_in(labels, np.array(order_of, np.int64))
            parts[side][places] = (K + 1) * weights.get(side, 0.0) / (K + 1 + np.arange(len(order_of)))
        return self._answer(asked, Scored(labels, values, parts, sides), limit)

    def ceiling(self, text: str) -> float:
        """The BM25 of a document that consists of nothing but the words of a text; 0 where nobody says any of them."""
        return self._index_of_keywords().ceiling(text)

    def _answer(self, asked: Asked, scored: Scored, limit: int) -> SearchResult:
        found = read_best(asked, scored.labels, scored.scores, limit)
        places = places_in(scored.labels, np.fromiter(found, np.int64, len(found)))
        scores = dict(zip(found, scored.scores[places].tolist(), strict=True))
        parts = {side: dict(zip(found, values[places].tolist(), strict=True)) for side, values in scored.parts.items()}
        sides = {
            side: {label: (rank, raw) for rank, (label, raw) in enumerate(matches, 1) if label in found}
            for side, matches in scored.sides.items()
        }
        best = ordered(scores, {label: (hit.created_at, hit.record_id) for label, hit in found.items()})
        hits = [
            replace(
                found[label],
                score=scores[label],
                sides={side: ranks[label] for side, ranks in sides.items() if label in ranks},
                parts={side: values[label] for side, values in parts.items() if not math.isnan(values[label])},
                passage=self.late.passages.passage(asked.fits.get(label, label)),
            )
            for label in best[:limit]
        ]
        return SearchResult(hits, len(scored.labels), self._degraded(asked.vector))

    def graph_side(self, asked: Asked, sides: Mapping[str, Sequence[tuple[int, float]]]) -> list[tuple[int, float]]:
        """Neighbours of the best of each side, by their best parent's place among these."""
        places = self._follow(asked.cursor).neighbours(seeds_of(sides))
        kept = asked.allowed.of(np.fromiter(places, np.int64, len(places)))
        return [(label, float(places[label])) for label in kept.tolist()]

    def _dated(self, asked: Asked, neighbours: list[tuple[int, float]]) -> list[tuple[int, float]]:
        """Of the same parent the newest records first: where ranks count, so does their order."""
        some = neighbours[: 2 * asked.size]
        dates = read_dates(asked.cursor, [label for label, _ in some])
        places = {label: place for label, place in some if label in dates}
        return [(label, places[label]) for label in ordered({label: -place for label, place in places.items()}, dates)]

    def _degraded(self, vector: np.ndarray | None) -> str | None:
        if self.model is None:
            return "No embedder is configured: results come from keywords and relations only."
        if vector is None:
            return "The embedder did not answer: results come from keywords and relations only."
        if not self._keywords_ready and self._unindexed > SCANNED_ROWS:
            return "The keyword index is being rebuilt: until it is, older texts are found by their vectors only."
        return None

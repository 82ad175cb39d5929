"""Fingerprints of stored memories, and of a text that was just encoded.

Vectors, token vectors and word pieces are in the indexes, the rest follows from text and time (`memory_texts`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from processors.context_graph.read.edges import edges_of
from processors.context_graph.read.memory_texts import FingerprintCache, MemoryTexts
from processors.context_graph.read.view_models import encode_for_views, nearest_of_views
from processors.context_graph.rules.memories import TOOLSET
from processors.context_graph.rules.views.fingerprint import (
    MAX_CHARS,
    Fingerprint,
    TextFeatures,
    TokenFeatures,
    fingerprint,
    text_features,
    token_features,
)
from processors.context_graph.rules.views.lexical import EVEN, Rarity, pieces_of_each, term_number
from processors.context_graph.rules.views.times import Moment
from processors.embedding.model import TokenEmbedder
from storage.search.records.filter import Filter
from storage.search.vectors.model_vector import ModelVector, mean_vector
from storage.search.vectors.token_vectors import quantise, unit
from storage.search.words.analyzer import query_terms
from storage.statements import execute
from streams.ids import document_label

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb

    from processors.embedding.model import Embedder
    from processors.embedding.query import EncodedQuery
    from storage.search.index_set import IndexSet
    from storage.search.vectors.token_store import TokenStore
    from storage.search.vectors.view_spaces import ViewSpace

NEIGHBOURS = 5
"""A text's neighbours are this many of the nearest memories; a memory's those that it has edges to, if any."""
_GRAPH = 8
MOST_TERMS = 256
"""This many of a query's terms count at most in E13."""


@dataclass(frozen=True, slots=True)
class PlacedTokens:
    """A stored text and its content tokens: (n,) ids, (n, WIDTH) int8 rows, (n,) starts in characters.

    `position`: of its memory in the log.
    """

    memory_id: str
    label: int
    text: str
    position: int
    ids: np.ndarray
    codes: np.ndarray
    starts: np.ndarray


@dataclass(frozen=True, slots=True)
class UnencodedText:
    """A new text before a model has read it. `rarity`: of its stems among all memories."""

    text: str
    features: TextFeatures
    moment: Moment
    rarity: Rarity


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """(n,) labels of memories, and the (n,) weights by which they count; without these all count alike.

    `mean`: (dim,) of their vectors at length 1, None where they have none.
    """

    labels: np.ndarray
    weights: np.ndarray | None
    mean: np.ndarray | None


@dataclass(frozen=True)
class FingerprintReader:
    """Reads fingerprints of one namespace. It is for one read on one thread; the cache is shared.

    `embedder` says where the tokens of a text stand; without one, cause and effect are not told apart.
    """

    cursor: duckdb.DuckDBPyConnection
    indexes: IndexSet
    embedder: Embedder | None
    cache: FingerprintCache
    namespace: str
    may_hold: Callable[[str, tuple[str, ...]], bool] = lambda table, key: True
    """False of a table and a primary key that the store surely has no row for: then it is not asked for one."""

    @cached_property
    def _texts(self) -> MemoryTexts:
        """With the embedder when it gives tokens: to ask that of it takes as long as to find a text's."""
        embedder = self.embedder if isinstance(self.embedder, TokenEmbedder) else None
        return MemoryTexts(self.cursor, self.indexes, embedder, self.cache, self.namespace)

    @cached_property
    def _of_models(self) -> Mapping[int, ViewSpace]:
        """The views that have a model of their own: the same ones for all of a read."""
        return self.indexes.views.serving

    @cached_property
    def _by_text(self) -> dict[str, Mapping[int, ModelVector]]:
        """By text what these models made of it: a read looks for candidates with it and compares them with it."""
        return {}

    @property
    def spaces(self) -> str:
        """The names of the spaces that its fingerprints are made of."""
        live = self.indexes.spaces.live
        return ("" if live is None else live.model.space) + self.indexes.views.key

    def stored(self, ids: Sequence[str]) -> list[Fingerprint | None]:
        """The fingerprints of memories, in the order of their ids; None of one that the store does not have.

        Their neighbours are not looked for, and words count alike: both are the query's (`as_query`).
        """
        labels = [document_label(self.namespace, one) for one in ids]
        live = self.indexes.spaces.live
        tokens = {} if live is None else self._texts.tokens(live, labels)
        memories = self._texts.read(labels, tokens)
        vectors = {} if live is None else live.vectors(np.array(labels, np.int64))
        of_models = {view: space.vectors(labels) for view, space in self._of_models.items()}
        made = {
            label: TokenFeatures(own.ids, own.codes, memories[label].pools)
            for label, own in tokens.items()
            if label in memories
        }
        pieces = dict(zip(made, pieces_of_each([one.ids for one in made.values()]), strict=True))
        return [
            fingerprint(
                memories[label].features,
                memories[label].moment,
                vector=vectors.get(label),
                tokens=made.get(label),
                memory_id=one,
                of_models={view: found[label] for view, found in of_models.items() if label in found},
                pieces=pieces.get(label),
            )
            if label in memories
            else None
            for one, label in zip(ids, labels, strict=True)
        ]

    def unencoded(
        self, text: str, at: datetime, *, modality: str = "text", session_id: str | None = None
    ) -> UnencodedText:
        """What is known of a new text before a model has read it.

        It stands at the end of the log, and of its session.
        """
        rarity = self._rarity_of_terms(text)
        return UnencodedText(
            text, text_features(text, modality), self._moment_after_all(at.timestamp(), session_id), rarity
        )

    def of_text(self, read: UnencodedText, encoded: EncodedQuery, near: Sequence[int] | None = None) -> Fingerprint:
        """The fingerprint of a new text as a query: with its neighbours and the rarity of its words.

        `encoded`: what the door made of the text. `near`: labels of the nearest memories, best first, where a search
        has found them.
        """
        text, features = read.text, read.features
        live = self.indexes.spaces.live
        is_live = live is not None and encoded.space == live.model.space
        tokens = None
        if is_live and encoded.tokens is not None and len(encoded.tokens.ids):
            content = encoded.tokens.content
            kept = content if content.any() else np.ones(len(content), bool)
            ids = encoded.tokens.ids[kept]
            starts = self._texts.starts(text[:MAX_CHARS], ids) if features.spans else None
            tokens = token_features(ids, quantise(encoded.tokens.vectors[kept]), starts, features.spans)
        vector = encoded.vector if is_live else None
        of_models = self.query_vectors(text)
        made = fingerprint(features, read.moment, vector=vector, tokens=tokens, of_models=of_models)
        return self._with_surroundings(made, read.rarity, near)

    def query_vectors(self, text: str, memory_id: str | None = None) -> Mapping[int, ModelVector]:
        """By view what its own model makes of a query, or has made of the memory that is searched with."""
        spaces = self._of_models
        if memory_id is None or not spaces:
            if text not in self._by_text:
                self._by_text[text] = encode_for_views(spaces, text)
            return self._by_text[text]
        label = document_label(self.namespace, memory_id)
        return {view: found[label] for view, space in spaces.items() if label in (found := space.vectors([label]))}

    def nearest_of_models(
        self, queries: Mapping[int, ModelVector], k: int, allowed: np.ndarray, view: int | None = None
    ) -> list[int]:
        """Labels of the allowed (sorted) ones that are among the k nearest in a view with a model of its own.

        The best of each view first. `view`: only in this one.
        """
        wanted = {number: space for number, space in self._of_models.items() if view in (None, number)}
        return nearest_of_views(wanted, queries, k, allowed)

    def as_query(self, one: Fingerprint) -> Fingerprint:
        """The fingerprint of a stored memory with its nearest memories, and how rare its words are among all."""
        text = self._text(one.memory_id)
        return self._with_surroundings(one, EVEN if text is None else self._rarity_of_terms(text))

    def _with_surroundings(self, one: Fingerprint, rarity: Rarity, near: Sequence[int] | None = None) -> Fingerprint:
        """`rarity`: of its stems; that of its word pieces is added. `near`: as `of_text`; else they are looked for."""
        nearest = self._neighbours(one) if near is None else self._averaged(np.array(near[:NEIGHBOURS], np.int64))
        neighbours, live = None if nearest is None else nearest.mean, self.indexes.spaces.live
        if live is not None and one.tokens is not None:
            rarity = replace(rarity, pieces=functools.partial(_rarity_of_pieces, live.tokens))
        of_models = self._with_neighbours(one.of_models, nearest)
        return replace(one, neighbours=neighbours, rarity=rarity, of_models=of_models)

    def _with_neighbours(
        self, of_models: Mapping[int, ModelVector], nearest: _Neighbours | None
    ) -> Mapping[int, ModelVector]:
        """With E8, where it has a model of its own, as half the text's vector and half its neighbours'."""
        space, own = self._of_models.get(_GRAPH), of_models.get(_GRAPH)
        if space is None or own is None or nearest is None:
            return of_models
        known = space.vectors(nearest.labels.tolist())
        places = [place for place, label in enumerate(nearest.labels.tolist()) if label in known]
        weights = None if nearest.weights is None else nearest.weights[places]
        mean = mean_vector([known[label] for label in nearest.labels[places].tolist()], weights)
        both = None if mean is None else mean_vector([own, mean])
        return of_models if both is None else {**of_models, _GRAPH: both}

    def _moment_after_all(self, at: float, session_id: str | None) -> Moment:
        rows = self.indexes.records.counts(self.cursor)["documents"]
        position, sessions, _ = self.cache.places.view(self.cursor, self.namespace, rows)
        place = None if session_id is None else sessions.get(session_id, 0)
        return Moment(at, session_id, place, position)

    def placed(self, labels: Sequence[int]) -> Iterator[PlacedTokens]:
        """The memories with these labels whose tokens are stored, and where these stand in the text.

        Each takes about 0.1 ms.
        """
        if not labels:
            return
        rows = execute(
            self.cursor,
            f'SELECT label, record_id, left(text, {MAX_CHARS}), "offset" FROM documents '
            "WHERE label IN (SELECT unnest(?::BIGINT[])) AND namespace = ? AND toolset = ? ORDER BY label",
            [list(labels), self.namespace, TOOLSET],
        ).fetchall()
        live = self.indexes.spaces.live
        tokens = {} if live is None else self._texts.tokens(live, labels)
        for label, memory_id, text, position in rows:
            own = tokens.get(label)
            starts = None if own is None else self._texts.text_starts(text, own)
            if own is not None and starts is not None:
                count = min(len(starts), len(own.ids))
                kept = own.ids[:count], own.codes[:count], starts[:count]
                yield PlacedTokens(memory_id, label, text, position, *kept)

    def _neighbours(self, one: Fingerprint) -> _Neighbours | None:
        """What a memory has edges to, by their weights, else the nearest others. None without a vector."""
        live = self.indexes.spaces.live
        if live is None or one.vector is None:
            return None
        if (joined := self._joined(one)) is not None:
            return joined
        allowed = self.indexes.records.allowed(self.cursor, Filter(self.namespace, toolsets=(TOOLSET,)))
        own = None if one.memory_id is None else document_label(self.namespace, one.memory_id)
        near = live.nearest(one.vector, NEIGHBOURS + 1, allowed).matches
        others = allowed.of(np.array([label for label, _ in near if label != own], np.int64))[:NEIGHBOURS]
        return self._averaged(others)

    def _joined(self, one: Fingerprint) -> _Neighbours | None:
        """What a memory has edges to; None of a text, and where none of it has a vector or a weight."""
        if one.memory_id is None:
            return None
        weights: dict[int, float] = {}
        for edge in edges_of(self.cursor, self.namespace, [one.memory_id]):
            other = edge.target_id if edge.source_id == one.memory_id else edge.source_id
            label = document_label(self.namespace, other)
            weights[label] = max(edge.weight, weights.get(label, 0.0))
        labels = np.array(sorted(weights), np.int64)
        joined = self._averaged(labels, np.array([weights[label] for label in labels.tolist()]))
        return None if joined.mean is None else joined

    def _averaged(self, labels: np.ndarray, weights: np.ndarray | None = None) -> _Neighbours:
        """These memories with the mean of their vectors."""
        live = self.indexes.spaces.live
        vectors = {} if live is None else live.vectors(labels)
        known = [place for place, label in enumerate(labels.tolist()) if label in vectors]
        shares = None if weights is None else weights[known]
        if not known or (shares is not None and not shares.any()):
            return _Neighbours(labels, weights, None)
        found = [vectors[label] for label in labels[known].tolist()]
        return _Neighbours(labels, weights, unit(np.average(found, axis=0, weights=shares)))

    def _rarity_of_terms(self, text: str) -> Rarity:
        terms = query_terms(text[:MAX_CHARS])[:MOST_TERMS]
        rarities, mean = self.indexes.words.rarities(terms, self.namespace)
        return Rarity(None, {term_number(term): each for term, each in rarities.items()}, mean)

    def _text(self, memory_id: str | None) -> str | None:
        if memory_id is None:
            return None
        label = document_label(self.namespace, memory_id)
        row = execute(self.cursor, f"SELECT left(text, {MAX_CHARS}) FROM documents WHERE label = ?", [label]).fetchone()
        return None if row is None else str(row[0])


def _rarity_of_pieces(tokens: TokenStore, numbers: np.ndarray) -> np.ndarray:
    """(k,) float32 of (k,) word pieces: those of a few texts are a hundredth of all that a model has."""
    return tokens.rarity(numbers).astype(np.float32)

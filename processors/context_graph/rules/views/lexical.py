"""E6 and E13: the words of a text. E6 compares word pieces by their rarity, E13 is BM25 as a share of the best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from processors.context_graph.rules.views.sparse import Sparse, feature_number, joined, sparse_of, sums
from storage.search.words.analyzer import document_terms
from storage.search.words.bm25 import K1, B

BUCKETS = 30_522
"""Dimensions of both views: the size of the word-piece vocabulary."""
MOST_PIECES = BUCKETS // 20
"""At most 5 % of them are active."""
_TERM_NUMBERS = 2**32
_PIECE_NUMBERS = 2**16
"""More than any model's word pieces have."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The stems of a text, counted; `length` with repetitions."""

    counts: Sparse
    length: int


@dataclass(frozen=True, slots=True)
class Rarity:
    """How rare words are among all memories; without it each counts alike.

    `pieces`: gives (k,) float32 of (k,) word pieces. `terms`: of the query's stems that count, by number.
    `mean_length`: of a memory, in stems; 0 where it is not known.
    """

    pieces: Callable[[np.ndarray], np.ndarray] | None = None
    terms: Mapping[int, float] = field(default_factory=dict)
    mean_length: float = 0.0

    def of_terms(self, numbers: np.ndarray) -> np.ndarray:
        """(k,) the rarity of stems; 0 of those that the query does not count, such as stop words."""
        if not self.terms:
            return np.ones(len(numbers))
        return np.array([self.terms.get(number, 0.0) for number in numbers.tolist()], np.float64)


EVEN = Rarity()


def term_number(term: str) -> int:
    """The number of a stem."""
    return feature_number(term, _TERM_NUMBERS)


def terms_of(text: str) -> Terms:
    """The stems of a text; of one without words its symbols."""
    found = [term_number(term) for term in document_terms(text)]
    return Terms(sparse_of(Counter(found)), len(found))


def pieces_of(ids: np.ndarray) -> Sparse:
    """Word pieces with log(1 + count); the most frequent where there are more than 5 % of all."""
    ordered = np.sort(ids)
    first = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] + 1))  # `np.unique` takes twice as long for a sentence
    return _limited(ordered[first].astype(np.int64), np.diff(first, append=len(ordered)))


def pieces_of_each(texts: Sequence[np.ndarray]) -> list[Sparse]:
    """What `pieces_of` gives of each of several texts: a third of its time for fifty."""
    if not texts:
        return []
    lengths = np.array([len(ids) for ids in texts])
    owned = np.repeat(np.arange(len(texts)) * _PIECE_NUMBERS, lengths) + np.concatenate(texts)
    ordered = np.sort(owned)
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    counts, distinct = np.diff(first, append=len(ordered)), ordered[first]
    ends = np.searchsorted(distinct, np.arange(1, len(texts)) * _PIECE_NUMBERS)
    numbers = np.split(distinct % _PIECE_NUMBERS, ends)
    return [_limited(some, of_them) for some, of_them in zip(numbers, np.split(counts, ends), strict=True)]


def stems_as_pieces(terms: Terms) -> Sparse:
    """What stands for word pieces where the model gives none: stems in as many buckets."""
    numbers = np.unique(terms.counts.numbers % BUCKETS)
    counts = sums(terms.counts.weights, np.searchsorted(numbers, terms.counts.numbers % BUCKETS), len(numbers))
    return _limited(numbers, counts)


def _limited(numbers: np.ndarray, counts: np.ndarray) -> Sparse:
    if len(numbers) > MOST_PIECES:
        kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_PIECES])
        numbers, counts = numbers[kept], counts[kept]
    return Sparse(numbers, np.log1p(counts).astype(np.float32))


def piece_alignments(query: Sparse, rows: Sequence[Sparse], rarity: Rarity = EVEN) -> np.ndarray:
    """E6: cosines of log(1 + count) · rarity, in [0, 1]; NaN where a side has no pieces."""
    numbers, weights, owners = joined(rows)
    rare = rarity.pieces
    asked = query.weights if rare is None else query.weights * rare(query.numbers)
    stored = weights if rare is None else weights * rare(numbers)
    products = _looked_up(query.numbers, asked, numbers) * stored
    lengths = np.sqrt(sums(stored * stored, owners, len(rows))) * float(np.linalg.norm(asked))
    return _shares(sums(products, owners, len(rows)), lengths)


def keyword_alignments(query: Terms, rows: Sequence[Terms], rarity: Rarity = EVEN) -> np.ndarray:
    """E13: BM25 as a share of the query's own text's, at most 1; NaN where a side has no words."""
    numbers, counts, owners = joined([row.counts for row in rows])
    rare = rarity.of_terms(query.counts.numbers)
    lengths = np.array([row.length for row in rows], np.float64)
    mean = rarity.mean_length or float(query.length) or 1.0
    weight = _saturated(counts, lengths[owners], mean)
    found = sums(_looked_up(query.counts.numbers, rare, numbers) * weight, owners, len(rows))
    own = rare @ _saturated(query.counts.weights, np.array(float(query.length)), mean)
    return np.minimum(_shares(found, np.where(lengths > 0, own, 0.0)), 1)


def _saturated(counts: np.ndarray, lengths: np.ndarray, mean: float) -> np.ndarray:
    weight: np.ndarray = counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths / mean))
    return weight


def _looked_up(numbers: np.ndarray, weights: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The weight of each wanted number; 0 where `numbers`, which are sorted, do not have it."""
    if not len(numbers):
        return np.zeros(len(wanted))
    places = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    return np.where(numbers[places] == wanted, weights[places], 0.0)


def _shares(parts: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    return np.where(wholes > 0, parts / np.where(wholes > 0, wholes, 1), np.nan)

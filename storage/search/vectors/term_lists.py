"""Inverted lists of weighted terms: what a sparse model makes of texts, by term.

A query reads the lists of its own terms. What is added becomes a segment; a segment that is no longer much smaller than
the one before is merged into it, so that there are few, and a text is written anew a few times only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from storage.search.records.label_map import ABSENT, places_in
from storage.search.records.matches import Matches, best_first
from storage.search.vectors.model_vector import ModelVector

_MERGED = 4
"""A segment is merged into the one before that is less than this many times its size."""


@dataclass(frozen=True, slots=True)
class _Segment:
    """Postings by term: (t,) sorted `terms`, of each those from `starts` on, which has one more.

    (n,) `rows` with (n,) `weights`; (r,) `labels` of the rows, passages of one text beside each other.
    """

    terms: np.ndarray
    starts: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    labels: np.ndarray


class TermLists:
    """Terms of texts by label. One thread adds; any number search."""

    def __init__(self) -> None:
        self._segments: tuple[_Segment, ...] = ()
        """Replaced, never changed."""

    def add(self, vectors: Sequence[tuple[int, ModelVector]]) -> None:
        """Make labels findable that are not there yet."""
        passages = [(label, part) for label, vector in vectors for part in vector.passages if part.terms is not None]
        if not passages:
            return
        counts = [len(part.rows) for _, part in passages]
        segment = _segment(
            np.concatenate([part.terms for _, part in passages if part.terms is not None]),
            np.repeat(np.arange(len(passages), dtype=np.int32), counts),
            np.concatenate([part.rows for _, part in passages]).astype(np.float16),
            np.array([label for label, _ in passages], np.int64),
        )
        segments = [*self._segments, segment]
        while len(segments) > 1 and len(segments[-2].rows) < _MERGED * len(segments[-1].rows):
            segments[-2:] = [_merged(segments[-2], segments[-1])]
        self._segments = tuple(segments)

    def nearest(self, query: ModelVector, k: int, allowed: np.ndarray) -> Matches:
        """The k of the allowed (sorted) labels with the largest cosine, which have a term of the query's.

        Of a long text that is asked with, to any of its passages.
        """
        found: list[tuple[np.ndarray, np.ndarray]] = []
        for segment in self._segments:
            scores = np.max([_scores(segment, one) for one in query.passages], axis=0, initial=0.0)
            near = np.flatnonzero(scores > 0)
            near = near[places_in(allowed, segment.labels[near]) != ABSENT]
            found.append((segment.labels[near], scores[near]))
        if not found:
            return []
        labels, places = np.unique(np.concatenate([one for one, _ in found]), return_inverse=True)
        best = np.zeros(len(labels), np.float32)
        np.maximum.at(best, places, np.concatenate([scores for _, scores in found]))
        chosen = best >= (np.partition(best, -k)[-k] if k < len(best) else 0.0)
        return best_first(labels, best, chosen)[:k]


def _scores(segment: _Segment, query: ModelVector) -> np.ndarray:
    scores = np.zeros(len(segment.labels), np.float32)
    if query.terms is None or not len(segment.terms):
        return scores
    at = np.minimum(np.searchsorted(segment.terms, query.terms), len(segment.terms) - 1)
    for place, term, weight in zip(at.tolist(), query.terms.tolist(), query.rows.tolist(), strict=True):
        if segment.terms[place] == term:
            own = slice(segment.starts[place], segment.starts[place + 1])
            scores[segment.rows[own]] += weight * segment.weights[own]  # a row has a term once
    return scores


def _segment(terms: np.ndarray, rows: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> _Segment:
    order = np.argsort(terms, kind="stable")
    distinct, starts = np.unique(terms[order], return_index=True)
    return _Segment(distinct, np.append(starts, len(terms)), rows[order], weights[order], labels)


def _merged(one: _Segment, other: _Segment) -> _Segment:
    terms = [np.repeat(each.terms, np.diff(each.starts)) for each in (one, other)]
    rows = np.concatenate([one.rows, other.rows + np.int32(len(one.labels))])
    labels = np.concatenate([one.labels, other.labels])
    return _segment(np.concatenate(terms), rows, np.concatenate([one.weights, other.weights]), labels)

"""Finds the nearest of what dense and multi-vector models make, by a row for each text or passage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from storage.search.records.matches import Matches, best_first
from storage.search.records.passages import Passage, PassageIndex, passage_label
from storage.search.vectors.dense_space import PASSAGES_EACH
from storage.search.vectors.model_vector import ModelVector
from storage.search.vectors.token_vectors import unit
from storage.search.vectors.vector_index import VectorIndex
from storage.search.vectors.vector_model import VectorModel

COMPARED = 2_000
"""This many texts are compared by token: all that are allowed, or of more those whose mean is nearest."""
BLOCK = 256
"""Texts whose token vectors are read at once."""
_ASKED_ROWS = 8
"""Of a stored long text that is asked with, this many passages are looked for."""


class RowLists:
    """A row a passage, the mean of what the model gave it. One thread adds; any number search."""

    def __init__(self, model: VectorModel, directory: Path) -> None:
        """`directory`: where the rows' nameless file lies."""
        self._index = VectorIndex(model, directory=directory)
        self._passages = PassageIndex()

    def add(self, vectors: Sequence[tuple[int, ModelVector]]) -> None:
        """Make labels findable that are not there yet."""
        labels: list[int] = []
        rows: list[np.ndarray] = []
        for label, vector in vectors:
            means = [part.rows.mean(axis=0) for part in vector.passages]
            rows += means
            if len(means) < 2:
                labels += [label] * len(means)
            else:
                self._passages.add(label, [Passage(number, 0, 0) for number in range(len(means))])
                labels += [passage_label(label, number) for number in range(len(means))]
        if rows:
            self._index.add(labels, unit(np.stack(rows)))

    def nearest(self, query: ModelVector, k: int, allowed: np.ndarray) -> Matches:
        """The k of the allowed (sorted) labels with the largest cosine of their best passage.

        Of a long text that is asked with, to any of its first passages.
        """
        if len(self._passages):
            allowed = self._passages.with_passages(allowed)
        best: dict[int, float] = {}
        for part in query.passages[:_ASKED_ROWS]:
            row = unit(part.rows.mean(axis=0))
            matches = self._index.search(row, PASSAGES_EACH * k if len(self._passages) else k, allowed)
            for label, score in self._passages.documents_of(matches, k).matches:
                best[label] = max(score, best.get(label, -1.0))
        return sorted(best.items(), key=lambda match: (-match[1], match[0]))[:k]


class TokenLists:
    """Texts by the best match of each token of the query. One thread adds; any number search."""

    def __init__(self, means: RowLists, read: Callable[[Sequence[int]], dict[int, ModelVector]]) -> None:
        """`read`: the vectors of labels."""
        self._means, self._read = means, read

    def add(self, vectors: Sequence[tuple[int, ModelVector]]) -> None:
        """Make labels findable that are not there yet."""
        self._means.add(vectors)

    def nearest(self, query: ModelVector, k: int, allowed: np.ndarray) -> Matches:
        """The k best of the allowed (sorted) labels; of more than COMPARED those that are near by their means."""
        chosen = allowed
        if len(allowed) > COMPARED:
            near = self._means.nearest(query, COMPARED, allowed)
            chosen = np.array([label for label, _ in near], np.int64)
        labels: list[int] = []
        scores: list[float] = []
        for start in range(0, len(chosen), BLOCK):
            some = [(label, one) for label, one in self._read(chosen[start : start + BLOCK].tolist()).items()]
            some = [(label, one) for label, one in some if len(one.rows)]
            if some:
                labels += [label for label, _ in some]
                scores += _best_matches(query, [one for _, one in some]).tolist()
        found = np.array(scores, np.float32)
        bound = np.partition(found, -k)[-k] if k < len(found) else -np.inf
        return best_first(np.array(labels, np.int64), found, found >= bound)[:k]


def _best_matches(query: ModelVector, vectors: Sequence[ModelVector]) -> np.ndarray:
    """(n,) how well each text matches, as `similarities`, compared at once."""
    parts = [(number, part) for number, one in enumerate(vectors) for part in one.passages]
    whose = np.array([number for number, _ in parts])
    starts = np.cumsum([0, *(len(part.rows) for _, part in parts[:-1])])
    rows = np.concatenate([part.rows for _, part in parts])
    first = np.searchsorted(whose, np.arange(len(vectors)))
    total = np.zeros(len(vectors))
    asked = query.passages
    for one in asked:
        by_passage = np.maximum.reduceat(rows @ one.rows.T, starts, axis=0).mean(axis=1)
        total += np.maximum.reduceat(by_passage, first)
    return total / max(1, len(asked))

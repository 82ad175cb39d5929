"""A space: what can be searched by the vectors of one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from storage.search.records.filter_cache import AllowList
from storage.search.records.matches import DocumentMatches, Matches
from storage.search.records.selection import Selection
from storage.search.vectors.token_vectors import Tokens


class TokenMatches(NamedTuple):
    """How (n,) documents match the (k,) tokens of a query.

    `weights`: (k,) what each token counts. `is_read`: (n,) whether a document has token vectors. `rows`: (n, k) the
    cosine to each token, of a long text those of the passage that matches best; 0 without token vectors. `fits`: (n,)
    the label of its best passage, or its own. `lengths`: (n,) content tokens, of a long text those of all passages.
    `passages`: (n,) how many passages it has, 1 of a short text.
    """

    weights: np.ndarray
    is_read: np.ndarray
    rows: np.ndarray
    fits: np.ndarray
    lengths: np.ndarray
    passages: np.ndarray


def coverage(query: Tokens, matches: TokenMatches) -> np.ndarray:
    """(n,) how much of a query each document says; NaN without token vectors.

    The mean over its content tokens of the best cosine; over all of one that has none.
    """
    content = query.content if query.content.any() else np.ones(len(query.ids), bool)
    covered = np.full(len(matches.is_read), np.nan)
    covered[matches.is_read] = matches.rows[matches.is_read][:, content].mean(axis=1)
    return covered


class Space(Protocol):
    """The vectors of one model by label, and how near they are to a query's. Any number of threads search.

    A vector is an array in the form that the model gives it: (dim,) float32 of length 1 where it is dense, pairs of
    index and weight where it is sparse, packed bits where it is binary. Higher similarities are nearer; of dense
    vectors they are cosines.
    """

    @property
    def has_tokens(self) -> bool:
        """Whether token vectors are kept beside the vectors."""
        ...

    def nearest(self, vector: np.ndarray, k: int, allowed: AllowList | None = None) -> DocumentMatches:
        """The k nearest documents, each by its best passage; of all namespaces without an allow list."""
        ...

    def nearest_of_each(self, vector: np.ndarray, k: int, groups: Sequence[np.ndarray]) -> list[Matches]:
        """Of each group of labels (sorted, int64) the k nearest."""
        ...

    def nearest_to_each(self, vectors: np.ndarray, k: int, least: float) -> list[Matches]:
        """For each of (n, …) vectors the k labels of all namespaces with at least this similarity."""
        ...

    def within(
        self, vector: np.ndarray, least: float, selection: Selection, allowed: np.ndarray, k: int
    ) -> tuple[np.ndarray, Matches]:
        """(n,) whether each of a selection is (n,) allowed and at least this near; and the k nearest of these."""
        ...

    def similarities(self, vector: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(n,) labels -> (n,) float32 similarities, NaN without a vector."""
        ...

    def document_similarities(self, vector: np.ndarray, labels: np.ndarray, *, roughly: bool = False) -> np.ndarray:
        """(n,) documents -> (n,) similarities.

        Of a long one half that of its best passage, and a quarter each of the whole text's and the beginning's.
        `roughly`: quicker, off by about a thousandth, as far as the space can.
        """
        ...

    def vectors(self, labels: np.ndarray) -> dict[int, np.ndarray]:
        """Those of a few labels that have a vector, with it."""
        ...

    def embedded(self, labels: Sequence[int]) -> set[int]:
        """Those of a few labels that have a vector."""
        ...

    def match_tokens(self, query: Tokens, vector: np.ndarray, labels: np.ndarray) -> TokenMatches | None:
        """How (n,) documents match a query token by token; None where no token vectors are kept.

        Of a long text the passages count that are nearest to the query's (dim,) `vector`.
        """
        ...


class EmptySpace:
    """The space of a model without vectors: every query finds nothing."""

    has_tokens = False

    def nearest(self, vector: np.ndarray, k: int, allowed: AllowList | None = None) -> DocumentMatches:
        return DocumentMatches([], {})

    def nearest_of_each(self, vector: np.ndarray, k: int, groups: Sequence[np.ndarray]) -> list[Matches]:
        return [[] for _ in groups]

    def nearest_to_each(self, vectors: np.ndarray, k: int, least: float) -> list[Matches]:
        return [[] for _ in vectors]

    def within(
        self, vector: np.ndarray, least: float, selection: Selection, allowed: np.ndarray, k: int
    ) -> tuple[np.ndarray, Matches]:
        return np.zeros(len(allowed), bool), []

    def similarities(self, vector: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.full(len(labels), np.nan, np.float32)

    def document_similarities(self, vector: np.ndarray, labels: np.ndarray, *, roughly: bool = False) -> np.ndarray:
        return np.full(len(labels), np.nan)

    def vectors(self, labels: np.ndarray) -> dict[int, np.ndarray]:
        return {}

    def embedded(self, labels: Sequence[int]) -> set[int]:
        return set()

    def match_tokens(self, query: Tokens, vector: np.ndarray, labels: np.ndarray) -> TokenMatches | None:
        return None

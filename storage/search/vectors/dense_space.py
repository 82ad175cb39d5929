"""The dense space of one model: its vectors and its token vectors.

They come from the tables, then from each batch that is applied.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import duckdb
import numpy as np

from storage.search.entries import VectorEntry
from storage.search.records.filter_cache import AllowList
from storage.search.records.label_map import ABSENT
from storage.search.records.matches import DocumentMatches, Matches
from storage.search.records.passages import PassageIndex
from storage.search.records.selection import Selection
from storage.search.vectors.backfill import read_token_samples, read_tokens, token_labels
from storage.search.vectors.space import TokenMatches
from storage.search.vectors.token_store import TokenStore
from storage.search.vectors.token_vectors import Tokens
from storage.search.vectors.vector_index import VectorIndex
from streams.failpoints import hit

PASSAGES_EACH = 3
"""Matches per document that is wanted, where there are long ones: several may be passages of the same."""
READ_PASSAGES = 3
"""The token vectors of this many passages of a long text are read for a query: those whose vectors are nearest."""
LONG_SHARES = (0.25, 0.5, 0.25)
"""Of a long text's cosine: the whole, the best passage, the beginning, which says what a message is about."""
_SAMPLE = 16
_CHUNK_TEXTS = 32
"""Texts whose token vectors are added before a writer that waits has its turn."""


class DenseSpace:
    """A `Space` of unit vectors. One thread applies and removes; any number search."""

    def __init__(
        self, vectors: VectorIndex, passages: PassageIndex, tokens_in: Path, pause: Callable[[], None]
    ) -> None:
        """`tokens_in` holds the token vectors of each model in a file of its own.

        `pause` is called after every millisecond of background work.
        """
        self.index = vectors
        self.model = vectors.model
        name = hashlib.blake2b(f"{self.model.space}\0{self.model.model_id}".encode(), digest_size=8).hexdigest()
        self.tokens = TokenStore(tokens_in / f"{name}.tokens", self.model.space, self.model.model_id)
        self._passages = passages
        self._pause = pause

    def apply(self, entries: Sequence[VectorEntry]) -> None:
        """Make vectors of this model findable."""
        self.tokens.add((entry.label, entry.tokens) for entry in entries if entry.tokens)
        self.index.add([entry.label for entry in entries], np.stack([entry.vector for entry in entries]))

    def remove(self, labels: Sequence[int]) -> None:
        """Labels of documents and passages that are not found any more."""
        self.index.remove(labels)
        self.tokens.remove(labels)

    def missing_tokens(self, cursor: duckdb.DuckDBPyConnection) -> np.ndarray:
        """Labels whose token vectors the table has and the file lacks. What the table does not have leaves the file."""
        stored = token_labels(cursor, self.model) if len(self.index) else np.empty(0, np.int64)
        kept = self.tokens.labels()
        sample = np.intersect1d(stored, kept, assume_unique=True)
        sample = sample[:: max(1, len(sample) // _SAMPLE)][:_SAMPLE]
        samples = read_token_samples(cursor, self.model, sample)
        if any(self.tokens.packed_body(label) != body for label, body in samples):
            self.tokens.clear()  # the same labels, other texts: the file belongs to another log
        elif len(unknown := np.setdiff1d(kept, stored, assume_unique=True)):
            self.tokens.remove(unknown.tolist())
        return np.setdiff1d(stored, self.tokens.labels(), assume_unique=True)

    def fill_tokens(self, cursor: duckdb.DuckDBPyConnection, missing: np.ndarray, stopped: Callable[[], bool]) -> None:
        """Add the token vectors of these labels from the table; returns early when `stopped` says so."""
        for chunk in read_tokens(cursor, self.model, missing):
            for start in range(0, len(chunk), _CHUNK_TEXTS):
                if stopped():
                    return
                self.tokens.add(chunk[start : start + _CHUNK_TEXTS])
                self._pause()
            hit("mid_index_rebuild")

    @property
    def has_tokens(self) -> bool:
        return len(self.tokens) > 0

    def nearest(self, vector: np.ndarray, k: int, allowed: AllowList | None = None) -> DocumentMatches:
        if not len(self._passages):
            return DocumentMatches(self.index.search(vector, k, None if allowed is None else allowed.restriction), {})
        labels = None if allowed is None else allowed.with_passages(self._passages)
        return self._passages.documents_of(self.index.search(vector, PASSAGES_EACH * k, labels), k)

    def nearest_of_each(self, vector: np.ndarray, k: int, groups: Sequence[np.ndarray]) -> list[Matches]:
        return self.index.search_groups(vector, k, groups)

    def nearest_to_each(self, vectors: np.ndarray, k: int, least: float) -> list[Matches]:
        return self.index.search_many(vectors, k, least, self._pause)

    def within(
        self, vector: np.ndarray, least: float, selection: Selection, allowed: np.ndarray, k: int
    ) -> tuple[np.ndarray, Matches]:
        rows = np.where(allowed, selection.numbers_in(self.index), ABSENT)
        return self.index.within(vector, least, rows, k)

    def similarities(self, vector: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return self.index.cosines(vector, labels)

    def document_similarities(self, vector: np.ndarray, labels: np.ndarray, *, roughly: bool = False) -> np.ndarray:
        parts, owners = self._passages.split(labels)
        is_part = parts != labels[owners]
        parts, owners = parts[is_part], owners[is_part]
        cosines = self.index.cosines(vector, np.concatenate([labels, parts]), roughly=roughly).astype(np.float64)
        whole, of_parts = cosines[: len(labels)], cosines[len(labels) :]
        if len(parts):
            first = np.flatnonzero(np.diff(owners, prepend=-1))  # the passages of one text stand together, in order
            long = owners[first]
            known = [whole[long], np.fmax.reduceat(of_parts, first), of_parts[first]]
            shared = sum(share * part for share, part in zip(LONG_SHARES, known, strict=True))
            whole[long] = np.where(np.isnan(shared), np.fmax(known[0], known[1]), shared)
        return whole

    def vectors(self, labels: np.ndarray) -> dict[int, np.ndarray]:
        return self.index.vectors(labels)

    def embedded(self, labels: Sequence[int]) -> set[int]:
        asked = np.array(labels, np.int64)
        return set(asked[self.index.places(asked) != ABSENT].tolist())

    def match_tokens(self, query: Tokens, vector: np.ndarray, labels: np.ndarray) -> TokenMatches | None:
        weights = self.tokens.weights(query)
        parts, owners = self._passages.split(labels)
        counts = self.tokens.lengths(parts)
        lengths = np.bincount(owners, counts, len(labels)).astype(np.int64)
        passages = np.bincount(owners, minlength=len(labels))
        if passages.max(initial=0) > READ_PASSAGES:
            similarities = np.where(counts > 0, self.index.cosines(vector, parts, roughly=True), np.nan)
            chosen = _nearest_passages(similarities, owners, passages)
            parts, owners = parts[chosen], owners[chosen]
        known, rows = self.tokens.similarities(query, parts)
        is_read, fits = np.zeros(len(labels), bool), labels.copy()
        best = np.zeros((len(labels), len(weights)), np.float32)
        if len(rows):
            owners, parts = owners[known], parts[known]
            first = np.flatnonzero(np.diff(owners, prepend=-1))  # the passages of one text stand together
            whose, of_best = owners[first], np.lexsort((-(rows @ weights), owners))[first]
            is_read[whose] = True
            best[whose], fits[whose] = rows[of_best], parts[of_best]
        return TokenMatches(weights, is_read, best, fits, lengths, passages)

    def close(self) -> None:
        self.tokens.close()


def _nearest_passages(similarities: np.ndarray, owners: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers, in order, of the READ_PASSAGES most similar passages of each text.

    `similarities`, `owners`: (m,) of each passage, whose it is in rising order; `counts`: (n,) passages of each text.
    """
    best_first = np.lexsort((-similarities, owners))  # NaN is last
    ranks = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(best_first[ranks < READ_PASSAGES])


def delete_other_tokens(directory: Path, spaces: Iterable[DenseSpace]) -> None:
    """Delete the files of token vectors that belong to none of these spaces."""
    kept = {space.tokens.path for space in spaces}
    for path in directory.glob("*.tokens"):
        if path not in kept:
            path.unlink(missing_ok=True)

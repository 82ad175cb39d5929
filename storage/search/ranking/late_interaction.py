"""What late interaction needs besides the indexes: one model's token vectors, neighbours in sessions, passages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import duckdb
import numpy as np

from storage.search.backfill import read_asking, read_passages, read_places
from storage.search.entries import DocumentEntry
from storage.search.records.passages import PassageIndex, split_passages
from storage.search.records.question_share import AskingIndex
from storage.search.records.timeline import Timelines
from storage.search.vectors.token_store import TokenStore
from storage.search.vectors.token_vectors import Tokens


class TokenMatches(NamedTuple):
    """Of (n,) documents: whether token vectors of them are held; `rows` (n, tokens), the best cosine to each token of the query, 0 where none
    are held; the label of the text or of its passage that fits best; content tokens, of a long text of all passages."""

    is_read: np.ndarray
    rows: np.ndarray
    fits: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True, slots=True)
class LateIndex:
    """Places and passages of all texts, and the token vectors of the model that answers (None: there is no model).

    One thread applies and removes; any number read.
    """

    tokens: TokenStore | None
    timelines: Timelines
    passages: PassageIndex
    asking: AskingIndex

    @classmethod
    def load(cls, cursor: duckdb.DuckDBPyConnection) -> LateIndex:
        """Everything that the tables hold, without token vectors."""
        timelines, passages, asking = Timelines(), PassageIndex(), AskingIndex()
        asking.add(read_asking(cursor))
        timelines.add(read_places(cursor))
        for owner, some in read_passages(cursor):
            passages.add(owner, some)
        return cls(None, timelines, passages, asking)

    def apply_documents(self, entries: Sequence[DocumentEntry]) -> None:
        self.timelines.add(entries)
        self.asking.add((entry.label, entry.text) for entry in entries)
        for entry in entries:
            self.passages.add(entry.label, split_passages(entry.text))

    def remove(self, labels: Sequence[int]) -> list[int]:
        """Forget documents with their passages; all labels that went."""
        gone = [*labels, *self.passages.remove(labels)]
        self.timelines.remove(labels)
        self.asking.remove(labels)
        return gone

    def matches(self, query: Tokens, weights: np.ndarray, labels: np.ndarray) -> TokenMatches:
        """What the token vectors of (n,) documents say of a query."""
        assert self.tokens is not None, "weights are of a model"
        parts, owners = self.passages.split(labels)
        known, rows = self.tokens.similarities(query, parts)
        lengths = np.bincount(owners, self.tokens.lengths(parts), len(labels)).astype(np.int64)
        is_read, best, fits = (
            np.zeros(len(labels), bool),
            np.zeros((len(labels), len(weights)), np.float32),
            labels.copy(),
        )
        if len(rows):
            owners, parts = owners[known], parts[known]
            first = np.flatnonzero(np.diff(owners, prepend=-1))  # the passages of one text stand together
            whose = owners[first]
            is_read[whose] = True
            best[whose] = np.maximum.reduceat(rows, first, axis=0)  # a long text says what any of its passages says
            order = np.lexsort((-(rows @ weights), owners))
            fits[whose] = parts[order[first]]
        return TokenMatches(is_read, best, fits, lengths)


def entries_of(documents: Iterable[Sequence[object]]) -> Iterator[DocumentEntry]:
    """Documents as entries; (label, namespace, text) is one that stands alone."""
    for document in documents:
        yield document if isinstance(document, DocumentEntry) else DocumentEntry(*document)  # type: ignore[arg-type]

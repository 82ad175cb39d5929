"""What late interaction needs besides the indexes, in memory: token vectors, neighbours in sessions, passages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import duckdb
import numpy as np

from storage.search.asking import AskingIndex
from storage.search.entries import DocumentEntry, VectorEntry
from storage.search.passages import Passage, PassageIndex, split_passages
from storage.search.table import read_asking, read_passages, read_places, read_tokens
from storage.search.timeline import Timelines
from storage.search.tokens import Tokens, TokenStore
from storage.search.vector import VectorModel


class LateIndex:
    """One model's token vectors with the places of their texts. One thread applies and removes; any number read."""

    def __init__(self) -> None:
        self.tokens = TokenStore()
        self.timelines = Timelines()
        self.passages = PassageIndex()
        self.asking = AskingIndex()

    def load(self, cursor: duckdb.DuckDBPyConnection, model: VectorModel | None) -> None:
        """Everything that the tables hold."""
        self.timelines.add(read_places(cursor))
        self.asking.add(read_asking(cursor))
        for owner, passages in read_passages(cursor):
            self.passages.add(owner, passages)
        if model is not None:
            self.tokens.add(read_tokens(cursor, model))

    def apply_documents(self, entries: Sequence[DocumentEntry]) -> None:
        self.timelines.add(entries)
        self.asking.add((entry.label, entry.text) for entry in entries)
        for entry in entries:
            self.passages.add(entry.label, split_passages(entry.text))

    def apply_vectors(self, entries: Iterable[VectorEntry]) -> None:
        self.tokens.add((entry.label, entry.tokens) for entry in entries if entry.tokens)
        for entry in entries:
            if entry.passage is not None:
                owner, *place = entry.passage
                self.passages.add(owner, [Passage(*place)])

    def remove(self, labels: Sequence[int]) -> list[int]:
        """Forget documents with their passages; all labels that went."""
        gone = [*labels, *self.passages.remove(labels)]
        self.timelines.remove(labels)
        self.asking.remove(labels)
        self.tokens.remove(gone)
        return gone

    def length(self, label: int) -> int:
        """Content tokens of a text; of a long one of all passages."""
        return self.tokens.length(label) or sum(self.tokens.length(part) for part in self.passages.parts(label))

    def matches(self, query: Tokens, weights: np.ndarray, labels: Iterable[int]) -> dict[int, tuple[np.ndarray, int]]:
        """label -> (best cosine to each token of the query, the label of the text or of its passage that fits best)."""
        wanted = [part for label in labels for part in (self.passages.parts(label) or (label,))]
        known, rows = self.tokens.similarities(query, wanted)
        order = np.argsort(-(rows @ weights), kind="stable")
        best: dict[int, tuple[np.ndarray, int]] = {}
        for row in order.tolist():
            owner = self.passages.owner(known[row])
            if owner in best:  # a long text says what any of its passages says
                np.maximum(best[owner][0], rows[row], out=best[owner][0])
            else:
                best[owner] = rows[row].copy(), known[row]
        return best

    def around(self, labels: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        """label -> (label, distance) of its neighbours in its session."""
        return {label: near for label in labels if (near := self.timelines.around(label))}


def entries_of(documents: Iterable[Sequence[object]]) -> Iterator[DocumentEntry]:
    """Documents as entries; (label, namespace, text) is one that stands alone."""
    for document in documents:
        yield document if isinstance(document, DocumentEntry) else DocumentEntry(*document)  # type: ignore[arg-type]

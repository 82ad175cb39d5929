"""What late interaction needs besides the indexes: one model's token vectors, neighbours in sessions, passages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from storage.search.asking import AskingIndex
from storage.search.entries import DocumentEntry
from storage.search.passages import PassageIndex, split_passages
from storage.search.table import read_asking, read_passages, read_places
from storage.search.timeline import Timelines
from storage.search.token_store import TokenStore
from storage.search.tokens import Tokens


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

    def lengths(self, labels: Sequence[int]) -> dict[int, int]:
        """Content tokens of each text, of a long one of all passages; those without any are left out."""
        if self.tokens is None:
            return {}
        parts = [(part, label) for label in labels for part in (self.passages.parts(label) or (label,))]
        counts: dict[int, int] = {}
        for (_, label), count in zip(parts, self.tokens.lengths(np.array([part for part, _ in parts], np.int64)).tolist(), strict=True):
            counts[label] = counts.get(label, 0) + count
        return {label: count for label, count in counts.items() if count}

    def matches(self, query: Tokens, weights: np.ndarray, labels: Iterable[int]) -> dict[int, tuple[np.ndarray, int]]:
        """label -> (best cosine to each token of the query, the label of the text or of its passage that fits best)."""
        if self.tokens is None:
            return {}
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
        return self.timelines.around_each(labels)


def entries_of(documents: Iterable[Sequence[object]]) -> Iterator[DocumentEntry]:
    """Documents as entries; (label, namespace, text) is one that stands alone."""
    for document in documents:
        yield document if isinstance(document, DocumentEntry) else DocumentEntry(*document)  # type: ignore[arg-type]

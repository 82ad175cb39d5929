"""The words of all documents: the keyword index, and the table for what a rebuild has not indexed yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import duckdb
import numpy as np

from storage.append_only import mark
from storage.search.entries import DocumentEntry
from storage.search.pace import pausing
from storage.search.records.filter import Filter
from storage.search.records.filter_cache import AllowList
from storage.search.records.matches import DocumentMatches, Matches
from storage.search.records.passages import EMBEDDED_PASSAGES, PassageIndex
from storage.search.records.selection import Selection
from storage.search.words.backfill import catch_up_keywords, load_keywords, with_passages
from storage.search.words.keyword_index import KeywordIndex
from storage.search.words.table_scan import MAX_CANDIDATES, SCANNED_ROWS, scan_documents
from storage.search.words.tantivy_schema import TERMS

PASSAGES_EACH = 3
"""Matches per document that is wanted, where there are long ones: several may be passages of the same."""


class Words:
    """Documents and their passages by the words in them. One thread applies and removes; any number search.

    While the index is rebuilt, what it has already is joined by what the table says of the rest.
    """

    def __init__(self, directory: Path, passages: PassageIndex, pause: Callable[[], None]) -> None:
        """`pause` is called after every millisecond of background work."""
        self.is_ready = False
        """Whether every committed document is in the index."""
        self._directory = directory
        self._passages = passages
        self._pause = pause
        self._opened: KeywordIndex | None = None
        self._unindexed = 0
        """While the index is rebuilt: the rowid below which documents are not in it yet."""
        self._long: list[DocumentEntry] = []
        """Texts of megabytes, which `index_long` indexes: the seconds that it takes are not the writer's."""

    def load(self, cursor: duckdb.DuckDBPyConnection, positions: Mapping[str, int]) -> None:
        """Open the saved index and catch it up with the table; where that is much, `rebuild` is to follow."""
        index = load_keywords(cursor, self._directory, positions, self._passages)
        self._opened, self.is_ready = (KeywordIndex(self._directory), False) if index is None else (index, True)
        self._unindexed = mark(cursor, "documents").last + 1

    @property
    def is_open(self) -> bool:
        return self._opened is not None

    @property
    def index(self) -> KeywordIndex:
        if self._opened is None:
            raise RuntimeError("open() has not been called")
        return self._opened

    def rebuild(self, cursor: duckdb.DuckDBPyConnection, stopped: Callable[[], bool]) -> None:
        """Index what the table had at `load`, the newest first. What is applied meanwhile enters the index at once."""
        if self.is_ready or stopped():
            return
        newest = catch_up_keywords(cursor, self.index, self._passages, below=self._unindexed, pause=self._pause)
        for rowid in newest:
            self._unindexed = rowid
            if stopped():
                return
        self.is_ready = True

    @property
    def is_whole(self) -> bool:
        """Whether every document is in the index, with all of the very long ones."""
        return self.is_ready and not self._long

    @property
    def lacks_old_documents(self) -> bool:
        """Whether a search beside other sides misses documents, since the table is not scanned that far."""
        return not self.is_ready and self._unindexed > SCANNED_ROWS

    def apply(self, entries: Sequence[DocumentEntry]) -> None:
        """Make committed documents findable; very long ones with the next `index_long`."""
        self.index.add(self._texts(entries))

    def build(self, entries: Iterable[DocumentEntry]) -> None:
        """As `apply`, of many, off the waited path: they are found together when this returns.

        Not while the index is rebuilt, for which this would wait.
        """
        self.index.build(pausing(self._texts(entries), self._pause))

    def _texts(self, entries: Iterable[DocumentEntry]) -> Iterator[tuple[int, str, str]]:
        for entry in entries:
            if len(self._passages.parts(entry.label)) > EMBEDDED_PASSAGES:
                self._long.append(entry)
            else:
                yield from with_passages([entry], self._passages)

    def remove(self, labels: Sequence[int]) -> None:
        """Labels of documents and passages that are not found any more."""
        self._long = [entry for entry in self._long if entry.label not in labels]
        self.index.remove(labels)

    def index_long(self, stopped: Callable[[], bool]) -> None:
        """Index the very long texts. Those that a kill cuts off are found missing at the next `load`."""
        while self._long and self.is_ready and not stopped():
            self.index.build(pausing(with_passages(self._long[:1], self._passages), self._pause))
            del self._long[0]

    def cache_frequent(self, is_wanted: Callable[[], bool], stopped: Callable[[], bool]) -> None:
        """Look for the documents of frequent words, where that `is_wanted` and they are not known yet."""
        if self.is_ready:
            self.index.cache_frequent(is_wanted, stopped, self._pause)

    def search(
        self,
        cursor: duckdb.DuckDBPyConnection,
        text: str,
        allowed: AllowList,
        k: int,
        *,
        field: str = TERMS,
        alone: bool = True,
    ) -> DocumentMatches:
        """The k best documents by BM25, each by its whole text or its best passage. Every word is an alternative.

        `field`: `TERMS` (stemmed) or `WORDS` (as they are spelled). `alone`: no other side is searched; while the index
        is rebuilt, the whole table is scanned then, beside other sides the newest `SCANNED_ROWS` only.
        """
        more = PASSAGES_EACH * k if len(self._passages) else k
        labels = allowed.with_passages(self._passages)
        if self.is_ready:
            matches = self.index.search(text, allowed.filter.namespace, more, labels, field=field)
        else:
            rows = None if alone else SCANNED_ROWS
            matches = self._search_both(cursor, text, allowed.filter, more, labels, rows, field)
        return self._passages.documents_of(matches, k)

    def _search_both(
        self,
        cursor: duckdb.DuckDBPyConnection,
        text: str,
        filter: Filter,
        k: int,
        labels: np.ndarray | None,
        rows: int | None,
        field: str = TERMS,
    ) -> Matches:
        """What the index has already, and what the table says of `rows` of the rest (None: of all)."""
        index, below = self.index, self._unindexed  # before searching: what is added meanwhile is found twice
        rest = scan_documents(cursor, text, filter, below, rows, field=field)
        scanned = index.score(text, filter.namespace, rest, field=field)
        found = dict(scanned) | dict(index.search(text, filter.namespace, k, labels, field=field))
        return sorted(found.items(), key=lambda match: (-match[1], match[0]))[:k]

    def best_of(
        self, cursor: duckdb.DuckDBPyConnection, text: str, namespace: str, labels: np.ndarray, k: int
    ) -> Matches:
        """The k best by BM25 among (n,) sorted labels of a namespace."""
        if len(labels) == 0:
            return []
        if self.is_ready:
            return self.index.search(text, namespace, k, labels)
        chosen = set(labels.tolist())
        found = self._search_both(
            cursor, text, Filter(namespace), len(labels) + MAX_CANDIDATES, labels, None
        )  # cuts off none
        return [match for match in found if match[0] in chosen][:k]

    def contained_in(
        self, cursor: duckdb.DuckDBPyConnection, text: str, namespace: str, selection: Selection
    ) -> np.ndarray:
        """(n,) whether each of a selection, of this namespace, has a word of the text."""
        if self.is_ready:
            return self.index.contained_in(text, namespace, selection)
        found = self.best_of(cursor, text, namespace, selection.labels, len(selection.labels))
        marked = np.zeros(len(selection.labels), bool)
        marked[selection.find(np.array([label for label, _ in found], np.int64))] = True
        return marked

    def postings(self, text: str, allowed: AllowList, k: int) -> dict[str, set[int]]:
        """For each word of the text at most k documents that have it; nothing while the index is rebuilt."""
        if not self.is_ready:
            return {}
        labels = allowed.with_passages(self._passages)
        found = self.index.postings(text, allowed.filter.namespace, k, labels)
        return {term: {self._passages.owner(label) for label in some} for term, some in found.items()}

    def ceiling(self, text: str, namespace: str) -> float:
        """The BM25 of a document with nothing but the words of a text; 0 where no document has any of them."""
        return self.index.ceiling(text, namespace)

    def rarities(self, terms: Iterable[str], namespace: str) -> tuple[dict[str, float], float]:
        """The inverse document frequency of terms in a namespace, and the mean length of its documents."""
        return self.index.rarities(terms, namespace), self.index.mean_length(namespace)

    def commit(self) -> None:
        """Move what was applied from memory into the index."""
        self.index.commit()

    def save(self, covers: Mapping[str, int]) -> None:
        """Seal the index with what it covers, unless it is being rebuilt."""
        if self.is_ready:
            self.index.save(covers)

    def labels(self) -> np.ndarray:
        """The documents in the index, sorted."""
        return np.setdiff1d(self.index.labels(), self._passages.labels())

    def state(self) -> dict[str, int | str]:
        """The state of the index, for `status`.

        Whether it is whole, how many documents it has, and how many of them are in memory only.
        """
        state: dict[str, int | str] = {"state": "ready" if self.is_ready else "rebuilding"}
        if self._opened is not None:
            state |= {"count": len(self.index) - len(self._passages), "uncommitted": self.index.waiting}
        return state

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

"""The committed words of one namespace: a tantivy index of its own.

So no document of another namespace counts in a score, and none has to be filtered out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from storage.search.files.hard_links import Copy, HardLink, SnapshotFile
from storage.search.records.label_map import ABSENT, places_in
from storage.search.records.matches import Matches
from storage.search.words.tantivy_schema import (
    TERMS,
    document_of,
    hits_of,
    labels_of,
    query_of,
    schema_of_documents,
)

if TYPE_CHECKING:
    import tantivy

TERM_SET_LABELS = 1_000
"""Up to this many allowed labels are part of the query; more are looked up in what the query finds."""
_HEAP_BYTES = 20_000_000
_COPIED = ("meta.json", ".managed.json")


def shard_name(namespace: str) -> str:
    """The name of a namespace's directory."""
    return hashlib.blake2b(namespace.encode(), digest_size=16).hexdigest()


class Shard:
    """Documents by label. One thread adds, commits and removes; any number search."""

    def __init__(self, directory: Path) -> None:
        """What lies in the directory, which is made where it is not there. Raises ValueError for another version's."""
        import tantivy

        directory.mkdir(parents=True, exist_ok=True)
        self.cached_at = 0
        """How many documents it had when the posting lists of its frequent words were cached."""
        self._directory = directory
        self._schema = schema_of_documents()
        self._index = tantivy.Index(self._schema, path=str(directory))
        self._opened: tantivy.IndexWriter | None = None

    def __len__(self) -> int:
        return int(self._index.searcher().num_docs)

    @property
    def is_writing(self) -> bool:
        """Whether a writer with its threads is open."""
        return self._opened is not None

    @property
    def _writer(self) -> tantivy.IndexWriter:
        if self._opened is None:
            self._opened = self._index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        return self._opened

    def add(self, label: int, texts: Mapping[str, str]) -> None:
        """A document that is found after `commit`."""
        self._writer.add_document(document_of(label, texts))

    def commit(self) -> None:
        self._writer.commit()
        self._index.reload()

    def remove(self, labels: Sequence[int]) -> bool:
        """Take out what is there of these, and commit; whether there was any."""
        searcher = self._index.searcher()
        found = [label for label in labels if searcher.doc_freq("label", label)]
        for label in found:
            self._writer.delete_documents_by_term("label", label)
        if found:
            self.commit()
        return bool(found)

    def release(self) -> None:
        """Close the writer once its merges are done; the next addition opens another."""
        if self._opened is not None:
            self._opened.wait_merging_threads()
            self._opened = None

    def close(self) -> None:
        """Give up the writer and its lock."""
        if self._opened is not None:
            self._opened.rollback()
            self._opened = None

    def has(self, label: int) -> bool:
        from tantivy import Query

        searcher = self._index.searcher()
        if not searcher.doc_freq("label", label):
            return False  # the usual case, and quick; the frequency counts removed documents as well
        return bool(searcher.search(Query.term_query(self._schema, "label", label, "basic"), 1, count=False).hits)

    def frequency(self, field: str, term: str) -> int:
        """In how many documents a term is."""
        return int(self._index.searcher().doc_freq(field, term))

    def labels(self) -> np.ndarray:
        return labels_of(self._index.searcher())

    def having(self, term: str) -> np.ndarray:
        """The labels of the documents with a term, int64."""
        from tantivy import Query

        searcher = self._index.searcher()
        word = Query.const_score_query(Query.term_query(self._schema, TERMS, term, "basic"), 0.0)
        hits = searcher.search(word, max(1, searcher.num_docs), count=False).hits
        return np.array(searcher.fast_field_values("label", [address for _, address in hits]), np.int64)

    def frequent(self, limit: int) -> list[tuple[str, int]]:
        """The most frequent terms with the number of their documents."""
        return self._index.searcher().terms_with_prefix(TERMS, "", limit=limit)

    def search(self, terms: Sequence[str], k: int, allowed: np.ndarray | None, field: str) -> Matches:
        """The k best as (label, BM25), best first. `allowed`: sorted int64 labels, None for all."""
        searcher = self._index.searcher()
        if allowed is not None and len(allowed) <= TERM_SET_LABELS:
            return hits_of(searcher, query_of(self._schema, terms, allowed.tolist(), field), k)
        query = query_of(self._schema, terms, None, field)
        if allowed is None:
            return hits_of(searcher, query, k)
        # as many as the filter should leave k of, then more, until enough are left or there are no more
        limit = min(searcher.num_docs, 64 + 2 * k * max(1, searcher.num_docs // len(allowed)))
        while True:
            hits = hits_of(searcher, query, limit)
            kept = places_in(allowed, np.array([label for label, _ in hits], np.int64)) != ABSENT
            if len(hits) < limit or int(kept.sum()) >= k or limit >= searcher.num_docs:
                return [hit for hit, keep in zip(hits, kept.tolist(), strict=True) if keep][:k]
            limit = min(limit * 8, searcher.num_docs)

    def snapshot(self) -> dict[str, SnapshotFile]:
        """What writes each file of the committed state, by its name. Raises FileNotFoundError during a merge.

        These are the segments that the list in meta.json names now; segment files never change.
        """
        bodies = {name: (self._directory / name).read_bytes() for name in _COPIED}
        segments: set[Any] = {
            segment["segment_id"].replace("-", "") for segment in orjson.loads(bodies["meta.json"])["segments"]
        }
        writers: dict[str, SnapshotFile] = {}
        for source in sorted(self._directory.iterdir()):
            if source.name.split(".", 1)[0] in segments:
                writers[source.name] = HardLink(source)
        for name, body in bodies.items():
            writers[name] = Copy(self._directory / name, body)
        return writers


def is_copied(name: str) -> bool:
    """Whether a file of a snapshot changes, so that an index works on a copy of it."""
    return name in _COPIED

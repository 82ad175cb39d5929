"""Full-text search: BM25 over tantivy, and over a small overlay of what tantivy has not committed yet.

A tantivy commit takes milliseconds, so it happens off any path that somebody waits for; until then a document is found
in the overlay, which analyses and scores it alike: BM25 with the document counts of index and overlay together and the
mean length of what this index has seen. tantivy itself counts its committed documents only and rounds lengths to a
byte, so that scores of the two agree to a few per cent; ranks are all that fusion uses. Scores compare all namespaces'
documents; matches never leave the namespace. A document is indexed twice: by its terms (`TERMS`, stemmed) and by its
words as they are spelled (`WORDS`). A search uses one of the two.
"""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import orjson

from storage.search.files.hard_links import copier, link, linker
from storage.search.files.sealed import open_sealed, seal
from storage.search.records.label_map import ABSENT, places_in
from storage.search.records.matches import Matches
from storage.search.records.selection import Selection
from storage.search.words.analyzer import document_terms, document_words, query_terms, query_words
from storage.search.words.bm25 import K1, bm25, rarity
from storage.search.words.posting_lists import MAX_NUMBERS, PostingLists
from storage.search.words.tantivy_schema import (
    TERMS,
    WORDS,
    document_of,
    hits_of,
    labels_of,
    query_of,
    schema_of_documents,
)

if TYPE_CHECKING:
    import tantivy

MAX_QUERY_TERMS = 64
TERM_SET_LABELS = 1_000
"""Up to this many allowed labels are part of the query; more are looked up in what the query finds."""
_OF_QUERY = {TERMS: query_terms, WORDS: query_words}
_OF_DOCUMENT = {TERMS: document_terms, WORDS: document_words}
_HEAP_BYTES = 20_000_000
_LIVE = "live"
_SNAPSHOT_TRIES = 5
FREQUENT, FREQUENT_WORDS = 2_000, 500
"""The posting lists of words in at least this many documents are cached beforehand, of at most this many words."""
RECACHE_GROWTH = 1.25
"""They are cached again when there are this many times as many documents."""
_COPIED = ("meta.json", ".managed.json")


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A document of the overlay."""

    namespace: str
    counts: Mapping[str, Counter[str]]
    """By field."""
    length: int
    texts: Mapping[str, str]


class KeywordIndex:
    """Documents by label. `directory` holds the sealed snapshot and, in `live/`, what tantivy works on."""

    def __init__(self, directory: Path) -> None:
        """An empty index; whatever lies in `live/` is discarded. `load` opens a snapshot."""
        self._directory = directory
        self._live = directory / _LIVE
        shutil.rmtree(self._live, ignore_errors=True)
        self._live.mkdir(parents=True)
        self._start()

    def _start(self) -> None:
        import tantivy

        self._schema = schema_of_documents()
        self._index = tantivy.Index(self._schema, path=str(self._live))
        self._writer = self._index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        self._waiting: dict[int, _Waiting] = {}
        self._postings: dict[tuple[str, str], set[int]] = {}
        self._overlay = threading.Lock()
        self._committing = threading.Lock()
        self._seen_documents, self._seen_terms = 0, 0
        self._lists = PostingLists()
        self._cached_at = 0
        self._alone: dict[str, bool] = {}

    def __len__(self) -> int:
        return int(self._index.searcher().num_docs) + len(self._waiting)

    @property
    def waiting(self) -> int:
        """Documents that only the overlay finds so far."""
        return len(self._waiting)

    def add(self, documents: Iterable[tuple[int, str, str]]) -> None:
        """Make (label, namespace, text) findable at once. A label that is there already keeps its text."""
        for label, namespace, text in documents:
            if label in self._waiting or self._is_committed(label):  # in this order: see commit
                continue
            fields = {field: analyze(text) for field, analyze in _OF_DOCUMENT.items()}
            counts = {field: Counter(terms) for field, terms in fields.items()}
            texts = {field: " ".join(terms) for field, terms in fields.items()}
            waiting = _Waiting(namespace, counts, len(fields[TERMS]), texts)
            with self._overlay:
                self._waiting[label] = waiting
                for posting in _postings_of(waiting):
                    self._postings.setdefault(posting, set()).add(label)
                self._seen_documents += 1
                self._seen_terms += waiting.length
            self._lists.added(label, counts[TERMS])

    def build(self, documents: Iterable[tuple[int, str, str]]) -> None:
        """Add many (label, namespace, text) that are not there; found when this returns. Only `commit` waits for it."""
        with self._committing:
            for label, namespace, text in documents:
                fields = {field: analyze(text) for field, analyze in _OF_DOCUMENT.items()}
                self._writer.add_document(
                    document_of(label, namespace, {field: " ".join(terms) for field, terms in fields.items()})
                )
                self._seen_documents += 1
                self._seen_terms += len(fields[TERMS])
            self._writer.commit()
            self._reload()
            self._lists.clear()

    def _is_committed(self, label: int) -> bool:
        from tantivy import Query

        searcher = self._index.searcher()
        if not searcher.doc_freq("label", label):
            return False  # the usual case, and quick; the frequency counts removed documents as well
        return bool(searcher.search(Query.term_query(self._schema, "label", label, "basic"), 1, count=False).hits)

    def commit(self) -> int:
        """Move the overlay into tantivy; the number moved. Milliseconds to seconds: call it off the waited path."""
        with self._committing:
            with self._overlay:
                batch = dict(self._waiting)
            if not batch:
                return 0
            for label, waiting in batch.items():
                self._writer.add_document(document_of(label, waiting.namespace, waiting.texts))
            self._writer.commit()
            self._reload()
            for label in batch:  # only now: a searcher looks at the overlay first, so it misses nothing
                with self._overlay:
                    self._forget(label)
            return len(batch)

    def _forget(self, label: int) -> None:
        waiting = self._waiting.pop(label, None)
        for posting in _postings_of(waiting) if waiting else ():
            holders = self._postings[posting]
            holders.discard(label)
            if not holders:
                del self._postings[posting]

    def remove(self, labels: Sequence[int]) -> None:
        """Labels that are not found any more, after this returns."""
        with self._committing:
            with self._overlay:
                for label in labels:
                    self._forget(label)
            for label in labels:
                self._writer.delete_documents_by_term("label", label)
            self._writer.commit()
            self._reload()
            self._lists.clear()

    def _reload(self) -> None:
        self._index.reload()
        self._alone = {}

    def _is_alone(self, known: dict[str, bool], searcher: tantivy.Searcher, namespace: str) -> bool:
        """Whether every committed document is of this namespace.

        Then a query need not filter by it, and takes half the time. `known` is what `_alone` was before the searcher
        was made: what is counted for an older one is lost with it.
        """
        from tantivy import Query

        if namespace not in known:
            only = Query.const_score_query(Query.term_query(self._schema, "namespace", namespace, "basic"), 0.0)
            known[namespace] = searcher.search(only, 1, count=True).count == searcher.num_docs
        return known[namespace]

    def labels(self) -> np.ndarray:
        """Every label that can be found, sorted, int64."""
        with self._overlay:
            waiting = list(self._waiting)
        return np.unique(np.concatenate([np.array(waiting, np.int64), labels_of(self._index.searcher())]))

    def search(
        self, text: str, namespace: str, k: int, allowed: np.ndarray | None = None, *, field: str = TERMS
    ) -> Matches:
        """The k best as (label, BM25), best first. `allowed`: sorted int64 labels, None for the whole namespace.

        Every word counts as an alternative; nothing in `text` is syntax.
        """
        terms = _OF_QUERY[field](text)[:MAX_QUERY_TERMS]
        if not terms or k < 1 or (allowed is not None and len(allowed) == 0):
            return []
        found = self._search_overlay(terms, namespace, allowed, field)  # before tantivy: see commit
        for label, score in self._search_tantivy(terms, namespace, k, allowed, field):
            found.setdefault(label, score)
        return sorted(found.items(), key=lambda match: (-match[1], match[0]))[:k]

    def contained_in(self, text: str, selection: Selection) -> np.ndarray:
        """(n,) whether each of a selection has a word of the text."""
        places = selection.numbers_in(self._lists)  # before the words: every number is among those that are marked
        marked: np.ndarray = self._lists.any_of(query_terms(text)[:MAX_QUERY_TERMS], self._find)[places]
        return marked

    def cache_frequent(
        self, is_wanted: Callable[[], bool], stopped: Callable[[], bool], pause: Callable[[], None]
    ) -> None:
        """Cache the posting lists of frequent words before a search counts them: 4 ms for 25,000 documents.

        Does so once, and again when there are a good deal more documents, if it `is_wanted` then. `pause` is called
        after each word.
        """
        searcher, left = self._index.searcher(), MAX_NUMBERS
        if searcher.num_docs < max(FREQUENT, self._cached_at * RECACHE_GROWTH) or not is_wanted():
            return
        self._cached_at = searcher.num_docs
        for term, count in searcher.terms_with_prefix(TERMS, "", limit=FREQUENT_WORDS):
            left -= count
            if count < FREQUENT or left < 0 or stopped():
                break
            self._lists.of(term, self._find)
            pause()

    def _find(self, term: str) -> np.ndarray:
        from tantivy import Query

        with self._overlay:  # before tantivy: see commit
            waiting = list(self._postings.get((TERMS, term), ()))
        searcher = self._index.searcher()
        word = Query.const_score_query(Query.term_query(self._schema, TERMS, term, "basic"), 0.0)
        hits = searcher.search(word, max(1, searcher.num_docs), count=False).hits
        return np.array([*waiting, *searcher.fast_field_values("label", [address for _, address in hits])], np.int64)

    def postings(self, text: str, namespace: str, k: int, allowed: np.ndarray | None = None) -> dict[str, list[int]]:
        """For each word of the text at most k documents that have it."""
        lists: dict[str, list[int]] = {}
        for term in query_terms(text)[:MAX_QUERY_TERMS]:
            found = self._search_overlay([term], namespace, allowed)
            if allowed is None or len(allowed):
                found |= dict(self._search_tantivy([term], namespace, k, allowed))
            lists[term] = list(found)
        return lists

    def ceiling(self, text: str) -> float:
        """The score of a document that consists of nothing but the query's words.

        Scores of the query are shares of it.
        """
        searcher = self._index.searcher()
        documents = int(searcher.num_docs) + len(self._waiting)
        with self._overlay:
            waiting = {term: len(self._postings.get((TERMS, term), ())) for term in query_terms(text)[:MAX_QUERY_TERMS]}
        return sum(
            rarity(documents, searcher.doc_freq("text", term) + count) * (K1 + 1) for term, count in waiting.items()
        )

    def score(self, text: str, documents: Iterable[tuple[int, str]], *, field: str = TERMS) -> Matches:
        """(label, BM25) of texts that are not in the index, as if they were; those without a word left out."""
        terms = _OF_QUERY[field](text)[:MAX_QUERY_TERMS]
        counted = [(label, Counter(_OF_DOCUMENT[field](said))) for label, said in documents]
        searcher = self._index.searcher()
        total = int(searcher.num_docs) + len(self._waiting) + len(counted)
        mean = self._seen_terms / self._seen_documents if self._seen_documents else 1.0
        holding = {
            term: sum(term in counts for _, counts in counted) + searcher.doc_freq(field, term) for term in terms
        }
        scores = []
        for label, counts in counted:
            length = sum(counts.values())
            found = [bm25(counts[term], length, mean, total, holding[term]) for term in terms if counts[term]]
            if found:
                scores.append((label, sum(found)))
        return scores

    def _search_overlay(
        self, terms: Sequence[str], namespace: str, allowed: np.ndarray | None, field: str = TERMS
    ) -> dict[int, float]:
        with self._overlay:
            holders = {
                term: [(label, self._waiting[label]) for label in self._postings.get((field, term), ())]
                for term in terms
            }
        usable = {label for holding in holders.values() for label, waiting in holding if waiting.namespace == namespace}
        if allowed is not None and usable:
            labels = np.array(list(usable), np.int64)
            usable = set(labels[places_in(allowed, labels) != ABSENT].tolist())
        if not usable:
            return {}
        searcher = self._index.searcher()
        documents = int(searcher.num_docs) + len(self._waiting)
        mean = self._seen_terms / self._seen_documents if self._seen_documents else 1.0
        scores: dict[int, float] = {}
        for term, holding in holders.items():
            frequency = searcher.doc_freq(field, term) + len(holding)
            for label, waiting in holding:
                if label in usable:
                    score = bm25(waiting.counts[field][term], waiting.length, mean, documents, frequency)
                    scores[label] = scores.get(label, 0.0) + score
        return scores

    def _search_tantivy(
        self, terms: Sequence[str], namespace: str, k: int, allowed: np.ndarray | None, field: str = TERMS
    ) -> Matches:
        known, searcher = self._alone, self._index.searcher()
        if allowed is not None and len(allowed) <= TERM_SET_LABELS:
            return hits_of(searcher, query_of(self._schema, terms, namespace, allowed.tolist(), field), k)
        query = query_of(
            self._schema, terms, None if self._is_alone(known, searcher, namespace) else namespace, None, field
        )
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

    def save(self, covered: Mapping[str, int]) -> None:
        """Commit, then seal a snapshot of hard links. `covered`: next offset by "topic/partition"."""
        self.commit()
        with self._committing:
            for attempt in range(_SNAPSHOT_TRIES):
                try:
                    writers, names = self._snapshot()
                    facts = {
                        "covered": dict(covered),
                        "names": names,
                        "documents": self._seen_documents,
                        "terms": self._seen_terms,
                    }
                    seal(self._directory, writers, facts)
                    return
                except FileNotFoundError:  # a background merge has replaced segments since their list was read
                    if attempt == _SNAPSHOT_TRIES - 1:
                        raise

    def _snapshot(self) -> tuple[dict[str, Callable[[Path], None]], dict[str, str]]:
        """What to write for the segments that the list in meta.json names now; segment files never change."""
        bodies = {name: (self._live / name).read_bytes() for name in _COPIED}
        segments = {segment["segment_id"].replace("-", "") for segment in orjson.loads(bodies["meta.json"])["segments"]}
        writers: dict[str, Callable[[Path], None]] = {}
        for source in sorted(self._live.iterdir()):
            if source.name.split(".", 1)[0] in segments:
                writers[source.name] = linker(source)
        for name, body in bodies.items():
            writers[name.lstrip(".")] = copier(self._live / name, body)
        return writers, {name.lstrip("."): name for name in _COPIED}

    @classmethod
    def load(cls, directory: Path) -> KeywordIndex | None:
        """The sealed snapshot as a working index; None when there is none, or it is damaged in any way."""
        sealed = open_sealed(directory)
        if sealed is None:
            return None
        index = cls.__new__(cls)
        index._directory, index._live = directory, directory / _LIVE
        shutil.rmtree(index._live, ignore_errors=True)
        index._live.mkdir(parents=True)
        for name, path in sealed.files.items():
            target = index._live / sealed.facts["names"].get(name, name)
            if name in sealed.facts["names"]:
                shutil.copyfile(path, target)
            else:
                link(path, target)
        try:
            index._start()
        except ValueError:  # another version of tantivy wrote it
            return None
        index._seen_documents, index._seen_terms = int(sealed.facts["documents"]), int(sealed.facts["terms"])
        return index

    def close(self) -> None:
        """Give up tantivy's writer and its lock. What is in the overlay is in the table."""
        with self._committing:
            self._writer.rollback()
            del self._writer


def _postings_of(waiting: _Waiting) -> Iterator[tuple[str, str]]:
    return ((field, term) for field, counts in waiting.counts.items() for term in counts)

"""Full-text search: BM25 over tantivy, and over a small overlay of what tantivy has not committed yet.

A tantivy commit takes milliseconds, so it happens off any path that somebody waits for; until then a document is found
in the overlay, which analyses and scores it alike: BM25 with the document counts of index and overlay together and the
mean length of what this index has seen. tantivy itself counts its committed documents only and rounds lengths to a
byte, so that scores of the two agree to a few per cent; ranks are all that fusion uses. Each namespace has a tantivy
index of its own (`shard`), and all counts are its own: what others remember changes no score. A document is indexed
twice: by its terms (`TERMS`, stemmed) and by its words as they are spelled (`WORDS`). A search uses one of the two.
"""

from __future__ import annotations

import shutil
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from storage.search.files.hard_links import SnapshotFile, link
from storage.search.files.sealed import open_sealed, seal
from storage.search.records.label_map import ABSENT, places_in
from storage.search.records.matches import Matches
from storage.search.records.selection import Selection
from storage.search.words.analyzer import (
    document_terms,
    document_words,
    query_terms,
    query_words,
    terms_and_words,
)
from storage.search.words.bm25 import K1, bm25, rarity
from storage.search.words.posting_lists import MAX_NUMBERS, PostingLists
from storage.search.words.shard import Shard, is_copied, shard_name
from storage.search.words.tantivy_schema import TERMS, WORDS

MAX_QUERY_TERMS = 64
_OF_QUERY = {TERMS: query_terms, WORDS: query_words}
_OF_DOCUMENT = {TERMS: document_terms, WORDS: document_words}
MAX_WRITERS = 8
"""This many namespaces keep their writer, which has threads of its own, between two commits."""
_LIVE = "live"
_SNAPSHOT_TRIES = 5
FREQUENT, FREQUENT_WORDS = 2_000, 500
"""The posting lists of words in at least this many documents are cached beforehand, of at most this many words."""
RECACHE_GROWTH = 1.25
"""They are cached again when there are this many times as many documents."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A document of the overlay."""

    namespace: str
    counts: Mapping[str, Counter[str]]
    """By field."""
    length: int
    texts: Mapping[str, str]


@dataclass(slots=True)
class _Seen:
    """How many documents of a namespace were added and how many terms they had, and how many of them wait."""

    documents: int = 0
    terms: int = 0
    waiting: int = 0

    def add(self, terms: int) -> None:
        self.documents += 1
        self.terms += terms

    @property
    def mean(self) -> float:
        """The mean length of a document."""
        return self.terms / self.documents if self.documents else 1.0


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
        self._shards: dict[str, Shard] = {}
        self._seen: defaultdict[str, _Seen] = defaultdict(_Seen)
        self._waiting: dict[int, _Waiting] = {}
        self._postings: dict[tuple[str, str, str], set[int]] = {}
        self._overlay = threading.Lock()
        self._committing = threading.Lock()
        self._lists = PostingLists()

    def __len__(self) -> int:
        return sum(map(len, self._shards.values())) + len(self._waiting)

    def _shard(self, namespace: str) -> Shard:
        """The shard of a namespace, made where there is none. It comes last: its writer stays longest."""
        shard = self._shards.get(namespace)
        if shard is None:
            shard = Shard(self._live / shard_name(namespace))
        others = {name: each for name, each in self._shards.items() if name != namespace}
        self._shards = {**others, namespace: shard}  # replaced, never changed: searches go on in the former
        return shard

    def _release_writers(self) -> None:
        writing = [shard for shard in self._shards.values() if shard.is_writing]
        for shard in writing[:-MAX_WRITERS]:
            shard.release()

    @property
    def waiting(self) -> int:
        """Documents that only the overlay finds so far."""
        return len(self._waiting)

    def add(self, documents: Iterable[tuple[int, str, str]]) -> None:
        """Make (label, namespace, text) findable at once. A label that is there already keeps its text."""
        for label, namespace, text in documents:
            if label in self._waiting or self._is_committed(label, namespace):  # in this order: see commit
                continue
            fields = dict(zip((TERMS, WORDS), terms_and_words(text), strict=True))
            counts = {field: Counter(terms) for field, terms in fields.items()}
            texts = {field: " ".join(terms) for field, terms in fields.items()}
            waiting = _Waiting(namespace, counts, len(fields[TERMS]), texts)
            with self._overlay:
                self._waiting[label] = waiting
                for posting in _postings_of(waiting):
                    self._postings.setdefault(posting, set()).add(label)
                self._seen[namespace].add(waiting.length)
                self._seen[namespace].waiting += 1
            self._lists.added(label, (_word(namespace, term) for term in counts[TERMS]))

    def build(self, documents: Iterable[tuple[int, str, str]]) -> None:
        """Add many (label, namespace, text) that are not there; found when this returns. Only `commit` waits for it."""
        with self._committing:
            touched: dict[str, Shard] = {}
            for label, namespace, text in documents:
                if namespace not in touched:
                    touched[namespace] = self._shard(namespace)
                terms, words = terms_and_words(text)
                touched[namespace].add(label, {TERMS: " ".join(terms), WORDS: " ".join(words)})
                with self._overlay:
                    self._seen[namespace].add(len(terms))
            for shard in touched.values():
                shard.commit()
            self._lists.clear()
            self._release_writers()

    def _is_committed(self, label: int, namespace: str) -> bool:
        shard = self._shards.get(namespace)
        return shard is not None and shard.has(label)

    def commit(self) -> int:
        """Move the overlay into tantivy; the number moved. Milliseconds to seconds: call it off the waited path."""
        with self._committing:
            with self._overlay:
                batch = dict(self._waiting)
            if not batch:
                return 0
            touched = {waiting.namespace: self._shard(waiting.namespace) for waiting in batch.values()}
            for label, waiting in batch.items():
                touched[waiting.namespace].add(label, waiting.texts)
            for shard in touched.values():
                shard.commit()
            for label in batch:  # only now: a searcher looks at the overlay first, so it misses nothing
                with self._overlay:
                    self._forget(label)
            self._release_writers()
            return len(batch)

    def _forget(self, label: int) -> None:
        waiting = self._waiting.pop(label, None)
        if waiting is None:
            return
        self._seen[waiting.namespace].waiting -= 1
        for posting in _postings_of(waiting):
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
            for shard in self._shards.values():
                shard.remove(labels)
            self._lists.clear()
            self._release_writers()

    def labels(self) -> np.ndarray:
        """Every label that can be found, sorted, int64."""
        with self._overlay:
            waiting = list(self._waiting)
        committed = [shard.labels() for shard in self._shards.values()]
        return np.unique(np.concatenate([np.array(waiting, np.int64), *committed]))

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

    def contained_in(self, text: str, namespace: str, selection: Selection) -> np.ndarray:
        """(n,) whether each of a selection, of this namespace, has a word of the text."""
        places = selection.numbers_in(self._lists)  # before the words: every number is among those that are marked
        words = [_word(namespace, term) for term in query_terms(text)[:MAX_QUERY_TERMS]]
        marked: np.ndarray = self._lists.any_of(words, self._find)[places]
        return marked

    def cache_frequent(
        self, is_wanted: Callable[[], bool], stopped: Callable[[], bool], pause: Callable[[], None]
    ) -> None:
        """Cache the posting lists of frequent words before a search counts them: 4 ms for 25,000 documents.

        Does so once for a namespace, and again when it has a good deal more documents, if it `is_wanted` then. `pause`
        is called after each word.
        """
        left = MAX_NUMBERS
        for namespace, shard in self._shards.items():
            count = len(shard)
            if count < max(FREQUENT, shard.cached_at * RECACHE_GROWTH) or not is_wanted():
                continue
            shard.cached_at = count
            for term, having in shard.frequent(FREQUENT_WORDS):
                left -= having
                if having < FREQUENT or left < 0 or stopped():
                    break
                self._lists.of(_word(namespace, term), self._find)
                pause()

    def _find(self, word: str) -> np.ndarray:
        namespace, _, term = word.rpartition(_APART)
        with self._overlay:  # before tantivy: see commit
            waiting = list(self._postings.get((namespace, TERMS, term), ()))
        shard = self._shards.get(namespace)
        committed = [] if shard is None else [shard.having(term)]
        return np.concatenate([np.array(waiting, np.int64), *committed])

    def postings(self, text: str, namespace: str, k: int, allowed: np.ndarray | None = None) -> dict[str, list[int]]:
        """For each word of the text at most k documents that have it."""
        lists: dict[str, list[int]] = {}
        for term in query_terms(text)[:MAX_QUERY_TERMS]:
            found = self._search_overlay([term], namespace, allowed)
            if allowed is None or len(allowed):
                found |= dict(self._search_tantivy([term], namespace, k, allowed))
            lists[term] = list(found)
        return lists

    def ceiling(self, text: str, namespace: str) -> float:
        """The score of a document that consists of nothing but the query's words.

        Scores of the query are shares of it.
        """
        return sum(self.rarities(query_terms(text)[:MAX_QUERY_TERMS], namespace).values()) * (K1 + 1)

    def rarities(self, terms: Iterable[str], namespace: str) -> dict[str, float]:
        """The inverse document frequency of each term in a namespace."""
        with self._overlay:
            waiting = {term: len(self._postings.get((namespace, TERMS, term), ())) for term in terms}
        total = self._total(namespace)
        frequency = self._frequencies(namespace, TERMS)
        return {term: rarity(total, frequency(term) + count) for term, count in waiting.items()}

    def mean_length(self, namespace: str) -> float:
        """The mean number of terms of a namespace's documents; 1 of none."""
        return self._mean(namespace)

    def score(self, text: str, namespace: str, documents: Iterable[tuple[int, str]], *, field: str = TERMS) -> Matches:
        """(label, BM25) of a namespace's texts that are not in the index, as if they were.

        Those without a word are left out.
        """
        terms = _OF_QUERY[field](text)[:MAX_QUERY_TERMS]
        counted = [(label, Counter(_OF_DOCUMENT[field](said))) for label, said in documents]
        total, mean = self._total(namespace) + len(counted), self._mean(namespace)
        frequency = self._frequencies(namespace, field)
        holding = {term: sum(term in counts for _, counts in counted) + frequency(term) for term in terms}
        scores = []
        for label, counts in counted:
            length = sum(counts.values())
            found = [bm25(counts[term], length, mean, total, holding[term]) for term in terms if counts[term]]
            if found:
                scores.append((label, sum(found)))
        return scores

    def _total(self, namespace: str) -> int:
        """How many documents a namespace has."""
        shard, seen = self._shards.get(namespace), self._seen.get(namespace)
        return (0 if shard is None else len(shard)) + (0 if seen is None else seen.waiting)

    def _mean(self, namespace: str) -> float:
        seen = self._seen.get(namespace)
        return 1.0 if seen is None else seen.mean

    def _frequencies(self, namespace: str, field: str) -> Callable[[str], int]:
        """In how many committed documents of a namespace a term is."""
        shard = self._shards.get(namespace)
        return (lambda term: 0) if shard is None else (lambda term: shard.frequency(field, term))

    def _search_overlay(
        self, terms: Sequence[str], namespace: str, allowed: np.ndarray | None, field: str = TERMS
    ) -> dict[int, float]:
        with self._overlay:
            holders = {
                term: [(label, self._waiting[label]) for label in self._postings.get((namespace, field, term), ())]
                for term in terms
            }
        usable = {label for holding in holders.values() for label, _ in holding}
        if allowed is not None and usable:
            labels = np.array(list(usable), np.int64)
            usable = set(labels[places_in(allowed, labels) != ABSENT].tolist())
        if not usable:
            return {}
        total, mean, committed = self._total(namespace), self._mean(namespace), self._frequencies(namespace, field)
        scores: dict[int, float] = {}
        for term, holding in holders.items():
            frequency = committed(term) + len(holding)
            for label, waiting in holding:
                if label in usable:
                    score = bm25(waiting.counts[field][term], waiting.length, mean, total, frequency)
                    scores[label] = scores.get(label, 0.0) + score
        return scores

    def _search_tantivy(
        self, terms: Sequence[str], namespace: str, k: int, allowed: np.ndarray | None, field: str = TERMS
    ) -> Matches:
        shard = self._shards.get(namespace)
        return [] if shard is None else shard.search(terms, k, allowed, field)

    def save(self, covered: Mapping[str, int]) -> None:
        """Commit, then seal a snapshot of hard links. `covered`: next offset by "topic/partition"."""
        self.commit()
        with self._committing:
            for attempt in range(_SNAPSHOT_TRIES):
                try:
                    writers, shards = self._snapshot()
                    seal(self._directory, writers, {"covered": dict(covered), "shards": shards})
                    return
                except FileNotFoundError:  # a background merge has replaced segments since their list was read
                    if attempt == _SNAPSHOT_TRIES - 1:
                        raise

    def _snapshot(self) -> tuple[dict[str, SnapshotFile], list[dict[str, Any]]]:
        """What writes each file; and of each shard its namespace, counts and files by sealed name."""
        writers: dict[str, SnapshotFile] = {}
        shards: list[dict[str, Any]] = []
        for namespace, shard in self._shards.items():
            files = {
                f"{shard_name(namespace)}-{name.lstrip('.')}": (name, write) for name, write in shard.snapshot().items()
            }
            writers |= {sealed: write for sealed, (_, write) in files.items()}
            seen = self._seen[namespace]
            shards.append(
                {
                    "namespace": namespace,
                    "documents": seen.documents,
                    "terms": seen.terms,
                    "files": {sealed: name for sealed, (name, _) in files.items()},
                }
            )
        return writers, shards

    @classmethod
    def load(cls, directory: Path) -> KeywordIndex | None:
        """The sealed snapshot as a working index; None when there is none, or it is damaged in any way."""
        sealed = open_sealed(directory)
        if sealed is None or "shards" not in sealed.facts:  # the latter of an older version
            return None
        index = cls(directory)
        try:
            for saved in sealed.facts["shards"]:
                namespace, live = saved["namespace"], index._live / shard_name(saved["namespace"])
                live.mkdir()
                for sealed_name, name in saved["files"].items():
                    (shutil.copyfile if is_copied(name) else link)(sealed.files[sealed_name], live / name)
                index._shards[namespace] = Shard(live)
                index._seen[namespace] = _Seen(int(saved["documents"]), int(saved["terms"]))
        except ValueError:  # another version of tantivy wrote it
            return None
        return index

    def close(self) -> None:
        """Give up tantivy's writers and their locks. What is in the overlay is in the table."""
        with self._committing:
            for shard in self._shards.values():
                shard.close()


_APART = "\0"


def _word(namespace: str, term: str) -> str:
    """What a posting list is cached under."""
    return f"{namespace}{_APART}{term}"


def _postings_of(waiting: _Waiting) -> Iterator[tuple[str, str, str]]:
    return ((waiting.namespace, field, term) for field, counts in waiting.counts.items() for term in counts)

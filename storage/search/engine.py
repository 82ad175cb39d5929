"""The search engine: keeps the indexes equal to the tables, and answers a query from all sides.

The single writer calls `apply` after each commit: from then on the rows are found. `maintain` (once a second, off
any path that somebody waits for) commits, links and saves. Whatever is missing or wrong on disk at `open` is built
again from the tables in the background, while exact search answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import duckdb
import numpy as np

from storage.memory import give_back
from storage.search.background import background
from storage.search.dates import NamedDate, named_dates, nearness
from storage.search.entries import DocumentEntry, VectorEntry
from storage.search.fusion import WEIGHTS, K, fuse, ordered
from storage.search.hits import Asked, Hit, SearchResult, read_hits, read_texts
from storage.search.keyword import TERMS, WORDS, KeywordIndex, Scores
from storage.search.late import LateIndex, entries_of
from storage.search.neighbours import find_neighbours
from storage.search.planner import Filter, predicate, resolve
from storage.search.ranking import Evidence, late_scores, score_parts
from storage.search.scan import scan_documents
from storage.search.table import catch_up_keywords, catch_up_vectors, load_keywords, load_vectors, release_buffers, with_passages
from storage.search.tokens import Tokens
from storage.search.vector import Matches, VectorIndex, VectorModel
from streams.topics import INVOCATIONS, TELEMETRY

__all__ = ["Hit", "SearchIndexes", "SearchResult"]

Found = TypeVar("Found")

MIN_POOL = 50
SEEDS = 5
MIN_COSINE = 0.30
MIN_COSINE_RANKED = 0.15
KEYWORD_DEPTH = 400
"""So many BM25 scores count as evidence; candidates are the best of them only."""
PASSAGES_EACH = 3
"""How many entries a side is asked for to get as many documents, where there are long ones."""
EXPANDED = 30
"""Of so many of the best of a side the neighbours in their sessions are candidates too."""
DATED = 20
"""So many of what was recorded at a date that the query names are candidates by their vectors alone."""
SAVE_ROWS = 20_000
SAVE_S = 300.0
LINK_S = 0.2
"""How long one `maintain` links vectors: a bounded share of a core while importing."""
CLOSE_S = 30.0
RESOLVED_FILTERS = 8
_OF_NO_FILTER = (TELEMETRY.name, INVOCATIONS.name)
"""What comes from these topics alone changes neither documents nor merges: a search's own record does not make the next one slower."""


class SearchIndexes:
    """The indexes of one data directory. `model` is None when the node runs without an embedder.

    `connect` gives a new DuckDB cursor; each is used by one thread. `apply` is called by one thread only.
    """

    def __init__(self, directory: Path, connect: Callable[[], duckdb.DuckDBPyConnection], model: VectorModel | None) -> None:
        self.model = model
        self._directory = directory
        self._connect = connect
        self.late = LateIndex()
        self._spaces: dict[tuple[str, str], VectorIndex] = {}
        """By (space, model): the one that answers, and those that are being prepared or left. Replaced, never changed."""
        self.foreign = 0
        """How many vectors came that no index took: another model made them, in a process of other settings or of old."""
        self._keywords: KeywordIndex | None = None
        self._keywords_ready = False
        self._covered: dict[str, int] = {}
        self._generation = 0
        self._everything: tuple[int, np.ndarray] = (-1, np.empty(0, np.int64))
        self._resolved: dict[tuple[Hashable, int], Any] = {}
        self._unsaved = 0
        self._saved_at = time.monotonic()
        self._maintaining = threading.Lock()
        self._closing = threading.Event()
        self._rebuilding: Future[None] | None = None

    def open(self, positions: Mapping[str, int]) -> None:
        """Load what is whole and not ahead of the table, whose positions ("topic/partition" -> next offset) these are.

        Returns in time proportional to what is stored (about half a second per 100,000 vectors); the rest is built in
        the background. Must return before the first `apply`.
        """
        self._covered = dict(positions)
        cursor = self._connect()
        self.late.load(cursor, self.model)
        if self.model is not None:
            self._spaces = {_key(self.model): load_vectors(cursor, self._directory / "vectors", self.model, positions)}
        keywords = load_keywords(cursor, self._directory / "keywords", positions, self.late.passages)
        release_buffers(cursor)
        self._keywords, self._keywords_ready = (KeywordIndex(self._directory / "keywords"), False) if keywords is None else (keywords, True)
        cursor.close()
        if not self._keywords_ready or self.unlinked > SAVE_ROWS:
            thread = ThreadPoolExecutor(1, thread_name_prefix="rebuild-indexes")
            self._rebuilding = thread.submit(self._rebuild)
            thread.shutdown(wait=False)

    @property
    def _vectors(self) -> VectorIndex | None:
        return self._spaces.get(_key(self.model)) if self.model is not None else None

    def prepare(self, model: VectorModel) -> int:
        """Hold another model's vectors as well, so that `switch` takes no time; the number held. Runs for a second per
        100,000 vectors on a thread of the caller's; what is applied meanwhile is in it."""
        if _key(model) not in self._spaces:
            index = VectorIndex(model)
            self._spaces = self._spaces | {_key(model): index}  # before the table is read: nothing falls between
            cursor = self._connect()
            catch_up_vectors(cursor, index)
            cursor.close()
            give_back()
        return len(self._spaces[_key(model)])

    def switch(self, model: VectorModel) -> None:
        """From now on this model's vectors answer. The former's stay until `forget`, for searches that are on their way."""
        self.prepare(model)
        late = LateIndex()
        cursor = self._connect()
        late.load(cursor, model)
        cursor.close()
        with self._maintaining:
            self.model, self.late = model, late
            self._unsaved += 1
            self._generation += 1

    def forget(self) -> None:
        """Hold the vectors that answer, and no others."""
        live = self._vectors
        self._spaces = {_key(self.model): live} if self.model is not None and live is not None else {}
        give_back()

    @property
    def unlinked(self) -> int:
        """Vectors that exact search finds and the graph does not yet."""
        return self._vectors.unlinked if self._vectors is not None else 0

    def _rebuild(self) -> None:
        """Runs in its own thread. Rows that are applied meanwhile come through `apply`, so that nothing is missed."""
        if not self._keywords_ready:
            cursor = self._connect()
            catch_up_keywords(cursor, self._index_of_keywords(), self.late.passages, self._closing.is_set)
            cursor.close()
            self._keywords_ready = not self._closing.is_set()
        while self._vectors is not None and not self._closing.is_set() and self._vectors.link():
            pass
        if not self._closing.is_set():
            self.save()
            give_back()

    def _index_of_keywords(self) -> KeywordIndex:
        if self._keywords is None:
            raise RuntimeError("open() has not been called")
        return self._keywords

    def apply(
        self,
        documents: Sequence[DocumentEntry | tuple[int, str, str]],
        vectors: Sequence[VectorEntry | tuple[int, np.ndarray]],
        covered: Mapping[str, int] | None = None,
    ) -> None:
        """Make committed rows findable. A vector enters the index of its space and model, when there is one and it fits.

        (label, namespace, text) is a document that stands alone, (label, vector) a vector of the model that answers.
        `covered` are the positions that the commit reached.
        """
        if documents:
            entries = list(entries_of(documents))
            self.late.apply_documents(entries)
            self._index_of_keywords().add(with_passages(entries, self.late.passages))
        given = [VectorEntry(*vector) for vector in vectors]
        for index in self._spaces.values():
            own = [entry for entry in given if self._is_of(entry, index.model)]
            if own:
                if index is self._vectors:
                    self.late.apply_vectors(own)
                index.add([entry.label for entry in own], np.stack([entry.vector for entry in own]))
        if given and self.model is not None:
            self.foreign += sum(not any(self._is_of(entry, index.model) for index in self._spaces.values()) for entry in given)
        if covered:
            self._covered |= covered
        self._unsaved += len(documents) + len(vectors)
        if documents or vectors or covered is None or not all(at.startswith(_OF_NO_FILTER) for at in covered):
            self._generation += 1

    def _is_of(self, entry: VectorEntry, model: VectorModel) -> bool:
        made_by = (entry.space, entry.model_id) if entry.space is not None else _key(self.model) if self.model is not None else None
        return made_by == _key(model) and len(entry.vector) == model.dim

    def remove(self, labels: Sequence[int]) -> None:
        """Labels that are not found any more. The files forget them at the next `save`."""
        with self._maintaining:
            gone = self.late.remove(labels)
            for index in self._spaces.values():
                index.remove(gone)
            self._index_of_keywords().remove(gone)
            self._unsaved += len(labels)
            self._generation += 1

    def maintain(self) -> None:
        """Commit the keyword overlay, link vectors, save now and then. Call every second, from one thread, off the
        waited path. Raises what stopped a rebuild."""
        if self._rebuilding is not None and self._rebuilding.done():
            self._rebuilding.result()
        with self._maintaining:
            self._index_of_keywords().commit()
            if self._vectors is not None and not self._is_rebuilding():
                until = time.monotonic() + LINK_S
                while self._vectors.link(64) and time.monotonic() < until:
                    pass
        due = self._unsaved >= SAVE_ROWS or (self._unsaved > 0 and time.monotonic() - self._saved_at >= SAVE_S)
        if due and not self._is_rebuilding():
            self.save()

    def save(self, covered: Mapping[str, int] | None = None) -> None:
        """Seal both indexes with what they cover: `covered`, or what `open` and `apply` were told last."""
        covers = dict(self._covered if covered is None else covered)  # before saving: an index may hold more, never less
        with self._maintaining:
            self._unsaved = 0
            if self._keywords_ready:
                self._index_of_keywords().save(covers)
            if self._vectors is not None:
                self._vectors.save(self._directory / "vectors", covers)
            self._saved_at = time.monotonic()

    def close(self, *, save: bool = True) -> None:
        """Stop the background work and, unless told otherwise, save. Bounded; what is not saved is caught up at `open`."""
        self._closing.set()
        self.wait_ready(CLOSE_S)
        if save and self._unsaved and self._keywords is not None:
            self.save()
        if self._keywords is not None:
            self._keywords.close()

    def _is_rebuilding(self) -> bool:
        return self._rebuilding is not None and not self._rebuilding.done()

    def wait_ready(self, timeout_s: float) -> bool:
        """Whether no rebuild is going on (any more) before the time is up."""
        if self._rebuilding is not None:
            wait([self._rebuilding], timeout_s)
        return not self._is_rebuilding()

    def nearest_of(self, vector: np.ndarray, k: int, groups: Sequence[np.ndarray]) -> list[Matches]:
        """Of each group of labels (sorted, int64) the k nearest to a unit vector, as (label, cosine), best first."""
        return self._vectors.search_groups(vector, k, groups) if self._vectors is not None else [[] for _ in groups]

    def state(self) -> dict[str, Any]:
        """For `status`: what each index is, how much it holds, what it covers."""
        keyword: dict[str, Any] = {"state": "ready" if self._keywords_ready else "rebuilding"}
        if self._keywords is not None:
            keyword |= {"count": len(self._keywords) - len(self.late.passages), "uncommitted": self._keywords.waiting}
        vector: dict[str, Any] = {"state": "none"}
        if self._vectors is not None and self.model is not None:
            state: Literal["rebuilding", "ready"] = "rebuilding" if self._is_rebuilding() and self.unlinked else "ready"
            vector = {"state": state, "model": self.model.model_id, "space": self.model.space}
            vector |= {"count": len(self.labels_of_vectors()), "unlinked": self.unlinked}
        late = {"texts": len(self.late.tokens), "passages": len(self.late.passages), "bytes": self.late.tokens.bytes}
        return {"keyword": keyword, "vector": vector, "late": late, "covered": dict(self._covered), "unsaved": self._unsaved}

    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Every document's label in the keyword and in the vector index, sorted: to be compared with the tables."""
        return np.setdiff1d(self._index_of_keywords().labels(), self.late.passages.labels()), self.labels_of_vectors()

    def labels_of_vectors(self) -> np.ndarray:
        """The documents that are embedded, sorted."""
        vectors = self._vectors.labels() if self._vectors is not None else np.empty(0, np.int64)
        return np.setdiff1d(vectors, self.late.passages.labels(), assume_unique=True)

    def nearest(
        self, cursor: duckdb.DuckDBPyConnection, vector: np.ndarray, k: int, filter: Filter | None = None, *, space: str | None = None
    ) -> Matches:
        """The k records nearest to a unit vector of `space`, as (label, cosine), best first; of all namespaces without a filter."""
        return self.vector_side(vector, k, self.allowed(cursor, filter) if filter is not None else None, space)[0]

    def _index_of(self, space: str | None) -> VectorIndex | None:
        """The index in which a vector of this space (None: the one that answers) may be looked for."""
        if space is None:
            return self._vectors
        return next((index for index in self._spaces.values() if index.model.space == space), None)

    def cosines(self, vector: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The cosine of each of the (n,) labels to a unit vector; NaN for one without a vector of this engine's model."""
        if self._vectors is None:
            return np.full(len(labels), np.nan, np.float32)
        return self._vectors.cosines(vector, labels)

    def within(self, vector: np.ndarray, least: float, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every one of the (n,) sorted labels whose cosine is at least this, and the cosines; in no order."""
        if self._vectors is None or len(allowed) == 0:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        return self._vectors.within(vector, least, allowed)

    def words(self, cursor: duckdb.DuckDBPyConnection, text: str, namespace: str, k: int, allowed: np.ndarray) -> Scores:
        """The k best by keywords among the (n,) sorted labels, as (label, BM25), best first. Every word is an alternative."""
        if len(allowed) == 0:
            return []
        if not self._keywords_ready:
            scanned = scan_documents(cursor, text, Filter(namespace), len(allowed))
            inside = set(allowed.tolist())
            return [match for match in scanned if match[0] in inside][:k]
        return self._index_of_keywords().search(text, namespace, k, allowed)

    def count_matches(
        self, cursor: duckdb.DuckDBPyConnection, text: str, namespace: str, allowed: np.ndarray, near: np.ndarray, others: np.ndarray
    ) -> int:
        """How many of the (n,) sorted labels hold a word of the text or are among `near`, which are some of them.

        `others` are the namespace's other labels, in any order.
        """
        if not self._keywords_ready:
            said = self.words(cursor, text, namespace, len(allowed), allowed)
            return len(np.union1d(near, np.array([label for label, _ in said], np.int64)))
        index = self._index_of_keywords()
        holding = index.count(text, namespace, allowed, others)
        return holding + len(near) - index.count(text, namespace, near)

    def said(self, cursor: duckdb.DuckDBPyConnection, text: str, k: int, filter: Filter) -> Scores:
        """The k records that say the words of a text as they are spelled, as (label, BM25), best first: no language's rules."""
        return self.keyword_side(cursor, text, filter, k, field=WORDS)[0]

    def allowed(self, cursor: duckdb.DuckDBPyConnection, filter: Filter) -> np.ndarray | None:
        """The filter's labels, remembered until something is applied: they are the dearest part of a search."""
        return self.remembered(filter, lambda: resolve(cursor, filter))

    def remembered(self, asked: Hashable, find: Callable[[], Found]) -> Found:
        """What `find` gives, remembered under what was asked until something is applied."""
        key = (asked, self._generation)  # read before asking: what is committed meanwhile belongs to the next one
        known = self._resolved  # replaced, never changed: readers share it
        if key not in known:
            current = [(old, found) for old, found in known.items() if old[1] == key[1]]
            known = self._resolved = dict([*current[1 - RESOLVED_FILTERS :], (key, find())])
        return cast(Found, known[key])

    def search(
        self,
        cursor: duckdb.DuckDBPyConnection,
        text: str,
        vector: np.ndarray | None,
        filter: Filter,
        limit: int,
        *,
        min_cosine: float | None = None,
        pool: int | None = None,
        weights: Mapping[str, float] | None = None,
        tokens: Tokens | None = None,
        space: str | None = None,
        sessions: int = 0,
    ) -> SearchResult:
        """Hybrid search: filter first, then every side.

        `vector` and `tokens` are those of `text`; without a vector the search is by keywords and graph only. With tokens
        the result is ranked as `ranking` says; without them, or with `weights` (of the sides vector, keyword and graph),
        by reciprocal-rank fusion (talos 3.6). `space` is the one that both are of, when the live one may have changed
        since. `pool`: candidates a side, and all records of the `sessions` sessions that are met first among them; `min_cosine`: below it the vector side finds nothing, 0.30 for a fusion of
        ranks, 0.15 where the cosine itself is what counts.
        """
        size = pool or max(3 * limit, MIN_POOL)
        is_live = space is None or (self.model is not None and space == self.model.space)
        is_ranked = is_live and tokens is not None and vector is not None and weights is None and len(self.late.tokens) > 0
        allowed = self.allowed(cursor, filter)
        near: Matches = []
        fits: dict[int, int] = {}
        if vector is not None:
            near, fits = self.vector_side(vector, size, allowed, space)
            floor = min_cosine if min_cosine is not None else MIN_COSINE_RANKED if is_ranked else MIN_COSINE
            near = [match for match in near if match[1] >= floor]
        said, spoken = self.keyword_side(cursor, text, filter, KEYWORD_DEPTH if is_ranked else size)
        asked = Asked(cursor, text, vector, tokens, predicate(filter), filter, size, fits | spoken)
        if is_ranked:
            return self._ranked(asked, near, said, limit, sessions)
        return self._fused(asked, near, said, limit, WEIGHTS if weights is None else weights)

    def vector_side(
        self, vector: np.ndarray, k: int, allowed: np.ndarray | None, space: str | None = None
    ) -> tuple[Matches, dict[int, int]]:
        """The vector side: the k nearest documents, by their best passages; and document -> label of what fitted best."""
        index = self._index_of(space)
        if index is None:
            return [], {}
        passages = self.late.passages
        if not len(passages):
            return index.search(vector, k, allowed), {}
        found = passages.folded(index.search(vector, PASSAGES_EACH * k, passages.widened(allowed)))
        return [(label, cosine) for label, (cosine, _) in found.items()][:k], {label: part for label, (_, part) in found.items()}

    def keyword_side(
        self, cursor: duckdb.DuckDBPyConnection, text: str, filter: Filter, k: int, *, field: str = TERMS
    ) -> tuple[Scores, dict[int, int]]:
        """The keyword side: the k best documents by the whole text or their best passages; and label of what fitted best."""
        allowed = self.allowed(cursor, filter)
        if not self._keywords_ready:
            return scan_documents(cursor, text, filter, k, field=field), {}
        passages = self.late.passages
        more = PASSAGES_EACH * k if len(passages) else k
        found = passages.folded(self._index_of_keywords().search(text, filter.namespace, more, passages.widened(allowed), field=field))
        return [(label, score) for label, (score, _) in found.items()][:k], {label: part for label, (_, part) in found.items()}

    def keyword_holders(self, cursor: duckdb.DuckDBPyConnection, text: str, filter: Filter, k: int) -> dict[str, set[int]]:
        """For each word of the text the documents that hold it, at most k; nothing while the index is being built."""
        if not self._keywords_ready:
            return {}
        passages = self.late.passages
        allowed = passages.widened(self.allowed(cursor, filter))
        held = self._index_of_keywords().holders(text, filter.namespace, k, allowed)
        return {term: {passages.owner(label) for label in labels} for term, labels in held.items()}

    def _fused(self, asked: Asked, near: Matches, said: Scores, limit: int, weights: Mapping[str, float]) -> SearchResult:
        """Reciprocal-rank fusion of the sides vector, keyword and graph."""
        found = read_hits(asked.cursor, asked.condition, "label", [label for label, _ in (*near, *said)])
        sides: dict[str, Sequence[tuple[int, float]]] = {
            "vector": [match for match in near if match[0] in found],
            "keyword": [match for match in said if match[0] in found],
        }
        sides["graph"] = self._search_graph(asked, sides, found)[: asked.size]
        scores = fuse({side: [label for label, _ in matches] for side, matches in sides.items()}, weights)
        parts: dict[int, dict[str, float]] = {label: {} for label in scores}
        for side, matches in sides.items():
            for rank, (label, _) in enumerate(matches, 1):
                parts[label][side] = (K + 1) * weights.get(side, 0.0) / (K + rank)
        return self._answer(asked, found, sides, scores, parts, limit)

    def _ranked(self, asked: Asked, near: Matches, said: Scores, limit: int, sessions: int) -> SearchResult:
        """Candidates of every side and their neighbours in their sessions, by the sum of absolute scores."""
        assert asked.tokens is not None and asked.vector is not None
        late = self.late
        chosen = dict.fromkeys(label for label, _ in (*near, *said[: asked.size]))
        around = late.around(label for label, _ in (*near[:EXPANDED], *said[:EXPANDED]))
        chosen |= dict.fromkeys(other for others in around.values() for other, _ in others)
        dates = named_dates(asked.text)
        dated = self._nearest_at(asked, dates)
        chosen |= dict.fromkeys(dated)
        if sessions:
            best = (label for pair in zip_longest(near, said) for label, _ in filter(None, pair))
            chosen |= dict.fromkeys(late.timelines.together([*dated, *best], sessions))
        found = read_hits(asked.cursor, asked.condition, "label", list(chosen), with_text=False)
        sides: dict[str, Sequence[tuple[int, float]]] = {
            "vector": [match for match in near if match[0] in found],
            "keyword": [match for match in said[: asked.size] if match[0] in found],
        }
        sides["graph"] = self._search_graph(asked, sides, found)[: asked.size]
        weights = late.tokens.weights(asked.tokens)
        matches = late.matches(asked.tokens, weights, found)
        ceiling = self._index_of_keywords().ceiling(asked.text) or 1.0
        seeds = [label for label in _seeds(sides) if label in found]
        evidence = Evidence(
            matches={label: row for label, (row, _) in matches.items()},
            weights=weights,
            keyword={label: score / ceiling for label, score in said if label in found},
            vector=self._cosines(asked.vector, found),
            background=self._background(asked.cursor, asked.vector, asked.filter),
            lengths={label: length for label in found if (length := late.length(label))},
            near={label: [one for one in others if one[0] in found] for label, others in late.around(found).items()},
            asking={label: share for label in found if (share := late.asking.share(label))},
            parents={label: seeds[int(place)] for label, place in sides["graph"] if int(place) < len(seeds)},
        )
        if dates:
            evidence.dates = {label: close for label, hit in found.items() if (close := nearness(dates, hit.created_at.date()))}
            sides["date"] = sorted(evidence.dates.items(), key=_by_score)
        asked.fits.update({label: part for label, (_, part) in matches.items()})
        lates = late_scores(evidence)
        parts = score_parts(evidence, found, lates)
        sides["late"] = sorted(lates.items(), key=_by_score)
        scores = {label: sum(given.values()) for label, given in parts.items()}
        return self._answer(asked, found, sides, scores, parts, limit)

    def _nearest_at(self, asked: Asked, dates: Sequence[NamedDate]) -> list[int]:
        """Of what was recorded at a date with its year, the nearest."""
        assert asked.vector is not None
        found: list[int] = []
        for first, last in filter(None, (named.bounds() for named in dates)):
            start, end = max(first, asked.filter.created_from or first), min(last, asked.filter.created_before or last)
            if start < end:
                allowed = self.allowed(asked.cursor, replace(asked.filter, created_from=start, created_before=end))
                found += [label for label, _ in self.vector_side(asked.vector, DATED, allowed)[0]]
        return found

    def _background(self, cursor: duckdb.DuckDBPyConnection, vector: np.ndarray, filter: Filter) -> tuple[float, float]:
        """Mean and deviation of the cosines of what the filter leaves."""
        allowed = self.allowed(cursor, filter)
        if allowed is None:
            if self._everything[0] != self._generation:
                self._everything = self._generation, self.labels_of_vectors()
            allowed = self._everything[1]
        return background(self.cosines, vector, allowed)

    def _cosines(self, vector: np.ndarray, labels: Iterable[int]) -> dict[int, float]:
        """The cosine of each document; of a long one the mean of its whole vector's and its best passage's."""
        wanted = list(labels)
        if self._vectors is None or not wanted:
            return {}
        parts = {label: self.late.passages.parts(label) for label in wanted}
        every = np.sort(np.array([*wanted, *(part for some in parts.values() for part in some)], np.int64))
        known = dict(self._vectors.search(vector, len(every), every))
        whole = {label: known[label] for label in wanted if label in known}
        best = {
            label: max(known[part] for part in some if part in known)
            for label, some in parts.items()
            if any(part in known for part in some)
        }
        return {label: (cosine + best.get(label, cosine)) / 2 for label, cosine in whole.items()}

    def _answer(
        self,
        asked: Asked,
        found: Mapping[int, Hit],
        sides: Mapping[str, Sequence[tuple[int, float]]],
        scores: Mapping[int, float],
        parts: Mapping[int, Mapping[str, float]],
        limit: int,
    ) -> SearchResult:
        places = {side: {label: (rank, raw) for rank, (label, raw) in enumerate(matches, 1)} for side, matches in sides.items()}
        best = ordered(scores, {label: (found[label].created_at, found[label].record_id) for label in scores})[:limit]
        texts = read_texts(asked.cursor, [label for label in best if not found[label].text])
        hits = [
            replace(
                found[label],
                text=texts.get(label, found[label].text),
                score=scores[label],
                sides={side: ranked[label] for side, ranked in places.items() if label in ranked},
                parts=parts[label],
                passage=self.late.passages.passage(asked.fits.get(label, label)),
            )
            for label in best
        ]
        return SearchResult(hits, len(scores), self._degraded(asked.vector))

    def _search_graph(
        self, asked: Asked, sides: Mapping[str, Sequence[tuple[int, float]]], found: dict[int, Hit]
    ) -> list[tuple[int, float]]:
        """Neighbours of the best of each side, by their best parent; adds what it reads to `found`."""
        parents = _seeds(sides)
        places = find_neighbours(asked.cursor, asked.filter.namespace, [found[label].record_id for label in parents])
        read = read_hits(asked.cursor, asked.condition, "record_id", list(places))
        found.update(read)
        raw = {label: float(-places[hit.record_id]) for label, hit in read.items()}
        return [(label, -raw[label]) for label in ordered(raw, {label: (hit.created_at, hit.record_id) for label, hit in read.items()})]

    def _degraded(self, vector: np.ndarray | None) -> str | None:
        if self.model is None:
            return "No embedder is configured: results come from keywords and relations only."
        if vector is None:
            return "The embedder did not answer: results come from keywords and relations only."
        return None


def _by_score(match: tuple[int, float]) -> tuple[float, int]:
    return -match[1], match[0]


def _key(model: VectorModel) -> tuple[str, str]:
    return model.space, model.model_id


def _seeds(sides: Mapping[str, Sequence[tuple[int, float]]]) -> list[int]:
    """The best of each side, best first: by the better of their ranks."""
    ranks: dict[int, int] = {}
    for matches in sides.values():
        for rank, (label, _) in enumerate(matches[:SEEDS]):
            ranks[label] = min(rank, ranks.get(label, SEEDS))
    return sorted(ranks, key=lambda label: ranks[label])

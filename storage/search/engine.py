"""The search engine: keeps the indexes equal to the tables, and answers a query from all sides.

The single writer calls `apply` after each commit: from then on the rows are found. `maintain` (once a second, off
any path that somebody waits for) commits, links and saves. Whatever is missing or wrong on disk at `open` is built
again from the tables in the background, while exact search answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np

from storage.memory import give_back
from storage.search.fusion import WEIGHTS, fuse, ordered
from storage.search.keyword import KeywordIndex, Scores
from storage.search.neighbours import find_neighbours
from storage.search.planner import Filter, Predicate, predicate, resolve
from storage.search.scan import scan_documents
from storage.search.table import catch_up_keywords, catch_up_vectors, load_keywords, load_vectors
from storage.search.vector import Matches, VectorIndex, VectorModel
from streams.topics import INVOCATIONS, TELEMETRY

MIN_POOL = 50
SEEDS = 5
MIN_COSINE = 0.30
SAVE_ROWS = 20_000
SAVE_S = 300.0
LINK_S = 0.2
"""How long one `maintain` links vectors: a bounded share of a core while importing."""
CLOSE_S = 30.0
RESOLVED_FILTERS = 8
_OF_NO_FILTER = (TELEMETRY.name, INVOCATIONS.name)
"""What comes from these topics alone changes neither documents nor merges: a search's own record does not make the next one slower."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found. `sides`: side -> (rank from 1, raw score: cosine, BM25, or place of its best parent)."""

    label: int
    record_id: str
    kind: str
    toolset: str
    session_id: str | None
    domain: str | None
    text: str
    created_at: datetime
    score: float = 0.0
    sides: Mapping[str, tuple[int, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`total`: matches before the limit, of the pools of all sides. `degraded`: what was missing, a sentence, or None."""

    hits: list[Hit]
    total: int
    degraded: str | None = None


class SearchIndexes:
    """The indexes of one data directory. `model` is None when the node runs without an embedder.

    `connect` gives a new DuckDB cursor; each is used by one thread. `apply` is called by one thread only.
    """

    def __init__(self, directory: Path, connect: Callable[[], duckdb.DuckDBPyConnection], model: VectorModel | None) -> None:
        self.model = model
        self._directory = directory
        self._connect = connect
        self._spaces: dict[tuple[str, str], VectorIndex] = {}
        """By (space, model): the one that answers, and those that are being prepared or left. Replaced, never changed."""
        self._keywords: KeywordIndex | None = None
        self._keywords_ready = False
        self._covered: dict[str, int] = {}
        self._generation = 0
        self._resolved: dict[tuple[Filter, int], np.ndarray | None] = {}
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
        if self.model is not None:
            self._spaces = {_key(self.model): load_vectors(cursor, self._directory / "vectors", self.model, positions)}
        keywords = load_keywords(cursor, self._directory / "keywords", positions)
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
        with self._maintaining:
            self.model = model
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
            catch_up_keywords(cursor, self._index_of_keywords(), self._closing.is_set)
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
        documents: Sequence[tuple[int, str, str]],
        vectors: Sequence[tuple[int, tuple[str, str], np.ndarray]],
        covered: Mapping[str, int] | None = None,
    ) -> None:
        """Make committed rows findable: (label, namespace, text), and (label, (space, model), unit vector).

        `covered` are the positions that the commit reached. Vectors of other models, or of another length than their
        model's, enter no index.
        """
        if documents:
            self._index_of_keywords().add(documents)
        for key, index in self._spaces.items():
            fitting = [(label, vector) for label, made_by, vector in vectors if made_by == key and len(vector) == index.model.dim]
            if fitting:
                index.add([label for label, _ in fitting], np.stack([vector for _, vector in fitting]))
        if covered:
            self._covered |= covered
        self._unsaved += len(documents) + len(vectors)
        if documents or vectors or covered is None or not all(at.startswith(_OF_NO_FILTER) for at in covered):
            self._generation += 1

    def remove(self, labels: Sequence[int]) -> None:
        """Labels that are not found any more. The files forget them at the next `save`."""
        with self._maintaining:
            for index in self._spaces.values():
                index.remove(labels)
            self._index_of_keywords().remove(labels)
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

    def state(self) -> dict[str, Any]:
        """For `status`: what each index is, how much it holds, what it covers."""
        keyword: dict[str, Any] = {"state": "ready" if self._keywords_ready else "rebuilding"}
        if self._keywords is not None:
            keyword |= {"count": len(self._keywords), "uncommitted": self._keywords.waiting}
        vector: dict[str, Any] = {"state": "none"}
        if self._vectors is not None and self.model is not None:
            state: Literal["rebuilding", "ready"] = "rebuilding" if self._is_rebuilding() and self.unlinked else "ready"
            vector = {"state": state, "model": self.model.model_id, "space": self.model.space}
            vector |= {"count": len(self._vectors), "unlinked": self.unlinked}
        return {"keyword": keyword, "vector": vector, "covered": dict(self._covered), "unsaved": self._unsaved}

    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Every label of the keyword and of the vector index, sorted: to be compared with the tables."""
        vectors = self._vectors.labels() if self._vectors is not None else np.empty(0, np.int64)
        return self._index_of_keywords().labels(), vectors

    def nearest(
        self, cursor: duckdb.DuckDBPyConnection, vector: np.ndarray, k: int, filter: Filter | None = None, *, space: str | None = None
    ) -> Matches:
        """The k records nearest to a unit vector of `space`, as (label, cosine), best first; of all namespaces without a filter."""
        index = self._index_of(space)
        return index.search(vector, k, self._resolve(cursor, filter) if filter is not None else None) if index else []

    def _index_of(self, space: str | None) -> VectorIndex | None:
        """The index in which a vector of this space (None: the one that answers) may be looked for."""
        if space is None:
            return self._vectors
        return next((index for index in self._spaces.values() if index.model.space == space), None)

    def _resolve(self, cursor: duckdb.DuckDBPyConnection, filter: Filter) -> np.ndarray | None:
        """The filter's labels, remembered until something is applied: they are the dearest part of a search."""
        key = (filter, self._generation)  # read before asking: what is committed meanwhile belongs to the next one
        known = self._resolved  # replaced, never changed: readers share it
        if key not in known:
            current = [(old, labels) for old, labels in known.items() if old[1] == key[1]]
            known = self._resolved = dict([*current[1 - RESOLVED_FILTERS :], (key, resolve(cursor, filter))])
        return known[key]

    def search(
        self,
        cursor: duckdb.DuckDBPyConnection,
        text: str,
        vector: np.ndarray | None,
        filter: Filter,
        limit: int,
        *,
        min_cosine: float = MIN_COSINE,
        pool: int | None = None,
        weights: Mapping[str, float] = WEIGHTS,
        space: str | None = None,
    ) -> SearchResult:
        """Hybrid search (talos 3.6): filter first; vector, keyword and graph sides; reciprocal-rank fusion.

        `vector` is the unit vector of `text`, None to search by keywords and graph only; `space` is the one that it is
        of, when the live one may have changed since. `pool`: candidates a side.
        """
        size = pool or max(3 * limit, MIN_POOL)
        allowed = self._resolve(cursor, filter)
        near: Matches = []
        index = self._index_of(space)
        if vector is not None and index is not None:
            near = [match for match in index.search(vector, size, allowed) if match[1] >= min_cosine]
        said = self._search_keywords(cursor, text, filter, size, allowed)
        condition = predicate(filter)
        found = _read(cursor, condition, "label", [label for label, _ in (*near, *said)])
        sides: dict[str, list[tuple[int, float]]] = {
            "vector": [match for match in near if match[0] in found],
            "keyword": [match for match in said if match[0] in found],
        }
        sides["graph"] = self._search_graph(cursor, filter.namespace, condition, sides, found)[:size]
        scores = fuse({side: [label for label, _ in matches] for side, matches in sides.items()}, weights)
        places = {side: {label: (rank, raw) for rank, (label, raw) in enumerate(matches, 1)} for side, matches in sides.items()}
        best = ordered(scores, {label: (found[label].created_at, found[label].record_id) for label in scores})[:limit]
        hits = [_scored(found[label], scores[label], places) for label in best]
        return SearchResult(hits, len(scores), self._degraded(vector))

    def _search_keywords(
        self, cursor: duckdb.DuckDBPyConnection, text: str, filter: Filter, size: int, allowed: np.ndarray | None
    ) -> Scores:
        if not self._keywords_ready:
            return scan_documents(cursor, text, filter, size)
        return self._index_of_keywords().search(text, filter.namespace, size, allowed)

    def _search_graph(
        self,
        cursor: duckdb.DuckDBPyConnection,
        namespace: str,
        condition: Predicate,
        sides: Mapping[str, list[tuple[int, float]]],
        found: dict[int, Hit],
    ) -> list[tuple[int, float]]:
        """Neighbours of the best of each side, by their best parent; adds what it reads to `found`."""
        parents = _seeds(sides)
        places = find_neighbours(cursor, namespace, [found[label].record_id for label in parents])
        read = _read(cursor, condition, "record_id", list(places))
        found.update(read)
        raw = {label: float(-places[hit.record_id]) for label, hit in read.items()}
        return [(label, -raw[label]) for label in ordered(raw, {label: (hit.created_at, hit.record_id) for label, hit in read.items()})]

    def _degraded(self, vector: np.ndarray | None) -> str | None:
        if self.model is None:
            return "No embedder is configured: results come from keywords and relations only."
        if vector is None:
            return "The embedder did not answer: results come from keywords and relations only."
        return None


def _key(model: VectorModel) -> tuple[str, str]:
    return model.space, model.model_id


def _seeds(sides: Mapping[str, list[tuple[int, float]]]) -> list[int]:
    """The best of each side, best first: by the better of their ranks."""
    ranks: dict[int, int] = {}
    for matches in sides.values():
        for rank, (label, _) in enumerate(matches[:SEEDS]):
            ranks[label] = min(rank, ranks.get(label, SEEDS))
    return sorted(ranks, key=lambda label: ranks[label])


def _read(cursor: duckdb.DuckDBPyConnection, condition: Predicate, column: str, values: Sequence[int] | Sequence[str]) -> dict[int, Hit]:
    """The documents with these labels or record ids that meet the condition, by label."""
    if not values:
        return {}
    rows = cursor.execute(
        "SELECT d.label, d.record_id, d.kind, d.toolset, d.session_id, d.domain, d.text, d.created_at FROM documents d "
        f"WHERE d.{column} IN (SELECT unnest(?)) AND {condition.sql}",
        [list(values), *condition.parameters],
    ).fetchall()
    return {row[0]: Hit(*row) for row in rows}


def _scored(hit: Hit, score: float, places: Mapping[str, Mapping[int, tuple[int, float]]]) -> Hit:
    sides = {side: ranked[hit.label] for side, ranked in places.items() if hit.label in ranked}
    return Hit(
        hit.label, hit.record_id, hit.kind, hit.toolset, hit.session_id, hit.domain, hit.text, hit.created_at, score=score, sides=sides
    )

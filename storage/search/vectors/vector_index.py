"""Nearest vectors of one model: exact over all rows, HNSW where that is quicker.

Every row is compared as int8 in memory, and what may be among the nearest is compared again as it is, from a file.
New vectors become rows at once and are found by exact search; `link` puts them into the HNSW graph later, off any
path that somebody waits for. A graph that is missing, damaged or foreign is therefore no special case: nothing is
linked yet. One thread adds, one thread links and saves, any number search.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from storage.search.files.row_file import RowFile
from storage.search.files.sealed import seal
from storage.search.records.label_map import ABSENT, REMOVED, LabelMap
from storage.search.records.matches import Matches
from storage.search.vectors.exact_scan import close_pairs, error_of, largest_found, products, quantise_rows
from storage.search.vectors.hnsw_graph import (
    EF_SEARCH,
    MIN_CAPACITY,
    enlarged,
    graph_facts,
    load_graph,
    new_graph,
    query_graph,
)
from storage.search.vectors.neighbour_cache import NeighbourCache, Neighbourhood
from storage.search.vectors.vector_model import VectorModel

if TYPE_CHECKING:
    import hnswlib

EXACT_LABELS = 20_000
"""Up to this many allowed rows are gathered and compared: quicker than the graph under such a filter."""
EXACT_ROWS = 150_000
"""Up to this many rows of a namespace are compared one by one, which finds everything; a graph is asked for more."""
GATHERED_SHARE = 8
"""Gathering a row costs as much as scanning eight: where more than one in eight is allowed, all are scanned."""
LINK_CHUNK = 256
_SAMPLE = 64


class VectorIndex:
    """Labels (63-bit integers) with unit vectors of `model.dim` numbers."""

    def __init__(self, model: VectorModel, *, capacity: int = MIN_CAPACITY, directory: Path | None = None) -> None:
        """`directory`: where the rows' nameless file lies; by default among the system's temporary files."""
        self.model = model
        self._codes = np.empty((capacity, model.dim), np.int8)
        self._scales = np.empty(capacity, np.float32)
        self._widest = 0.0
        self._rows = RowFile(model.dim, directory)
        self._labels = np.empty(capacity, np.int64)
        self._count = 0
        self._at = LabelMap()
        self._graph: hnswlib.Index | None = None
        self._linked = 0
        self._cache = NeighbourCache()
        self._compared: tuple[tuple[bytes, int, int], np.ndarray] | None = None
        """The last query with its products with all rows: a search by views asks it twice. Replaced, never changed."""
        self._adding = threading.Lock()
        self._linking = threading.Lock()

    def __len__(self) -> int:
        return len(self._at)

    @property
    def unlinked(self) -> int:
        """Rows that the graph lacks and should have: none while exact search is the better answer."""
        return self._count - self._linked if self._count > EXACT_ROWS else 0

    def labels(self) -> np.ndarray:
        """Every label that can be found, sorted, int64."""
        return self._at.labels()

    def add(self, labels: Sequence[int] | np.ndarray, vectors: np.ndarray) -> None:
        """Make (n,) labels with (n, dim) unit rows findable at once. A label that is there already keeps its vector."""
        vectors = np.asarray(vectors, np.float32).reshape(len(labels), -1)
        if len(labels) and vectors.shape[1] != self.model.dim:
            raise ValueError(
                f"vectors of {vectors.shape[1]} numbers do not belong to {self.model.model_id} ({self.model.dim})"
            )
        with self._adding:
            new = {label: row for row, label in reversed(list(enumerate(map(int, labels)))) if label not in self._at}
            if not new:
                return
            stop = self._count + len(new)
            self._reserve(stop)
            self._put(np.arange(self._count, stop), vectors[list(new.values())])
            self._labels[self._count : stop] = list(new)
            for place, label in enumerate(new, self._count):
                self._at.add(label, place)
            self._count = stop  # last: searchers look at rows below it only

    def _put(self, places: np.ndarray, vectors: np.ndarray) -> None:
        codes, scales = quantise_rows(vectors)
        self._codes[places], self._scales[places] = codes, scales
        self._widest = max(self._widest, float(scales.max(initial=0.0)))
        self._rows.put(places, vectors)

    def _reserve(self, count: int) -> None:
        """Searchers keep the arrays they hold; they are replaced, never resized."""
        if count > len(self._codes):
            capacity, have = max(count, 2 * len(self._codes)), self._count
            codes, scales = np.empty((capacity, self.model.dim), np.int8), np.empty(capacity, np.float32)
            labels = np.empty(capacity, np.int64)
            codes[:have], scales[:have], labels[:have] = self._codes[:have], self._scales[:have], self._labels[:have]
            self._labels, self._scales, self._codes = labels, scales, codes

    def remove(self, labels: Sequence[int]) -> None:
        """Labels that are not found any more; unknown ones are ignored."""
        with self._linking, self._adding:
            for label in map(int, labels):
                row = self._at.get(label)
                if row != ABSENT:
                    self._rows.put(np.array([row]), np.zeros((1, self.model.dim), np.float32))
                    self._codes[row] = 0
                    self._labels[row] = REMOVED
                    if row < self._linked and self._graph is not None:
                        self._graph.mark_deleted(label)
            self._at.remove(labels)

    def search(self, vector: np.ndarray, k: int, allowed: np.ndarray | None = None) -> Matches:
        """The k nearest as (label, cosine), best first. `allowed`: sorted int64 labels, None for no restriction."""
        count, linked, graph = self._count, self._linked, self._graph  # count before the arrays: see _reserve
        query = np.asarray(vector, np.float32).reshape(-1)
        if query.shape != (self.model.dim,):
            raise ValueError(
                f"a vector of {query.size} numbers does not belong to {self.model.model_id} ({self.model.dim})"
            )
        if k < 1 or count == 0 or (allowed is not None and len(allowed) == 0):
            return []
        # how many may answer decides, and not how many others there are: a namespace is searched as if it were alone
        own = count if allowed is None else len(allowed)
        if allowed is not None and (
            (own <= EXACT_LABELS and count > EXACT_ROWS) or (own <= EXACT_ROWS and GATHERED_SHARE * own < count)
        ):
            places = self._at.find(allowed)
            return self._nearest(query, k, places[(places != ABSENT) & (places < count)])
        if graph is None or k > EF_SEARCH or count - linked > EXACT_ROWS or own <= EXACT_ROWS:
            return self._nearest(query, k, slice(0, count), allowed)
        linked_matches = query_graph(graph, query, min(k, linked), allowed)
        if linked_matches is None:
            return self._nearest(query, k, slice(0, count), allowed)
        fresh = self._nearest(query, k, slice(linked, count), allowed)
        # a row that was linked meanwhile is in both
        return sorted((dict(linked_matches) | dict(fresh)).items(), key=lambda match: -match[1])[:k]

    def search_groups(self, vector: np.ndarray, k: int, groups: Sequence[np.ndarray]) -> list[Matches]:
        """`search` under each of these restrictions; where they are large, all rows are compared once."""
        count, allowed = self._count, sum(map(len, groups))
        if count > EXACT_ROWS or GATHERED_SHARE * allowed < count or k < 1:
            return [self.search(vector, k, group) for group in groups]
        query = np.asarray(vector, np.float32).reshape(-1)
        rows = slice(0, count)
        rough = self._rough(query, rows)
        return [self._exact(query, k, rows, rough, group) if len(group) else [] for group in groups]

    def _nearest(
        self, query: np.ndarray, k: int, rows: slice | np.ndarray, allowed: np.ndarray | None = None
    ) -> Matches:
        """The k nearest of some rows: by their codes all that may be among them, and these compared exactly."""
        if isinstance(rows, slice):
            rough = self._rough(query, rows)
        else:
            rough = products(self._codes[rows], self._scales[rows], query)
        return self._exact(query, k, rows, rough, allowed)

    def _rough(self, query: np.ndarray, rows: slice) -> np.ndarray:
        """The products of a query with the codes of these rows; of the last query they are known."""
        key = query.tobytes(), rows.start, rows.stop
        known = self._compared
        if known is None or known[0] != key:
            known = self._compared = key, products(self._codes[rows], self._scales[rows], query)
        return known[1]

    def _exact(
        self, query: np.ndarray, k: int, rows: slice | np.ndarray, rough: np.ndarray, allowed: np.ndarray | None
    ) -> Matches:
        labels = self._labels[rows]
        close = largest_found(rough, labels, k, allowed, 2 * error_of(self._widest, query))
        places = close + rows.start if isinstance(rows, slice) else rows[close]
        exact = self._rows.read(places) @ query
        best = np.argsort(-exact, kind="stable")[:k]
        return list(zip(labels[close[best]].tolist(), exact[best].tolist(), strict=True))

    def search_many(
        self, vectors: np.ndarray, k: int, least: float, pause: Callable[[], None] = lambda: None
    ) -> list[Matches]:
        """For each of (n, dim) unit vectors the k nearest with at least this cosine, best first.

        The rows are read once for all of several, with a `pause` after each block and each query. A query that is in
        the cache is compared with the rows that came since only.
        """
        count, queries = self._count, np.asarray(vectors, np.float32)
        if count > EXACT_ROWS:
            return [[match for match in self.search(query, k) if match[1] >= least] for query in queries]
        keys = [(query.tobytes(), k, least) for query in queries]
        before = [self._cache.get(key, self._labels) for key in keys]
        neighbourhoods: dict[int, Neighbourhood] = {}
        for is_cached in (False, True):
            chosen = [number for number, cached in enumerate(before) if (cached is not None) is is_cached]
            start = min((cached.stop for cached in before if cached is not None), default=0) if is_cached else 0
            fresh = self._close(queries[chosen], start, count, k, least, pause)
            for number, new in zip(chosen, fresh, strict=True):
                cached = before[number]
                neighbourhoods[number] = new if cached is None else cached.joined(new, k)
        self._cache.put((key, neighbourhoods[number]) for number, key in enumerate(keys))
        return [
            list(zip(self._labels[neighbourhoods[n].places].tolist(), neighbourhoods[n].cosines.tolist(), strict=True))
            for n in range(len(queries))
        ]

    def _close(
        self, queries: np.ndarray, start: int, stop: int, k: int, least: float, pause: Callable[[], None]
    ) -> Iterator[Neighbourhood]:
        """For each of (n, dim) queries its k nearest of the rows `start` to `stop`, with at least this cosine."""
        if not len(queries):
            return
        error = max(error_of(self._widest, query) for query in queries)
        places, whose, rough = close_pairs(
            self._codes[start:stop], self._scales[start:stop], queries, k, least - error, 2 * error, pause
        )
        places += start
        for number, query in enumerate(queries):
            own = whose == number
            nearby = places[own]
            close = largest_found(rough[own], self._labels[nearby], k, None, 2 * error) if len(nearby) else nearby
            exact = self._rows.read(nearby[close]) @ query
            best = np.argsort(-exact, kind="stable")[:k]
            best = best[exact[best] >= least]
            yield Neighbourhood(stop, nearby[close][best], exact[best])
            pause()

    def vectors(self, labels: np.ndarray) -> dict[int, np.ndarray]:
        """Those of a few labels that have a vector, with it, as it was added."""
        places = self._at.find(labels)
        is_there = places != ABSENT
        return dict(zip(labels[is_there].tolist(), self._rows.read(places[is_there]), strict=True))

    def cosines(self, vector: np.ndarray, labels: np.ndarray, *, roughly: bool = False) -> np.ndarray:
        """The cosine of each of a few labels, NaN where a label has no vector.

        `roughly`: from the codes in memory, without a read for each row; off by `error_of` at most, .003 in 384
        dimensions, and by .0004 on average.
        """
        query = np.asarray(vector, np.float32).reshape(-1)
        places = self._at.find(labels)
        is_there = places != ABSENT
        cosines, rows = np.full(len(labels), np.nan, np.float32), places[is_there]
        if roughly:
            cosines[is_there] = products(self._codes[rows], self._scales[rows], query)
        else:
            cosines[is_there] = self._rows.read(rows) @ query
        return cosines

    def places(self, labels: np.ndarray) -> np.ndarray:
        """(n,) labels -> the (n,) rows that they are, ABSENT where a label has no vector."""
        return self._at.find(labels)

    def within(self, vector: np.ndarray, least: float, rows: np.ndarray, k: int) -> tuple[np.ndarray, Matches]:
        """(n,) whether each of these rows has at least this cosine, and the k nearest that have.

        `rows` are from `places`. The rows themselves are compared only where the codes leave it open, and for the order
        of the nearest.
        """
        query = np.asarray(vector, np.float32).reshape(-1)
        count, error = self._count, error_of(self._widest, query)
        there = np.flatnonzero((rows != ABSENT) & (rows < count))  # a row may have been placed and not counted yet
        rows, total = rows[there], len(rows)
        if GATHERED_SHARE * len(rows) < count:
            rough = products(self._codes[rows], self._scales[rows], query)
        else:
            rough = self._rough(query, slice(0, count))[rows]
        close = np.flatnonzero(rough >= least - error)
        rough, rows = rough[close], rows[close]
        is_near = rough >= least + error
        left = np.flatnonzero(~is_near)
        # a row's own scale leaves fewer open than the widest
        off = (
            rough[left] - least,
            error_of(self._scales[rows[left]], query),
        )
        is_near[left] = off[0] >= off[1]
        left = left[np.abs(off[0]) < off[1]]
        is_near[left] = self._rows.read(rows[left]) @ query >= least
        is_near &= self._labels[rows] != REMOVED
        marked = np.zeros(total, bool)
        marked[there[close[is_near]]] = True
        return marked, self._exact(query, k, rows[is_near], rough[is_near], None)

    def link(self, limit: int = LINK_CHUNK) -> int:
        """Put up to `limit` more rows into the graph, if there are enough for one; the number still unlinked.

        Call it from one thread only.
        """
        with self._linking:
            stop = min(self._count, self._linked + limit) if self._count > EXACT_ROWS else self._linked
            if stop > self._linked:
                self._grow(stop)
                graph = self._graph
                assert graph is not None
                labels = self._labels[self._linked : stop]
                kept = labels != REMOVED
                if kept.any():
                    graph.add_items(
                        self._rows.read(np.arange(self._linked, stop)[kept]),
                        labels[kept].astype(np.uint64),
                        num_threads=1,
                    )
                self._linked = stop
            return self.unlinked

    def _grow(self, count: int) -> None:
        """Have a graph with room for this many rows; a larger copy takes the place of a full one."""
        graph = self._graph
        if graph is None:
            self._graph = new_graph(self.model.dim, max(2 * count, len(self._codes)))
        elif graph.get_max_elements() < count:
            self._graph = enlarged(graph, self.model.dim, 2 * count)

    def save(self, directory: Path, covered: Mapping[str, int]) -> None:
        """Seal the graph (the rows are the table's). `covered`: next offset by "topic/partition"."""
        with self._linking:
            graph = self._graph
            if graph is None:
                return
            linked = self._labels[: self._linked]
            facts = graph_facts(self.model) | {
                "count": int((linked != REMOVED).sum()),
                "elements": graph.get_current_count(),
                "covered": dict(covered),
            }
            seal(directory, {"graph": lambda path: graph.save_index(str(path))}, facts)

    @classmethod
    def load(
        cls,
        directory: Path | None,
        model: VectorModel,
        labels: np.ndarray,
        chunks: Iterable[tuple[np.ndarray, np.ndarray]],
        rows_in: Path | None = None,
    ) -> VectorIndex:
        """An index of the table's (n,) labels, whose rows come as chunks (labels, vectors).

        Rows are linked as far as a whole and matching graph is in `directory`; the others wait for `link`. A graph that
        is damaged, of another model, or that holds what the table does not, is left aside: everything waits. hnswlib
        never sees a file that is not exactly what was saved. `rows_in`: see `__init__`.
        """
        index = cls(model, capacity=max(MIN_CAPACITY, len(labels) + len(labels) // 4), directory=rows_in)
        graph, inside = (None, None) if directory is None else load_graph(directory, model, labels)
        order = np.arange(len(labels)) if inside is None else np.argsort(~inside, kind="stable")
        index._labels[: len(labels)] = labels[order]
        index._at = LabelMap(labels[order], np.arange(len(labels)))
        for some, vectors in chunks:
            index._put(index._at.find(some), vectors)
        index._count = len(labels)
        if graph is not None and inside is not None and index._agrees(graph, int(inside.sum())):
            index._graph, index._linked = graph, int(inside.sum())
        return index

    def _agrees(self, graph: hnswlib.Index, linked: int) -> bool:
        """Whether a sample of the graph's vectors is the table's: the same ids may come from another log."""
        sample = np.arange(0, linked, max(1, linked // _SAMPLE))
        return linked == 0 or np.allclose(
            graph.get_items(self._labels[sample].astype(np.uint64)), self._rows.read(sample), atol=1e-6
        )

"""Nearest vectors of one model: exact over the rows in memory, HNSW where that is quicker.

New vectors become rows at once and are found by exact search; `link` puts them into the HNSW graph later, off any
path that somebody waits for. A graph that is missing, damaged or foreign is therefore no special case: nothing is
linked yet. One thread adds, one thread links and saves, any number search.
"""

from __future__ import annotations

import tempfile
import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from storage.search.compare import cosines
from storage.search.label_map import ABSENT, LabelMap
from storage.search.sealed import open_sealed, seal

if TYPE_CHECKING:
    import hnswlib

M = 16
EF_CONSTRUCTION = 200
EF_SEARCH = 2000
"""Recall@10 of at least .98 on vectors that hardly cluster (docs/adr/0003). Asking for more than that is answered exactly."""
EXACT_LABELS = 20_000
"""Up to this many allowed rows are gathered and compared: quicker than the graph under such a filter."""
EXACT_ROWS = 150_000
"""Up to this many rows in all are compared one by one, which finds everything; a graph is made only for more."""
GATHERED_SHARE = 8
"""Gathering a row costs as much as scanning some eight: where more than that share is allowed, all are scanned."""
LINK_CHUNK = 256
MIN_CAPACITY = 16_384
_SAMPLE = 64
_REMOVED = -1
Matches = list[tuple[int, float]]


class VectorModel(Protocol):
    """What an index must know of the model whose vectors it holds; two models never meet in one index."""

    @property
    def space(self) -> str: ...
    @property
    def model_id(self) -> str: ...
    @property
    def dim(self) -> int: ...


class VectorIndex:
    """Labels (63-bit integers) with unit vectors of `model.dim` numbers."""

    def __init__(self, model: VectorModel, *, capacity: int = MIN_CAPACITY) -> None:
        self.model = model
        self._rows = np.empty((capacity, model.dim), np.float32)
        self._labels = np.empty(capacity, np.int64)
        self._count = 0
        self._at = LabelMap()
        self._graph: hnswlib.Index | None = None
        self._linked = 0
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
            raise ValueError(f"vectors of {vectors.shape[1]} numbers do not belong to {self.model.model_id} ({self.model.dim})")
        with self._adding:
            self._reserve(self._count + len(labels))
            for label, vector in zip(map(int, labels), vectors, strict=True):
                if label not in self._at:
                    self._rows[self._count] = vector
                    self._labels[self._count] = label
                    self._at.add(label, self._count)
                    self._count += 1  # last: searchers look at rows below it only

    def _reserve(self, count: int) -> None:
        """Searchers keep the arrays they hold; they are replaced, never resized."""
        if count > len(self._rows):
            capacity = max(count, 2 * len(self._rows))
            rows, labels = np.empty((capacity, self.model.dim), np.float32), np.empty(capacity, np.int64)
            rows[: self._count], labels[: self._count] = self._rows[: self._count], self._labels[: self._count]
            self._labels, self._rows = labels, rows

    def remove(self, labels: Sequence[int]) -> None:
        """Labels that are not found any more; unknown ones are ignored."""
        with self._linking, self._adding:
            for label in map(int, labels):
                row = self._at.get(label)
                if row != ABSENT:
                    self._rows[row] = 0.0
                    self._labels[row] = _REMOVED
                    if row < self._linked and self._graph is not None:
                        self._graph.mark_deleted(label)
            self._at.remove(labels)

    def search(self, vector: np.ndarray, k: int, allowed: np.ndarray | None = None) -> Matches:
        """The k nearest as (label, cosine), best first. `allowed`: sorted int64 labels, None for no restriction."""
        count, linked, graph = self._count, self._linked, self._graph  # count before the arrays: see _reserve
        rows, labels = self._rows, self._labels
        query = np.asarray(vector, np.float32).reshape(-1)
        if query.shape != (self.model.dim,):
            raise ValueError(f"a vector of {query.size} numbers does not belong to {self.model.model_id} ({self.model.dim})")
        if k < 1 or count == 0 or (allowed is not None and len(allowed) == 0):
            return []
        # gathering rows costs more than scanning all of them once a good part of them is allowed
        if allowed is not None and len(allowed) <= EXACT_LABELS and (count > EXACT_ROWS or GATHERED_SHARE * len(allowed) < count):
            found = self._at.find(allowed)
            chosen = found[(found != ABSENT) & (found < count)]
            return _best(rows[chosen] @ query, labels[chosen], k, None)
        if graph is None or k > EF_SEARCH or count - linked > EXACT_ROWS or count <= EXACT_ROWS:
            return _best(cosines(rows[:count], query), labels[:count], k, allowed)
        near = _ask(graph, query, min(k, linked), allowed)
        if near is None:
            return _best(cosines(rows[:count], query), labels[:count], k, allowed)
        fresh = _best(cosines(rows[linked:count], query), labels[linked:count], k, allowed)
        # a row that was linked meanwhile is in both
        return sorted((dict(near) | dict(fresh)).items(), key=lambda match: -match[1])[:k]

    def cosines(self, vector: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The cosine of each of a few labels, NaN where a label has no vector."""
        count, rows = self._count, self._rows
        places = self._at.find(labels)
        known = (places != ABSENT) & (places < count)
        found = np.full(len(labels), np.nan, np.float32)
        found[known] = rows[places[known]] @ np.asarray(vector, np.float32).reshape(-1)
        return found

    def within(self, vector: np.ndarray, least: float, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every label with at least this cosine among the sorted, non-empty `allowed`, and the cosines; in no order. Reads all rows."""
        count = self._count
        rows, labels = self._rows, self._labels
        cosines = rows[:count] @ np.asarray(vector, np.float32).reshape(-1)
        near = np.flatnonzero(cosines >= least)
        found = labels[near]
        near = near[allowed[np.minimum(np.searchsorted(allowed, found), len(allowed) - 1)] == found]
        return labels[near], cosines[near]

    def link(self, limit: int = LINK_CHUNK) -> int:
        """Put up to `limit` more rows into the graph, if there are enough for one; the number that still waits.

        One thread only calls it.
        """
        with self._linking:
            stop = min(self._count, self._linked + limit) if self._count > EXACT_ROWS else self._linked
            if stop > self._linked:
                self._grow(stop)
                graph = self._graph
                assert graph is not None
                labels = self._labels[self._linked : stop]
                kept = labels != _REMOVED
                if kept.any():
                    graph.add_items(self._rows[self._linked : stop][kept], labels[kept].astype(np.uint64), num_threads=1)
                self._linked = stop
            return self.unlinked

    def _grow(self, count: int) -> None:
        """hnswlib must not be resized while somebody searches: a larger copy takes the graph's place."""
        import hnswlib

        graph = self._graph
        if graph is None:
            graph = hnswlib.Index("ip", self.model.dim)
            graph.init_index(max(MIN_CAPACITY, 2 * count, len(self._rows)), M, EF_CONSTRUCTION)
        elif graph.get_max_elements() < count:
            with tempfile.TemporaryDirectory() as folder:
                path = str(Path(folder) / "graph")
                graph.save_index(path)
                graph = hnswlib.Index("ip", self.model.dim)
                graph.load_index(path, 2 * count)
        else:
            return
        graph.set_ef(EF_SEARCH)
        self._graph = graph

    def save(self, directory: Path, covered: Mapping[str, int]) -> None:
        """Seal the graph (the rows are the table's). `covered`: next offset by "topic/partition"."""
        with self._linking:
            graph = self._graph
            if graph is None:
                return
            linked = self._labels[: self._linked]
            facts = {
                "space": self.model.space,
                "model_id": self.model.model_id,
                "dim": self.model.dim,
                "count": int((linked != _REMOVED).sum()),
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
    ) -> VectorIndex:
        """An index of the table's (n,) labels, whose rows come as chunks (labels, vectors), linked as far as a whole
        and matching graph is in `directory`.

        Rows that the graph lacks wait for `link`. A graph that is damaged, of another model, or that holds what the
        table does not, is left aside: everything waits. hnswlib never sees a file that is not exactly what was saved.
        """
        index = cls(model, capacity=max(MIN_CAPACITY, len(labels) + len(labels) // 4))
        graph, inside = (None, None) if directory is None else _load_graph(directory, model, labels)
        order = np.arange(len(labels)) if inside is None else np.argsort(~inside, kind="stable")
        index._labels[: len(labels)] = labels[order]
        index._at = LabelMap(labels[order], np.arange(len(labels)))
        for some, vectors in chunks:
            index._rows[index._at.find(some)] = vectors
        index._count = len(labels)
        if graph is not None and inside is not None and index._agrees(graph, int(inside.sum())):
            index._graph, index._linked = graph, int(inside.sum())
        return index

    def _agrees(self, graph: hnswlib.Index, linked: int) -> bool:
        """Whether a sample of the graph's vectors is the table's: the same ids may come from another log."""
        sample = np.arange(0, linked, max(1, linked // _SAMPLE))
        return linked == 0 or np.allclose(graph.get_items(self._labels[sample].astype(np.uint64)), self._rows[sample], atol=1e-6)


def _load_graph(directory: Path, model: VectorModel, labels: np.ndarray) -> tuple[hnswlib.Index | None, np.ndarray | None]:
    """The sealed graph, and which of the table's labels are in it; (None, None) unless it can be used."""
    import hnswlib

    sealed = open_sealed(directory)
    if sealed is None or not _fits(sealed.facts, model):
        return None, None
    graph = hnswlib.Index("ip", model.dim)
    elements = int(sealed.facts["elements"])
    graph.load_index(str(sealed.files["graph"]), max(MIN_CAPACITY, 2 * max(elements, len(labels))))
    known = np.array(graph.get_ids_list(), np.uint64).astype(np.int64)
    inside = np.isin(labels, known)
    # fewer in the table than in the graph: removed since, or another table. Both are rare enough to link anew
    if len(known) != elements or int(inside.sum()) != elements:
        return None, None
    graph.set_ef(EF_SEARCH)
    return graph, inside


def _fits(facts: Mapping[str, Any], model: VectorModel) -> bool:
    return (facts.get("space"), facts.get("model_id"), facts.get("dim")) == (model.space, model.model_id, model.dim)


def _ask(graph: hnswlib.Index, query: np.ndarray, k: int, allowed: np.ndarray | None) -> Matches | None:
    """The graph's answer, or None when it cannot find k (rows are being linked, or the filter leaves too few in reach)."""
    inside = None if allowed is None else _membership(allowed)
    for _ in range(2):
        try:
            labels, distances = graph.knn_query(query, k, num_threads=1, filter=inside)
            return list(zip(labels[0].astype(np.int64).tolist(), (1.0 - distances[0]).tolist(), strict=True))
        except RuntimeError:
            continue  # "Cannot return the results in a contiguous 2D array"
    return None


def _membership(allowed: np.ndarray) -> Any:
    """label -> whether it is among the sorted labels; bisecting needs no set of them all."""
    sorted_labels = np.ascontiguousarray(allowed).data
    size = len(sorted_labels)

    def inside(label: int) -> bool:
        at = bisect_left(sorted_labels, label)
        return at < size and sorted_labels[at] == label

    return inside


def _best(scores: np.ndarray, labels: np.ndarray, k: int, allowed: np.ndarray | None) -> Matches:
    """The k largest of (n,) scores with their labels, best first.

    Only as many of the largest are looked up in `allowed` as are needed: looking up all costs more than comparing them.
    """
    share = 1.0 if allowed is None else max(len(allowed), 1) / max(len(labels), 1)
    depth = int(k / min(share, 1.0)) + k
    while True:
        top = np.argpartition(scores, -depth)[-depth:] if depth < len(scores) else np.arange(len(scores))
        usable = labels[top] != _REMOVED
        if allowed is not None:
            places = np.minimum(np.searchsorted(allowed, labels[top]), len(allowed) - 1)
            usable &= allowed[places] == labels[top]
        if int(usable.sum()) >= k or len(top) == len(scores):
            chosen = top[usable]
            order = chosen[np.argsort(-scores[chosen], kind="stable")][:k]
            return list(zip(labels[order].tolist(), scores[order].tolist(), strict=True))
        depth *= 8

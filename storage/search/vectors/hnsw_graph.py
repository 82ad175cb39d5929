"""The HNSW graph of hnswlib: made, enlarged, loaded, queried."""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from storage.search.files.sealed import open_sealed
from storage.search.records.matches import Matches
from storage.search.vectors.vector_model import VectorModel

if TYPE_CHECKING:
    import hnswlib

M = 16
EF_CONSTRUCTION = 200
EF_SEARCH = 2000
"""Recall@10 of at least .98 on vectors that hardly cluster (docs/adr/0003). Larger k are answered exactly."""
MIN_CAPACITY = 16_384


def new_graph(dim: int, capacity: int) -> hnswlib.Index:
    """An empty graph with room for this many vectors."""
    import hnswlib

    graph = hnswlib.Index("ip", dim)
    graph.init_index(max(MIN_CAPACITY, capacity), M, EF_CONSTRUCTION)
    graph.set_ef(EF_SEARCH)
    return graph


def enlarged(graph: hnswlib.Index, dim: int, capacity: int) -> hnswlib.Index:
    """A copy with more room: hnswlib must not resize a graph during a search."""
    import hnswlib

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "graph")
        graph.save_index(path)
        copy = hnswlib.Index("ip", dim)
        copy.load_index(path, capacity)
    copy.set_ef(EF_SEARCH)
    return copy


def graph_facts(model: VectorModel) -> dict[str, str | int]:
    """What a sealed graph says of the model whose vectors it has."""
    return {"space": model.space, "model_id": model.model_id, "dim": model.dim}


def load_graph(
    directory: Path, model: VectorModel, labels: np.ndarray
) -> tuple[hnswlib.Index | None, np.ndarray | None]:
    """The sealed graph, and which of the table's labels are in it; (None, None) unless it can be used."""
    import hnswlib

    sealed = open_sealed(directory)
    if sealed is None or not graph_facts(model).items() <= sealed.facts.items():
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


def query_graph(graph: hnswlib.Index, query: np.ndarray, k: int, allowed: np.ndarray | None) -> Matches | None:
    """The k nearest in the graph, or None when it cannot find as many.

    That is so while rows are being linked, and where too few allowed labels are in reach.
    """
    inside = None if allowed is None else _membership(allowed)
    for _ in range(2):
        try:
            labels, distances = graph.knn_query(query, k, num_threads=1, filter=inside)
            return list(zip(labels[0].astype(np.int64).tolist(), (1.0 - distances[0]).tolist(), strict=True))
        except RuntimeError:
            continue  # "Cannot return the results in a contiguous 2D array"
    return None


def _membership(allowed: np.ndarray) -> Callable[[int], bool]:
    """label -> whether it is among the sorted labels; bisecting needs no set of them all."""
    sorted_labels = np.ascontiguousarray(allowed).data
    size = len(sorted_labels)

    def inside(label: int) -> bool:
        at = bisect_left(sorted_labels, label)
        return at < size and sorted_labels[at] == label

    return inside

"""The vector index: exact and graph answers, filters of any selectivity, growth, threads."""

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from storage.search.vectors import exact_scan as compare
from storage.search.vectors import neighbour_cache
from storage.search.vectors import vector_index as vector_module
from storage.search.vectors.vector_index import VectorIndex
from tests.search.store import MODEL, exact, unit_rows

LABELS = np.random.default_rng(1).choice(2**62, 3000, replace=False).astype(np.int64)
ROWS = unit_rows(3000)


@pytest.fixture
def through_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a few hundred rows were too many for exact search."""
    monkeypatch.setattr(vector_module, "EXACT_LABELS", 100)
    monkeypatch.setattr(vector_module, "EXACT_ROWS", 100)


def linked_index(count: int = len(LABELS)) -> VectorIndex:
    index = VectorIndex(MODEL)
    index.add(LABELS[:count], ROWS[:count])
    while index.link():
        pass
    return index


@pytest.fixture(scope="module")
def linked() -> VectorIndex:
    """All rows in a graph, made once: to be asked and saved, not changed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_module, "EXACT_LABELS", 100)
        patch.setattr(vector_module, "EXACT_ROWS", 100)
        return linked_index()


def recall(index: VectorIndex, allowed: np.ndarray | None, queries: np.ndarray) -> float:
    usable = np.arange(len(LABELS)) if allowed is None else np.flatnonzero(np.isin(LABELS, allowed))
    hits = 0
    for query in queries:
        found = {label for label, _ in index.search(query, 10, allowed)}
        hits += len(found & set(exact(ROWS[usable], LABELS[usable], query, 10)))
    return hits / (10 * len(queries))


def test_rough_cosines_are_near_to_the_exact_ones_and_nan_where_there_is_no_vector() -> None:
    index = VectorIndex(MODEL)
    index.add(LABELS[:200], ROWS[:200])
    asked = np.append(LABELS[:200][::-1], 7)
    found, exact_ones = index.cosines(ROWS[300], asked, roughly=True), index.cosines(ROWS[300], asked)
    error = compare.error_of(float(np.abs(ROWS[:200]).max()) / 127, ROWS[300])
    assert np.isnan(found[-1]) and np.isnan(exact_ones[-1])
    assert 0 < np.abs(found[:-1] - exact_ones[:-1]).max() <= error
    index.remove(LABELS[:1].tolist())
    assert np.isnan(index.cosines(ROWS[300], LABELS[:1], roughly=True)).all()


def test_a_vector_is_found_as_soon_as_it_is_added() -> None:
    index = VectorIndex(MODEL)
    index.add([5], ROWS[:1])
    assert index.unlinked == 0  # none waits for a graph: there are too few for one
    [(label, cosine)] = index.search(ROWS[0], 3)
    assert label == 5
    assert cosine == pytest.approx(1.0, abs=1e-6)


def test_an_empty_index_finds_nothing() -> None:
    assert VectorIndex(MODEL).search(ROWS[0], 3) == []


def test_a_label_keeps_its_first_vector() -> None:
    index = VectorIndex(MODEL)
    index.add([5], ROWS[:1])
    index.add([5], ROWS[1:2])
    assert len(index) == 1
    assert index.search(ROWS[0], 1)[0][1] == pytest.approx(1.0, abs=1e-6)


def test_vectors_of_another_length_are_refused_on_both_ways() -> None:
    index = VectorIndex(MODEL)
    with pytest.raises(ValueError, match="do not belong"):
        index.add([1], np.ones((1, 3), np.float32))
    with pytest.raises(ValueError, match="does not belong"):
        index.search(np.ones(3, np.float32), 1)


def test_the_graph_finds_what_exact_search_finds(through_the_graph: None, linked: VectorIndex) -> None:
    assert recall(linked, None, unit_rows(30, seed=2)) >= 0.95


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.1, 0.5, 0.999])
def test_a_filter_of_any_selectivity_loses_nothing(through_the_graph: None, linked: VectorIndex, share: float) -> None:
    allowed = np.sort(np.random.default_rng(3).choice(LABELS, int(share * len(LABELS)), replace=False))
    found = linked.search(ROWS[0], 10, allowed)
    assert len(found) == min(10, len(allowed))
    assert np.isin([label for label, _ in found], allowed).all()
    if len(allowed) >= 10:
        assert recall(linked, allowed, unit_rows(20, seed=4)) >= 0.95


def test_a_filter_that_correlates_with_the_query_loses_nothing(through_the_graph: None, linked: VectorIndex) -> None:
    query = ROWS[0]
    far = np.sort(LABELS[np.argsort(ROWS @ query)[:400]])  # exactly what the query is least like
    assert recall(linked, far, query[None]) >= 0.95


def test_no_graph_is_made_while_exact_search_is_the_better_answer() -> None:
    index = linked_index()
    assert index._graph is None
    assert recall(index, None, unit_rows(10, seed=2)) == 1.0


def test_rows_that_are_not_linked_yet_are_found_beside_the_graph(through_the_graph: None) -> None:
    index = linked_index(2950)
    index.add(LABELS[2950:], ROWS[2950:])
    assert index.unlinked == 50
    assert index.search(ROWS[2999], 1)[0][0] == LABELS[2999]
    assert index.search(ROWS[10], 1)[0][0] == LABELS[10]


def test_removed_labels_are_not_found_by_any_way(through_the_graph: None) -> None:
    index = linked_index(2900)
    index.add(LABELS[2900:], ROWS[2900:])
    index.remove([int(LABELS[7]), int(LABELS[2999]), 12345])
    for row in (7, 2999):
        assert LABELS[row] not in [label for label, _ in index.search(ROWS[row], 20)]
        assert LABELS[row] not in [label for label, _ in index.search(ROWS[row], 20, np.sort(LABELS))]
        assert index.search(ROWS[row], 20, LABELS[row : row + 1]) == []
    assert len(index.labels()) == len(index) == 2998


def test_it_grows_past_its_capacity_without_losing_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.search.vectors.hnsw_graph.MIN_CAPACITY", 64)
    monkeypatch.setattr(vector_module, "EXACT_LABELS", 100)
    monkeypatch.setattr(vector_module, "EXACT_ROWS", 100)
    index = VectorIndex(MODEL, capacity=64)
    for start in range(0, 1500, 250):
        index.add(LABELS[start : start + 250], ROWS[start : start + 250])
        index.link(250)
    assert index.unlinked == 0
    assert (index.labels() == np.sort(LABELS[:1500])).all()
    assert all(index.search(ROWS[row], 1)[0][0] == LABELS[row] for row in range(0, 1500, 50))


def test_searching_while_adding_linking_and_growing_finds_what_was_there_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("storage.search.vectors.hnsw_graph.MIN_CAPACITY", 64)
    monkeypatch.setattr(vector_module, "EXACT_LABELS", 100)
    monkeypatch.setattr(vector_module, "EXACT_ROWS", 100)
    index = VectorIndex(MODEL, capacity=64)
    index.add(LABELS[:200], ROWS[:200])
    while index.link():
        pass
    done, wrong = threading.Event(), []

    def search() -> None:
        row = 0
        while not done.is_set():
            row = (row + 17) % 200
            if index.search(ROWS[row], 5)[0][0] != LABELS[row]:
                wrong.append(row)

    searchers = [threading.Thread(target=search) for _ in range(3)]
    for searcher in searchers:
        searcher.start()
    for start in range(200, 2000, 100):
        index.add(LABELS[start : start + 100], ROWS[start : start + 100])
        index.link(100)
    done.set()
    for searcher in searchers:
        searcher.join(30)
    assert not wrong


def test_a_saved_index_is_loaded_with_everything_linked(
    through_the_graph: None, linked: VectorIndex, tmp_path: Path
) -> None:
    linked.save(tmp_path, {"t/0": 3})
    loaded = VectorIndex.load(tmp_path, MODEL, LABELS, [(LABELS, ROWS)])
    assert loaded.unlinked == 0
    assert (loaded.labels() == np.sort(LABELS)).all()


def test_rows_newer_than_the_saved_graph_wait_to_be_linked(through_the_graph: None, tmp_path: Path) -> None:
    linked_index(2000).save(tmp_path, {})
    shuffled = np.random.default_rng(5).permutation(3000)
    loaded = VectorIndex.load(tmp_path, MODEL, LABELS[shuffled], [(LABELS, ROWS)])
    assert loaded.unlinked == 1000
    assert all(loaded.search(ROWS[row], 1)[0][0] == LABELS[row] for row in (0, 1999, 2000, 2999))


def test_a_graph_with_what_the_table_lacks_is_left_aside(
    through_the_graph: None, linked: VectorIndex, tmp_path: Path
) -> None:
    linked.save(tmp_path, {})
    loaded = VectorIndex.load(tmp_path, MODEL, LABELS[1:], [(LABELS[1:], ROWS[1:])])
    assert loaded.unlinked == 2999


def test_a_graph_whose_vectors_are_not_the_tables_is_left_aside(
    through_the_graph: None, linked: VectorIndex, tmp_path: Path
) -> None:
    linked.save(tmp_path, {})
    loaded = VectorIndex.load(tmp_path, MODEL, LABELS, [(LABELS, unit_rows(3000, seed=9))])
    assert loaded.unlinked == 3000


def test_removed_labels_stay_removed_after_saving_and_loading(through_the_graph: None, tmp_path: Path) -> None:
    index = linked_index()
    index.remove([int(LABELS[0])])
    index.save(tmp_path, {})
    loaded = VectorIndex.load(tmp_path, MODEL, LABELS[1:], [(LABELS[1:], ROWS[1:])])
    assert LABELS[0] not in loaded.labels()
    assert LABELS[0] not in [label for label, _ in loaded.search(ROWS[0], 20)]


def test_many_vectors_at_once_find_what_each_finds_alone() -> None:
    """Of each the k nearest with at least a cosine, exactly: in one reading of the rows."""
    index = linked_index()
    index.remove(LABELS[:5].tolist())
    queries = unit_rows(40, seed=7)
    for least, k in ((0.05, 10), (0.12, 500), (0.9, 10)):
        wanted = [[match for match in index.search(query, k) if match[1] >= least] for query in queries]
        found = index.search_many(queries, k, least)
        assert [[label for label, _ in matches] for matches in found] == [
            [label for label, _ in matches] for matches in wanted
        ]
        alone = linked_index()
        alone.remove(LABELS[:5].tolist())
        assert [alone.search_many(query[None], k, least)[0] for query in queries] == found
    assert any(wanted for wanted in index.search_many(queries, 10, 0.05))
    assert index.search_many(ROWS[:1], 1, 0.99) == [[]] and set(index.vectors(LABELS[3:7])) == set(LABELS[5:7].tolist())


def test_which_of_some_rows_are_within_a_cosine_is_what_comparing_all_of_them_says() -> None:
    index, query = VectorIndex(MODEL), unit_rows(3001)[-1]
    index.add(LABELS, ROWS)
    index.remove([int(LABELS[20])])
    for asked in (LABELS[:100], np.append(LABELS[::2], 7)):  # gathered, and by comparing all
        near, best = index.within(query, 0.02, index.places(asked), 5)
        cosines = {
            label: float(cosine)
            for label, cosine in zip(LABELS.tolist(), ROWS @ query, strict=True)
            if label != LABELS[20]
        }
        expected = {label: cosines[label] for label in asked.tolist() if cosines.get(label, -1.0) >= 0.02}
        assert asked[near].tolist() == list(expected) and len(expected) > 2
        assert [label for label, _ in best] == sorted(expected, key=lambda label: -expected[label])[:5]


def test_who_looks_again_finds_what_came_and_not_what_went_since() -> None:
    """The answer is cached and only new rows are compared: it is that of an index without a cache."""
    index, queries, k, least = linked_index(1000), unit_rows(6, seed=8), 12, 0.05
    index.search_many(queries[:4], k, least)
    gone: list[int] = []
    for start in range(1000, 3000, 250):
        gone += [label for matches in index.search_many(queries[:2], k, least) for label, _ in matches[:2]]
        gone += LABELS[start - 250 : start - 240].tolist()
        index.remove(gone)
        index.add(LABELS[start : start + 250], ROWS[start : start + 250])
        fresh = linked_index(start + 250)
        fresh.remove(gone)
        assert index.search_many(queries, k, least) == fresh.search_many(queries, k, least)


def test_what_is_kept_of_earlier_looks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour_cache, "CACHED_QUERIES", 3)
    index = linked_index(500)
    for query in unit_rows(10, seed=9):
        index.search_many(query[None], 5, 0.0)
    assert len(index._cache) == 3


def test_of_many_vectors_the_nearest_are_found_however_far_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """No least cosine keeps the pairs few: what k others surpass is left out block by block."""
    monkeypatch.setattr(compare, "BLOCK_ROWS", 128)
    index, queries = linked_index(), unit_rows(9, seed=11)
    found = index.search_many(queries, 25, -1.0)
    fresh = linked_index()
    assert found == [fresh.search_many(query[None], 25, -1.0)[0] for query in queries]
    assert [[label for label, _ in matches] for matches in found] == [
        [label for label, _ in index.search(query, 25)] for query in queries
    ]


def test_rows_that_are_gone_take_no_place_among_the_nearest_of_many_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is gone is as near as one at a right angle: those that are further count still."""
    monkeypatch.setattr(compare, "BLOCK_ROWS", 128)
    index, queries = linked_index(), unit_rows(4, seed=12)
    index.remove(LABELS[60:].tolist())
    found = index.search_many(queries, 50, -1.0)
    assert [[label for label, _ in matches] for matches in found] == [
        [label for label, _ in index.search(query, 50)] for query in queries
    ]
    assert all(len(matches) == 50 and matches[-1][1] < -0.01 for matches in found)


def test_comparing_takes_no_reference_that_it_does_not_give_back() -> None:
    """SimSIMD's `out` did: the interpreter aborts once None has no reference left, after some thousand searches."""
    codes, scales = compare.quantise_rows(np.eye(8, dtype=np.float32))
    query, calls = np.ones(8, np.float32), 1_000
    before = sys.getrefcount(None)
    for _ in range(calls):
        compare.products(codes, scales, query)
    assert sys.getrefcount(None) > before - calls // 2

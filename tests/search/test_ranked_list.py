"""A search is read as far as somebody asks for its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.ranked_list import RankedList
from storage.search.records.filter import Filter
from storage.search.records.row_store import DocumentRow, RowStore
from storage.search.search import ranked, search
from tests.search.store import EMBEDDER, MODEL, Store
from tests.search.test_clusters import write

TEXT = "the river bends at the mill"


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def indexes(store: Store, tmp_path: Path) -> Iterator[IndexSet]:
    indexes = IndexSet(tmp_path / "indexes", store.connection.cursor, MODEL)
    indexes.open(store.positions)
    for number in range(30):
        write(store, indexes, f"m{number}", f"{TEXT} {'again ' * (number // 3)}{number}", at=number)
    yield indexes
    indexes.close()


def asked(limit: int = 10) -> Query:
    return Query(TEXT, EMBEDDER.encode([TEXT])[0], Filter("a"), limit, pool=50)


def listed(store: Store, indexes: IndexSet) -> RankedList:
    return ranked(store.connection.cursor(), indexes, asked())


@pytest.mark.parametrize("sizes", [(30,), (1,) * 30, (7, 2, 50), (0, 3, 27)])
def test_in_pieces_it_is_the_list_that_a_search_for_all_gives(
    store: Store, indexes: IndexSet, sizes: tuple[int, ...]
) -> None:
    found = listed(store, indexes)
    whole = search(store.connection.cursor(), indexes, asked(100))
    assert [hit for size in sizes for hit in found.read(size)] == whole.hits
    assert found.read(5) == [] and found.total == whole.total == len(whole.hits) == 30


def test_rows_that_nobody_asks_for_are_not_read(
    store: Store, indexes: IndexSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = listed(store, indexes)
    read: list[int] = []
    of_store = RowStore.read

    def counted(self: RowStore[DocumentRow], cursor: Any, labels: Iterable[int]) -> Any:
        read.extend(some := list(labels))
        return of_store(self, cursor, some)

    monkeypatch.setattr(RowStore, "read", counted)
    assert len(found.read(4)) == 4 and 4 <= len(set(read)) <= 6  # those that are tied with the fourth, too


def test_what_goes_while_a_list_is_read_leaves_no_gap(store: Store, indexes: IndexSet) -> None:
    found = listed(store, indexes)
    first = found.read(3)
    gone = search(store.connection.cursor(), indexes, asked(6)).hits[4]
    store.connection.execute("DELETE FROM documents WHERE label = ?", [gone.label])
    indexes.remove([gone.label])
    assert len(rest := found.read(27)) == 26 and gone.record_id not in {hit.record_id for hit in (*first, *rest)}


def test_what_is_computed_from_searches_is_kept_as_what_they_keep_is(store: Store, indexes: IndexSet) -> None:
    cursor, records, computed = store.connection.cursor(), indexes.records, []

    def compute(last: object, rows: object) -> int:
        computed.append(records.cached(cursor, "kept by a search", lambda last, rows: 30))
        return 2 * computed[-1]

    assert [records.cached(cursor, "from searches", compute) for _ in range(3)] == [60] * 3
    assert len(computed) == 1
    records.clear_caches()
    records.cached(cursor, "from searches", compute)
    assert len(computed) == 2

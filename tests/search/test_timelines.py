"""Neighbours without a session: what one connection writes, as long as no gap is of more than half an hour."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from storage.search.entries import DocumentEntry
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.backfill import read_timelines
from storage.search.records.filter import Filter
from storage.search.records.timeline import Timelines
from storage.search.search import search
from storage.search.sessions import search_sessions
from tests.search.store import EMBEDDER, START, Store, label_of

Place = tuple[int, int]
"""The label of a neighbour, and how many moments away it stands."""
HALF_AN_HOUR = timedelta(minutes=30)


def written(
    label: int, at: timedelta | float, connection: str | None = "c", *, session: str | None = None, namespace: str = "a"
) -> DocumentEntry:
    """A document of that moment: minutes after START, or a time of its own."""
    after = at if isinstance(at, timedelta) else timedelta(minutes=at)
    return DocumentEntry(label, namespace, "", session, START + after, connection=connection)


def timelines_of(*entries: DocumentEntry) -> Timelines:
    timelines = Timelines()
    timelines.add(entries)
    return timelines


def beside(timelines: Timelines, label: int) -> list[Place]:
    _, labels, far = timelines.around([label])
    return sorted(zip(labels.tolist(), far.tolist(), strict=True))


def test_what_a_connection_writes_without_a_session_stands_together_by_time() -> None:
    timelines = timelines_of(*(written(number, number) for number in range(4)))
    assert beside(timelines, 0) == [(1, 1), (2, 2)]
    assert beside(timelines, 2) == [(0, 2), (1, 1), (3, 1)]
    assert beside(timelines_of(written(1, 0, None), written(2, 1, None)), 1) == [], "who wrote it is not known"


def test_the_sides_of_a_record_are_its_neighbours_before_and_after_the_nearest_first() -> None:
    timelines = timelines_of(*(written(number, number) for number in range(5)), written(9, 3), written(7, 120))
    assert timelines.beside(2) == ([1, 0], [3, 9, 4])
    assert timelines.beside(0) == ([], [1, 2]) and timelines.beside(4) == ([9, 3, 2], [])
    assert timelines.beside(9) == ([2, 1], [4]), "what stands at the same moment is on neither side"
    assert timelines.beside(7) == ([], []) and timelines.beside(8) == ([], []), "far away, and not known"
    for label in range(5):
        sides = [one for side in timelines.beside(label) for one in side]
        assert sorted(sides) == [other for other, _ in beside(timelines, label)]


def test_a_gap_of_more_than_half_an_hour_begins_another_group() -> None:
    just, late = HALF_AN_HOUR, 2 * HALF_AN_HOUR + timedelta(microseconds=1)
    timelines = timelines_of(written(0, timedelta()), written(1, just), written(2, late), written(3, late + just))
    assert beside(timelines, 0) == [(1, 1)]
    assert beside(timelines, 1) == [(0, 1)]
    assert beside(timelines, 2) == [(3, 1)]
    named = timelines_of(*(written(number, 60 * number, session="s") for number in range(3)))
    assert beside(named, 0) == [(1, 1), (2, 2)], "a session has no such gap"


def test_a_write_that_comes_late_joins_two_groups_and_parts_them_when_it_goes() -> None:
    timelines = timelines_of(written(0, 0), written(2, 40), written(3, 41))
    assert beside(timelines, 0) == []
    timelines.add([written(1, 20)])
    assert beside(timelines, 0) == [(1, 1), (2, 2)]
    assert beside(timelines, 3) == [(1, 2), (2, 1)]
    timelines.remove([1])
    assert (beside(timelines, 0), beside(timelines, 2)) == ([], [(3, 1)])
    timelines.remove([2])
    assert (beside(timelines, 0), beside(timelines, 3)) == ([], [])


def test_what_records_were_merged_into_stands_where_the_first_of_them_stood() -> None:
    timelines = timelines_of(*(written(number, number) for number in range(3)), written(9, 500), written(7, 900))
    timelines.stand_in([(9, 7), (1, 7), (5, 7)])
    assert beside(timelines, 7) == [(0, 1), (2, 1)], "record 9 came later, and of record 5 no place is known"
    assert beside(timelines, 0) == [(1, 1), (2, 2), (7, 1)]
    timelines.stand_in([(1, 7), (9, 7), (2, 0)])
    assert beside(timelines, 7) == [(0, 1), (2, 1)], "told again it stays, and what stands earlier does"
    timelines.add([written(7, 900)])
    timelines.remove([1, 7])
    assert beside(timelines, 0) == [(2, 1)]


def test_times_out_of_order_and_equal_times_give_the_same_neighbours_in_any_order_of_arrival() -> None:
    minutes = [0, 0, 1, 1, 1, 5, 34, 36, 36, 67, 68, 98.5, 10_000]
    entries = [written(label, minute) for label, minute in enumerate(minutes)]
    expected = [beside(timelines_of(*entries), label) for label in range(len(entries))]
    assert expected[0] == [(2, 1), (3, 1), (4, 1), (5, 2)], "what shares its moment is not a neighbour"
    assert expected[7] == [(5, 2), (6, 1)] and expected[9] == [(10, 1)] and expected[12] == []
    chance = np.random.default_rng(7)
    for _ in range(30):
        shuffled = [entries[place] for place in chance.permutation(len(entries))]
        timelines = timelines_of(*shuffled, written(50, 20), written(51, 1))
        timelines.remove([50, 51])
        assert [beside(timelines, label) for label in range(len(entries))] == expected


def test_two_connections_that_write_in_turns_two_namespaces_and_a_session_of_that_name_stay_apart() -> None:
    timelines = timelines_of(
        *(written(number, number, "even" if number % 2 == 0 else "odd") for number in range(6)),
        *(written(10 + number, number, "even", namespace="b") for number in range(3)),
        *(written(20 + number, number, None, session="even") for number in range(3)),
    )
    assert beside(timelines, 2) == [(0, 1), (4, 1)]
    assert beside(timelines, 3) == [(1, 1), (5, 1)]
    assert beside(timelines, 11) == [(10, 1), (12, 1)]
    assert beside(timelines, 21) == [(20, 1), (22, 1)]


def test_what_names_its_session_belongs_there_whatever_connection_wrote_it() -> None:
    timelines = timelines_of(written(0, 0), written(1, 1, session="s"), written(2, 2), written(3, 3, "d", session="s"))
    assert beside(timelines, 1) == [(3, 1)]
    assert beside(timelines, 0) == [(2, 1)]


def test_ten_thousand_writes_of_a_connection_have_their_neighbours() -> None:
    timelines = timelines_of(*(written(number, timedelta(seconds=number)) for number in reversed(range(10_000))))
    rows, labels, far = timelines.around(range(10_000))
    assert len(rows) == 4 * 10_000 - 6
    assert (np.abs(labels - rows) == far).all()
    timelines.remove(range(0, 10_000, 2))
    assert beside(timelines, 5_001) == [(4_997, 2), (4_999, 1), (5_003, 1), (5_005, 2)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[Store, IndexSet]]:
    store = Store()
    yield store, store.open(tmp_path)


def put(store: Store, record_id: str, text: str, moment: datetime, **place: str) -> None:
    store.write(record_id, text, created_at=moment, **place)  # type: ignore[arg-type]


def test_a_connection_is_no_session_for_any_search(store: tuple[Store, IndexSet], tmp_path: Path) -> None:
    tables, _ = store
    for number, text in enumerate(["the weir is closed", "it opens at dawn", "ask the keeper"]):
        put(tables, f"c{number}", text, START + timedelta(minutes=number), connection="2026-01-05-weir")
        put(tables, f"s{number}", text, START + timedelta(minutes=number), session_id="2026-01-05-lock")
    indexes = tables.open(tmp_path / "anew")
    timelines = indexes.records.timelines
    assert beside(timelines, label_of("c1")) == sorted([(label_of("c0"), 1), (label_of("c2"), 1)])
    assert timelines.session(label_of("c1")) is None
    everything = [label_of(name) for name in ("c0", "s0")]
    assert sorted(timelines.together(everything, 1)) == sorted(label_of(f"s{number}") for number in range(3))
    cursor, vector = tables.connection.cursor(), EMBEDDER.encode(["the weir"])[0]
    found = search_sessions(cursor, indexes, Query("the weir", vector, Filter("a"), 10))
    assert [hit.session_id for hit in found.ranked] == ["2026-01-05-lock"]
    named = Filter("a", session_ids=("2026-01-05-weir",))
    assert search(cursor, indexes, Query("the weir", vector, named, 10)).hits == []
    indexes.close(save=False)


@pytest.mark.parametrize("is_live", [True, False])
def test_a_merge_has_the_neighbours_of_what_was_said_first(
    store: tuple[Store, IndexSet], tmp_path: Path, is_live: bool
) -> None:
    tables, indexes = store
    for number, text in enumerate(["Which colour has the door?", "Blue, like the sea.", "Nice."]):
        put(tables, f"c{number}", text, START + timedelta(minutes=number), connection="c")
    put(tables, "again", "It is blue, like the sea.", START + timedelta(days=1), connection="d")
    put(tables, "both", "Blue, like the sea. | It is blue, like the sea.", START + timedelta(days=2))
    if is_live:
        indexes.apply(list(read_timelines(tables.connection.cursor())), [], tables.positions)
    for record in ("again", "c1"):
        tables.merge(record, "both")
    indexes.records.clear_caches() if is_live else indexes.close(save=False)
    indexes = indexes if is_live else tables.open(tmp_path / "anew")
    indexes.records.follow_relations(tables.connection.cursor())
    assert beside(indexes.records.timelines, label_of("both")) == sorted([(label_of("c0"), 1), (label_of("c2"), 1)])
    indexes.close(save=False)

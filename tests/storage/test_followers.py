"""A view in memory follows its table: whatever was written, it is what a fresh read of the table gives."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import pytest

from storage.followers import Follower

Names = tuple[str, ...]


class Roster(Follower[Names]):
    """The names of a namespace, sorted; it counts how it came by them."""

    table = "arrivals"
    columns = "name"

    def __init__(self) -> None:
        super().__init__()
        self.loads = 0
        self.updates: list[list[str]] = []

    def load(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> Names:
        self.loads += 1
        return fresh(cursor, namespace)

    def update(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, view: Names, rows: Sequence[tuple[Any, ...]]
    ) -> Names:
        self.updates.append([name for (name,) in rows])
        return tuple(sorted({*view, *(name for (name,) in rows)}))


def fresh(cursor: duckdb.DuckDBPyConnection, namespace: str) -> Names:
    rows = cursor.execute("SELECT DISTINCT name FROM arrivals WHERE namespace = ? ORDER BY name", [namespace])
    return tuple(name for (name,) in rows.fetchall())


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE arrivals (namespace VARCHAR, name VARCHAR)")
    yield connection
    connection.close()


def arrive(database: duckdb.DuckDBPyConnection, *names: str, namespace: str = "a") -> None:
    for name in names:
        database.execute("INSERT INTO arrivals VALUES (?, ?)", [namespace, name])


def test_a_caller_that_knows_how_many_rows_there_are_gets_at_least_these_and_no_view_goes_back(
    database: duckdb.DuckDBPyConnection,
) -> None:
    roster = Roster()
    arrive(database, "anna")
    assert roster.view(database, "a", 1) == ("anna",)
    arrive(database, "bert")
    assert roster.view(database, "a", 1) == ("anna",) and roster.updates == []
    assert roster.view(database, "a", 2) == ("anna", "bert") and roster.updates == [["bert"]]
    assert roster.view(database, "a", 1) == ("anna", "bert") and roster.loads == 1


def test_a_view_follows_its_table_and_reads_each_new_row_once(database: duckdb.DuckDBPyConnection) -> None:
    roster = Roster()
    assert roster.view(database, "a") == ()
    for name in ("b", "a", "c"):
        arrive(database, name)
        assert roster.view(database, "a") == fresh(database, "a")
    assert (roster.loads, roster.updates) == (1, [["b"], ["a"], ["c"]])
    arrive(database, "e", "d")
    assert roster.view(database, "a") is roster.view(database, "a") == ("a", "b", "c", "d", "e")
    assert (roster.loads, roster.updates[3:]) == (1, [["e", "d"]])


def test_views_of_large_namespaces_are_there_before_anybody_asks(database: duckdb.DuckDBPyConnection) -> None:
    roster = Roster()
    arrive(database, "a", "b", "c")
    arrive(database, "a", "b", namespace="small")
    roster.warm(database)
    assert roster.loads == 0, "one that says nothing of warming is loaded when it is asked for"
    roster.warm_rows = 3
    roster.warm(database)
    assert roster.loads == 1
    arrive(database, "d")
    roster.warm(database)
    assert (roster.loads, roster.updates) == (1, [["d"]])
    assert roster.view(database, "a") == ("a", "b", "c", "d")
    assert (roster.loads, len(roster.updates)) == (1, 1)


def test_a_view_is_loaded_where_that_is_faster_than_following(
    database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Roster, "max_rows", 3)
    roster = Roster()
    roster.view(database, "a")
    arrive(database, *"abc")
    roster.view(database, "a")
    assert (roster.loads, len(roster.updates)) == (1, 1)
    arrive(database, *"defg")
    assert roster.view(database, "a") == tuple("abcdefg")
    assert (roster.loads, len(roster.updates)) == (2, 1)
    arrive(database, "h")
    assert roster.view(database, "a") == tuple("abcdefgh")
    assert (roster.loads, roster.updates[1:]) == (2, [["h"]]), "it follows on from there"


@pytest.mark.parametrize("arrived", [1, 3, 4], ids=["fewer rows than before", "as many", "more"])
def test_a_view_starts_anew_when_rows_have_gone(database: duckdb.DuckDBPyConnection, arrived: int) -> None:
    roster = Roster()
    arrive(database, "x", "y", "z")
    roster.view(database, "a")
    database.execute("DELETE FROM arrivals WHERE name <> 'x'")
    assert roster.view(database, "a") == ("x",)
    arrive(database, "y", "z")
    roster.view(database, "a")
    database.execute("DELETE FROM arrivals")
    arrive(database, *"abcd"[:arrived])
    if arrived == 3:  # the same count hides it until the next row
        arrive(database, "e")
    assert roster.view(database, "a") == fresh(database, "a")


def test_each_namespace_has_a_view_of_its_own_and_anothers_rows_change_nothing(
    database: duckdb.DuckDBPyConnection,
) -> None:
    roster = Roster()
    arrive(database, "here")
    arrive(database, "there", namespace="b")
    before = roster.view(database, "a")
    assert (before, roster.view(database, "b")) == (("here",), ("there",))
    arrive(database, "yonder", namespace="b")
    assert roster.view(database, "a") is before and roster.updates == []
    assert roster.view(database, "b") == ("there", "yonder")
    assert (roster.loads, roster.updates) == (2, [["yonder"]])


def test_rows_that_come_while_a_view_is_loaded_are_not_missed(database: duckdb.DuckDBPyConnection) -> None:
    class Late(Roster):
        def load(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> Names:
            view = super().load(cursor, namespace)
            arrive(database, "late")
            return view

    roster = Late()
    arrive(database, "early")
    assert roster.view(database, "a") == ("early",)
    assert roster.view(database, "a") == ("early", "late")


def test_threads_that_read_while_another_writes_each_see_what_was_committed(
    database: duckdb.DuckDBPyConnection,
) -> None:
    roster, done = Roster(), threading.Event()
    names = [f"{number:03}" for number in range(100)]

    def read() -> int:
        cursor, seen, last = database.cursor(), 0, ()
        while not done.is_set() or last != tuple(names):
            before = fresh(cursor, "a")
            view = roster.view(cursor, "a")
            assert set(last) | set(before) <= set(view), "a view that was newer, or a committed row, was lost"
            seen, last = seen + (view != last), view
        return seen

    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(read) for _ in range(3)]
        try:
            writer = database.cursor()
            for name in names:
                arrive(writer, name)
        finally:
            done.set()
        assert all(reader.result() for reader in readers)
    assert roster.loads == 1
    assert [name for names in roster.updates for name in names] == names[-sum(map(len, roster.updates)) :]

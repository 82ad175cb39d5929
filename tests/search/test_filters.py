"""What a filter leaves: tags, entities, and the two times at which the store can be asked."""

from datetime import UTC, timedelta
from pathlib import Path

import pytest

from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter, TagFilter, leaves, resolve
from storage.search.search import search
from tests.search.store import DERIVED, START, Store

MOMENT = START.replace(tzinfo=UTC)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def indexes(store: Store, tmp_path: Path) -> IndexSet:
    return store.open(tmp_path)


def ids(indexes: IndexSet, store: Store, filter: Filter) -> list[str]:
    return sorted(
        hit.record_id
        for hit in search(store.connection.cursor(), indexes, Query("river", None, filter, 10, distinct=False)).hits
    )


def tag(store: Store, record_id: str, name: str, namespace: str = "a") -> None:
    store.connection.execute(
        "INSERT INTO document_tags VALUES (?, ?, ?, ?, 0, 0, '')", [record_id, name, namespace, DERIVED]
    )


def test_a_filter_leaves_the_labels_of_its_namespace_alone(indexes: IndexSet, store: Store) -> None:
    own = store.write("r1", "the river bends", namespace="a")
    other = store.write("r1", "the river bends", namespace="b")
    assert resolve(store.connection.cursor(), Filter("a")).tolist() == [own]
    assert resolve(store.connection.cursor(), Filter("b")).tolist() == [other]
    for namespace, is_left in (("a", True), ("b", False)):
        assert leaves(Filter("a"), (namespace, "Insight", "talos", None, None, START)) is is_left


def test_a_document_of_the_first_moment_is_left_and_of_the_last_is_not(indexes: IndexSet, store: Store) -> None:
    window = Filter("a", created_from=MOMENT, created_before=MOMENT + timedelta(days=2))
    for day in range(4):
        store.write(f"day-{day - 1}", "the river bends", created_at=START + timedelta(days=day - 1), to=indexes)
    assert ids(indexes, store, window) == ["day-0", "day-1"]
    for day, is_left in ((-1, False), (0, True), (1, True), (2, False)):
        assert leaves(window, ("a", "Insight", "talos", None, None, START + timedelta(days=day))) is is_left


def test_one_of_the_tags_is_enough_and_those_of_another_namespace_do_not_count(indexes: IndexSet, store: Store) -> None:
    for name in ("r1", "r2", "r3"):
        store.write(name, "the river bends", to=indexes)
    tag(store, "r1", "water")
    tag(store, "r2", "bank")
    tag(store, "r3", "water", namespace="b")
    assert ids(indexes, store, Filter("a", tags=TagFilter(("water", "bank")))) == ["r1", "r2"]
    assert ids(indexes, store, Filter("a", tags=TagFilter(("water",)))) == ["r1"]


def test_an_entity_leaves_itself_what_is_related_to_it_and_where_it_was_found(indexes: IndexSet, store: Store) -> None:
    for name in ("entity", "before", "after", "entry", "stranger"):
        store.write(name, "the river bends", to=indexes)
    store.relate("before", "entity")
    store.relate("entity", "after")
    [(event,)] = store.connection.execute("SELECT event_id FROM documents WHERE record_id = 'entry'").fetchall()
    store.connection.execute(
        "INSERT INTO entities (entity_id, label, text, canonical_form, created_at, source_event_id, namespace, "
        "topic, partition, "
        "\"offset\", idx, event_id) VALUES ('entity', 'Insight', 'x', 'x', ?, ?, 'a', ?, 0, 0, 0, 'e')",
        [START, event, DERIVED],
    )
    assert ids(indexes, store, Filter("a", entities=("entity",))) == ["after", "before", "entity", "entry"]
    assert ids(indexes, store, Filter("a", entities=("unknown",))) == []


def test_as_it_was_known_on_a_day_later_records_merges_and_prunes_are_not_there(
    indexes: IndexSet, store: Store
) -> None:
    store.write("old", "the river bends", created_at=START, to=indexes)
    store.write("head", "the river bends", created_at=START, to=indexes)
    store.write("new", "the river bends", created_at=START + timedelta(days=9), to=indexes)
    store.merge("old", "head")
    store.connection.execute("UPDATE merges SET merged_at = ?", [START + timedelta(days=5)])
    store.write("doubted", "the river bends", created_at=START, to=indexes)
    believe(store, "doubted", 0)
    store.connection.execute(
        "INSERT INTO prunes VALUES ('doubted', '', ?, 'a', ?, 0, 0, '')", [START + timedelta(days=3), DERIVED]
    )
    before, after = MOMENT + timedelta(days=2), MOMENT + timedelta(days=3)
    for meets in (Filter("a", known_at=before), Filter("a", valid_at=before)):
        assert "doubted" in ids(indexes, store, meets)
    for misses in (Filter("a", known_at=after), Filter("a", valid_at=after)):
        assert "doubted" not in ids(indexes, store, misses)
    assert ids(indexes, store, Filter("a", known_at=MOMENT + timedelta(days=4))) == ["head", "old"]
    assert ids(indexes, store, Filter("a", known_at=MOMENT + timedelta(days=5))) == ["head"]
    assert ids(indexes, store, Filter("a", known_at=MOMENT - timedelta(days=1))) == []
    assert ids(indexes, store, Filter("a")) == ["head", "new"]


def believe(store: Store, record_id: str, day: int, merged_on: int | None = None) -> None:
    moment = START + timedelta(days=day)
    store.connection.execute(
        "INSERT INTO entities (entity_id, label, text, canonical_form, created_at, source_event_id, namespace, "
        "topic, partition, "
        "\"offset\", idx, event_id) VALUES (?, 'Belief', 'x', 'x', ?, '', 'a', ?, 0, 0, 0, '')",
        [record_id, moment, DERIVED],
    )
    if merged_on is not None:
        store.merge(record_id, "head")
        store.connection.execute(
            "UPDATE merges SET merged_at = ? WHERE record_id = ?", [START + timedelta(days=merged_on), record_id]
        )


@pytest.mark.parametrize(
    ("valid", "known", "expected"),
    [
        (1, None, ["first"]),
        (4, None, ["first", "second"]),
        (7, None, ["second"]),
        (7, 5, ["first", "second"]),  # its end was not known yet
        (1, 1, ["first"]),
    ],
)
def test_valid_time_and_transaction_time_are_asked_apart(
    indexes: IndexSet, store: Store, valid: int, known: int | None, expected: list[str]
) -> None:
    store.write("first", "the river bends", created_at=START, to=indexes)
    store.write("second", "the river bends", created_at=START + timedelta(days=3), to=indexes)
    believe(store, "first", 0, merged_on=6)
    believe(store, "second", 3)
    known_at = None if known is None else MOMENT + timedelta(days=known)
    chosen = Filter("a", valid_at=MOMENT + timedelta(days=valid), known_at=known_at, exclude_merged=False)
    assert ids(indexes, store, chosen) == expected

"""What is cached of the tables follows them: allow lists, relations and label maps are those that are computed anew."""

from dataclasses import replace
from datetime import UTC, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.append_only import TableCounts
from storage.search.records.filter import Filter, resolve
from storage.search.records.filter_cache import FilterCache
from storage.search.records.label_map import ABSENT, LabelMap
from storage.search.records.relations import Relations
from tests.search.store import START, Store, label_of

TABLES = (
    "documents",
    "merges",
    "prunes",
    "corrections",
    "relations",
    "entities",
    "memory_changes",
    "restatements",
    "agreements",
    "supersessions",
    "context_ends",
    "context_edge_changes",
)
FILTERS = [
    Filter("a"),
    Filter("b"),
    Filter("a", kinds=("Insight",)),
    Filter("a", domains=("water",), exclude_merged=False),
    Filter("a", created_from=START + timedelta(minutes=5)),
    Filter("a", known_at=START + timedelta(minutes=4)),
    Filter("a", valid_at=START + timedelta(minutes=4)),
]


@pytest.fixture
def store() -> Store:
    return Store()


def utc(filter: Filter) -> Filter:
    moments = {name: getattr(filter, name) for name in ("created_from", "known_at", "valid_at")}
    return replace(filter, **{name: moment.replace(tzinfo=UTC) for name, moment in moments.items() if moment})


def test_the_labels_of_a_filter_follow_every_write_and_merge(store: Store) -> None:
    cursor, allowed, rows = store.connection.cursor(), FilterCache(), TableCounts(*TABLES)
    for step in range(12):
        store.write(
            f"r{step}", "text", namespace="ab"[step % 3 == 2], kind="Belief" if step % 2 else "Insight", domain="Water"
        )
        if step in (5, 9):
            store.merge(f"r{step - 2}", "r0")
        for filter in map(utc, FILTERS):
            found = allowed.get(cursor, filter, step, rows.at(cursor, step))
            assert found.labels.tolist() == resolve(cursor, filter).tolist(), (step, filter)
            assert found.is_everything == (len(found.labels) == step + 1)


def test_a_row_that_was_deleted_is_noticed(store: Store) -> None:
    cursor, allowed, rows = store.connection.cursor(), FilterCache(), TableCounts(*TABLES)
    for number in range(3):
        store.write(f"r{number}", "text")
    assert len(allowed.get(cursor, Filter("a"), 0, rows.at(cursor, 0)).labels) == 3
    store.connection.execute("DELETE FROM documents WHERE record_id = 'r1'")
    store.write("r3", "text")
    assert allowed.get(cursor, Filter("a"), 1, rows.at(cursor, 1)).labels.tolist() == sorted(
        map(label_of, ("r0", "r2", "r3"))
    )


def test_relations_count_both_ways_through_merges_and_are_those_of_a_fresh_look(store: Store) -> None:
    cursor, followed, rows = store.connection.cursor(), Relations(), TableCounts(*TABLES)
    names = [f"r{number}" for number in range(6)]
    changes = [
        ("relate", "r0", "r1"),
        ("relate", "r2", "r0"),
        ("merge", "r3", "r0"),
        ("relate", "r3", "r4"),
        ("merge", "r1", "r5"),
    ]
    for generation, (change, first, second) in enumerate(changes):
        getattr(store, change)(first, second)
        followed.follow(cursor, generation, rows.at(cursor, generation))
        fresh = Relations()
        fresh.follow(cursor, 0, rows.at(cursor, generation))
        for parent in names:
            assert followed.neighbours([label_of(parent)]) == fresh.neighbours([label_of(parent)])
    places = followed.neighbours([label_of("r4"), label_of("r0")])
    assert places == {label_of("r0"): 0, label_of("r4"): 1, label_of("r2"): 1, label_of("r5"): 1}
    assert followed.neighbours([label_of("r0", "b")]) == {}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["add", "remove"]), st.integers(0, 40)), max_size=60))
def test_a_label_map_is_a_dict(steps: list[tuple[str, int]]) -> None:
    mapped, expected = LabelMap(), dict[int, int]()
    for number, (step, label) in enumerate(steps):
        if step == "add" and label not in expected:
            mapped.add(label, number)
            expected[label] = number
        elif step == "remove":
            mapped.remove([label])
            expected.pop(label, None)
    every = np.arange(41)
    assert mapped.find(every).tolist() == [expected.get(label, ABSENT) for label in range(41)]
    assert mapped.labels().tolist() == sorted(expected)
    assert len(mapped) == len(expected)

"""The engine: hybrid ranking, filters, the graph side, limits, and that index = table while it is written."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from processors.embedding.hashing import HashingEmbedder
from storage.search.entries import VectorEntry
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.records.hits import SearchResult
from storage.search.records.selection import Selection
from storage.search.search import search
from tests.search.store import EMBEDDER, MODEL, START, Store, label_of, unit_rows


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def indexes(store: Store, tmp_path: Path) -> IndexSet:
    return store.open(tmp_path)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[IndexSet, Store]:
    """Five records that say the same, each with something of its own to restrict by: for tests that only search."""
    store, text = Store(), "the river bends"
    indexes = store.open(tmp_path_factory.mktemp("told"))
    last, first = datetime(2026, 1, 1, 23, 59, 59), datetime(2026, 1, 2)
    store.write("r0", text, domain="Water", session_id="s1", created_at=last, to=indexes)
    store.write("r1", text, domain="water", kind="Belief", created_at=last, to=indexes)
    store.write("r2", text, session_id="s2", created_at=first, to=indexes)
    store.write("r3", text, kind="Belief", toolset="valence", created_at=first, to=indexes)
    store.write("other", text, namespace="b", to=indexes)
    return indexes, store


def ids(result: SearchResult) -> list[str]:
    return [hit.record_id for hit in result.hits]


def ask(
    indexes: IndexSet, store: Store, text: str, filter: Filter = Filter("a"), limit: int = 10, **options: Any
) -> SearchResult:
    query = Query(text, EMBEDDER.encode([text])[0], filter, limit, **options)
    return search(store.connection.cursor(), indexes, query)


def test_an_empty_store_finds_nothing(indexes: IndexSet, store: Store) -> None:
    assert ask(indexes, store, "anything") == SearchResult([], 0, None)


def test_what_was_applied_is_found_at_once_with_all_that_is_known_of_it(indexes: IndexSet, store: Store) -> None:
    label = store.write("r1", "the river bends", session_id="s", domain="Water", kind="Belief", to=indexes)
    [hit] = ask(indexes, store, "the river bends").hits
    assert (hit.label, hit.record_id, hit.kind, hit.toolset, hit.session_id, hit.domain) == (
        label,
        "r1",
        "Belief",
        "talos",
        "s",
        "Water",
    )
    assert (hit.text, hit.created_at) == ("the river bends", START)
    assert hit.sides["vector"] == (1, pytest.approx(1.0, abs=1e-6))
    assert hit.sides["keyword"][0] == 1
    assert hit.score == pytest.approx(0.8)


def test_a_hit_that_is_also_a_neighbour_counts_on_all_three_sides(indexes: IndexSet, store: Store) -> None:
    store.write("r1", "the river bends", to=indexes)
    store.write("r2", "the river bends sharply", to=indexes)
    store.relate("r1", "r2")
    best = ask(indexes, store, "the river bends").hits[0]
    assert best.record_id == "r1"
    assert best.sides["graph"][0] == 2  # the neighbour of the first comes before the neighbour of the second
    assert best.score == pytest.approx(0.8 + 0.2 * 61 / 62)


def test_words_alone_score_their_share_and_the_answer_says_so(indexes: IndexSet, store: Store) -> None:
    store.write("r1", "river delta", to=indexes)
    store.write("r2", "delta wing of a long and heavy aeroplane", to=indexes)
    found = search(store.connection.cursor(), indexes, Query("delta", None, Filter("a"), 5))
    assert ids(found) == ["r1", "r2"]
    most = indexes.words.ceiling("delta", "a")
    for hit in found.hits:
        assert hit.score == pytest.approx(0.15 * hit.sides["keyword"][1] / most)
        assert sum(hit.parts.values()) == pytest.approx(hit.score)
    assert found.degraded is not None
    assert "embedder" in found.degraded


def test_without_a_model_everything_works_by_keywords(store: Store, tmp_path: Path) -> None:
    indexes = store.open(tmp_path, None)
    store.write("r1", "river delta", to=indexes)
    found = ask(indexes, store, "delta")
    assert ids(found) == ["r1"]
    assert found.degraded is not None
    assert indexes.space().nearest(unit_rows(1)[0], 5).matches == []
    indexes.close()


def test_neighbours_of_the_best_hits_are_found_though_nothing_in_them_matches(indexes: IndexSet, store: Store) -> None:
    store.write("r1", "the river bends", to=indexes)
    store.write("x", "zzz", to=indexes)
    store.write("elsewhere", "qqq", namespace="b", to=indexes)
    store.relate("x", "r1")
    store.relate("r1", "elsewhere")
    found = ask(indexes, store, "the river bends")
    assert ids(found) == ["r1", "x"]
    assert found.hits[1].sides == {"graph": (1, 0.0)}
    assert found.hits[1].score == pytest.approx(0.2)


def test_a_neighbour_must_meet_the_filter_too(indexes: IndexSet, store: Store) -> None:
    store.write("r1", "the river bends", to=indexes)
    store.write("x", "zzz", kind="Belief", to=indexes)
    store.relate("x", "r1")
    assert ids(ask(indexes, store, "the river bends", Filter("a", kinds=("Insight",)))) == ["r1"]


def test_merged_records_are_left_out_and_their_relations_count_for_the_one_they_were_merged_into(
    indexes: IndexSet, store: Store
) -> None:
    store.write("old", "the river bends", to=indexes)
    store.write("new", "the river bends again", to=indexes)
    store.write("x", "zzz", to=indexes)
    store.relate("new", "x")
    store.merge("new", "old")
    assert ids(ask(indexes, store, "the river bends")) == ["old", "x"]
    assert "new" in ids(ask(indexes, store, "the river bends", Filter("a", exclude_merged=False)))


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (Filter("a"), {"r0", "r1", "r2", "r3"}),
        (Filter("b"), {"other"}),
        (Filter("a", kinds=("Belief",)), {"r1", "r3"}),
        (Filter("a", kinds=("Belief", "Insight")), {"r0", "r1", "r2", "r3"}),
        (Filter("a", toolsets=("valence",)), {"r3"}),
        (Filter("a", session_ids=("s2",)), {"r2"}),
        (Filter("a", domains=("WATER",)), {"r0", "r1"}),
        (Filter("a", domains=("nowhere",)), set()),
        (Filter("a", created_from=datetime(2026, 1, 2, tzinfo=UTC)), {"r2", "r3"}),
        (Filter("a", created_before=datetime(2026, 1, 2, tzinfo=UTC)), {"r0", "r1"}),
        (Filter("a", kinds=("Belief",), created_from=datetime(2026, 1, 2, tzinfo=UTC)), {"r3"}),
    ],
)
def test_filters_restrict_to_what_meets_all_of_them(
    told: tuple[IndexSet, Store], filter: Filter, expected: set[str]
) -> None:
    found = ask(*told, "the river bends", filter, distinct=False)
    assert set(ids(found)) == expected
    assert found.total == len(expected)


def test_equal_scores_are_newer_first_and_then_by_id(indexes: IndexSet, store: Store) -> None:
    for record_id, minutes in (("b", 0), ("a", 0), ("c", 5)):
        store.write(record_id, f"zzz{record_id}", created_at=START + timedelta(minutes=minutes), to=indexes)
    for number, record_id in enumerate("bac"):
        store.write(f"hit{number}", "river", vector=unit_rows(1)[0], to=indexes)
        store.relate(f"hit{number}", record_id)
    weights = {"vector": 0.0, "keyword": 0.0, "graph": 0.0}
    level = search(
        store.connection.cursor(), indexes, Query("river", None, Filter("a"), 10, weights=weights, distinct=False)
    )
    assert ids(level) == ["c", "hit2", "hit1", "hit0", "a", "b"]


def test_total_counts_the_matches_before_the_limit(indexes: IndexSet, store: Store) -> None:
    for number in range(20):
        store.write(f"r{number}", f"river bends {number}", to=indexes)
    found = ask(indexes, store, "river bends", limit=3)
    assert len(found.hits) == 3
    assert found.total == 20
    assert ask(indexes, store, "river bends", limit=3, pool=5).total <= 10


def test_a_weak_cosine_is_no_match(indexes: IndexSet, store: Store) -> None:
    rows = unit_rows(2)
    store.write("r1", "aaa", vector=rows[0], to=indexes)
    near = rows[0] * 0.29 + rows[1] * float(np.sqrt(1 - 0.29**2))
    cursor = store.connection.cursor()
    cosine = float(near @ rows[0])
    query = Query("bbb", near, Filter("a"), 5, min_cosine=cosine + 0.001)
    assert search(cursor, indexes, query).hits == []
    assert ids(search(cursor, indexes, replace(query, min_cosine=cosine - 0.001))) == ["r1"]


def test_vectors_of_another_model_never_meet_ours(store: Store, tmp_path: Path) -> None:
    store.write("ours", "the river bends")
    store.write("theirs", "the river bends", model_id="another")
    store.write("shorter", "the river bends", vector=np.ones(3, np.float32))
    indexes = store.open(tmp_path)
    assert indexes.labels()[1].tolist() == [label_of("ours")]
    row = EMBEDDER.encode(["the river bends"])[0]
    indexes.apply(
        [],
        [
            VectorEntry(77, np.ones(3, np.float32), MODEL.space, MODEL.model_id),
            VectorEntry(78, row, MODEL.space, "another"),
            VectorEntry(79, row, "text/another", MODEL.model_id),
        ],
    )
    assert indexes.labels()[1].tolist() == [label_of("ours")]
    indexes.apply([], [VectorEntry(80, row, MODEL.space, MODEL.model_id)])
    assert indexes.labels()[1].tolist() == sorted([label_of("ours"), 80])
    indexes.close()


def test_nearest_respects_a_filter(indexes: IndexSet, store: Store) -> None:
    mine = store.write("r1", "the river bends", to=indexes)
    store.write("r1", "the river bends", namespace="b", to=indexes)
    vector, cursor = EMBEDDER.encode(["the river bends"])[0], store.connection.cursor()
    assert len(indexes.space().nearest(vector, 5).matches) == 2
    allowed = indexes.records.allowed(cursor, Filter("a"))
    assert [label for label, _ in indexes.space().nearest(vector, 5, allowed).matches] == [mine]


def test_a_removed_label_is_not_found_and_not_in_the_saved_files(
    indexes: IndexSet, store: Store, tmp_path: Path
) -> None:
    label = store.write("secret", "the river bends", to=indexes)
    store.write("r1", "something else", to=indexes)
    indexes.maintain()
    store.connection.execute("DELETE FROM documents WHERE label = ?", [label])
    store.connection.execute("DELETE FROM embeddings WHERE label = ?", [label])
    indexes.remove([label])
    assert ids(ask(indexes, store, "the river bends")) == []
    indexes.close()
    again = store.open(tmp_path)
    assert all(label not in found for found in again.labels())
    again.close()


def test_the_state_tells_what_each_index_holds_and_covers(indexes: IndexSet, store: Store) -> None:
    store.write("r1", "the river bends", to=indexes)
    state = indexes.state()
    assert state["keyword"] == {"state": "ready", "count": 1, "uncommitted": 1}
    assert state["vector"] == {
        "state": "ready",
        "model": MODEL.model_id,
        "space": MODEL.space,
        "count": 1,
        "unlinked": 0,
    }
    assert state["covered"] == store.positions
    indexes.maintain()
    assert indexes.state()["keyword"]["uncommitted"] == 0


def test_readers_find_every_committed_record_while_the_writer_writes(indexes: IndexSet, store: Store) -> None:
    written, done, missed = [0], Event(), []

    def read() -> None:
        cursor = store.connection.cursor()
        while not done.is_set() and written[0] < 60:
            last = written[0]
            if last and f"r{last - 1}" not in {
                hit.record_id for hit in search(cursor, indexes, Query(f"number{last - 1}", None, Filter("a"), 5)).hits
            }:
                missed.append(last)

    def maintain() -> None:
        while not done.wait(0.005):
            indexes.maintain()

    threads = [Thread(target=read), Thread(target=read), Thread(target=maintain)]
    for thread in threads:
        thread.start()
    for number in range(60):
        store.write(f"r{number}", f"river number{number}", to=indexes)
        written[0] = number + 1
    done.set()
    for thread in threads:
        thread.join(30)
    assert not missed
    assert all(len(labels) == 60 for labels in indexes.labels())


def test_a_resolved_filter_is_remembered_until_something_changes_that_it_may_depend_on(
    indexes: IndexSet, store: Store
) -> None:
    store.write("r1", "the river bends", to=indexes)
    before = indexes.records.generation
    indexes.apply([], [], {"thalweg.invocations.v1/0": 7, "thalweg.telemetry.v1/3": 2})
    assert indexes.records.generation == before
    indexes.apply([], [], {"thalweg.telemetry.v1/3": 3, "thalweg.derived.v1/3": 9})  # merges come from there
    assert indexes.records.generation == before + 1
    assert ids(ask(indexes, store, "the river bends")) == ["r1"]


def test_a_vector_of_another_space_is_compared_with_nothing(indexes: IndexSet, store: Store) -> None:
    label = store.write("r1", "the river bends", to=indexes)
    other, labels = np.ones(7, np.float32), np.array([label], np.int64)
    space = indexes.space("text/other-7")
    assert np.isnan(space.similarities(other, labels)).all()
    assert np.isnan(space.document_similarities(other, labels)).all()
    assert space.nearest(other, 3, indexes.records.allowed(store.connection.cursor(), Filter("a"))).matches == []
    assert space.nearest_of_each(other, 3, [labels]) == space.nearest_to_each(other[None], 3, -1.0) == [[]]
    assert space.embedded([label]) == set() and space.vectors(labels) == {}
    near, best = space.within(other, 0.0, Selection(labels), np.ones(1, bool), 5)
    assert (near.tolist(), best) == ([False], [])


def test_several_spaces_answer_at_once_each_from_its_own_vectors(indexes: IndexSet, store: Store) -> None:
    label = store.write("r1", "the river bends", to=indexes)
    wide = HashingEmbedder(64).info
    assert wide.space != MODEL.space and indexes.prepare(wide) == 0
    apart = label_of("r2")
    own, other = unit_rows(1)[0], np.eye(64, dtype=np.float32)[0]
    indexes.apply([], [VectorEntry(apart, other, wide.space, wide.model_id)])
    assert indexes.space(wide.space).nearest(other, 5).matches == [(apart, pytest.approx(1.0))]
    assert [found for found, _ in indexes.space(MODEL.space).nearest(own, 5).matches] == [label]
    assert indexes.space() is indexes.space(MODEL.space)
    indexes.switch(wide)
    assert indexes.space() is indexes.space(wide.space)
    assert [found for found, _ in indexes.space(MODEL.space).nearest(own, 5).matches] == [label], "until it is dropped"
    indexes.drop_other_spaces()
    assert indexes.space(MODEL.space).nearest(own, 5).matches == []

"""One cluster is one row: which records state the same, which of them stands for all, and what a search counts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.search.entries import DocumentEntry, VectorEntry
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.clusters import MAX_COMPARED, Clusters, canonical, cluster_of, excerpts_of
from storage.search.records.filter import Filter
from storage.search.records.hits import SearchHit
from storage.search.records.label_map import ABSENT
from storage.search.search import search
from storage.search.sessions import search_sessions
from storage.search.why import explain
from tests.search.store import EMBEDDER, MODEL, START, Store, label_of

JOURNAL = ("talos", "JournalEntry")


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def indexes(store: Store, tmp_path: Path) -> Iterator[IndexSet]:
    indexes = IndexSet(tmp_path / "indexes", store.connection.cursor, MODEL, sources=[JOURNAL])
    indexes.open(store.positions)
    yield indexes
    indexes.close()


def write(store: Store, indexes: IndexSet, record_id: str, text: str, kind: str = "Insight", at: int = 0) -> int:
    """A document of the given minute, as the materialiser tells of it."""
    moment = START + timedelta(minutes=at)
    label = store.write(record_id, text, kind=kind, created_at=moment)
    entry = DocumentEntry(label, "a", text, None, moment, ("talos", kind))
    indexes.apply([entry], [VectorEntry(label, EMBEDDER.encode([text])[0], MODEL.space, MODEL.model_id)])
    return label


def extract(store: Store, indexes: IndexSet, name: str, *texts: tuple[str, str], at: int = 0) -> None:
    """Records of one event, (kind, text) each, as they are found in one entry; their ids are the name and a number."""
    moment = START + timedelta(minutes=at)
    entries = []
    for number, (kind, text) in enumerate(texts):
        label = store.write(f"{name}{number}", text, kind=kind, created_at=moment, event_id=name)
        entries.append(DocumentEntry(label, "a", text, None, moment, ("talos", kind), event_id=name))
    vectors = EMBEDDER.encode([text for _, text in texts])
    rows = [VectorEntry(e.label, row, MODEL.space, MODEL.model_id) for e, row in zip(entries, vectors, strict=True)]
    indexes.apply(entries, rows)


def test_what_says_the_same_at_the_same_moment_was_made_of_the_source(store: Store, indexes: IndexSet) -> None:
    entry = write(store, indexes, "entry", "The river bends.", "JournalEntry")
    insight = write(store, indexes, "insight", "the river bends")
    later = write(store, indexes, "later", "The river bends.", "JournalEntry", at=1)
    alone = write(store, indexes, "alone", "The mill stands.")
    assert indexes.records.clusters.sources_of([entry, insight, later, alone]) == {insight: entry}


def find(store: Store, indexes: IndexSet, text: str, *, limit: int = 10, **options: object) -> list[SearchHit]:
    chosen = Filter("a", **options)  # type: ignore[arg-type]
    query = Query(text, EMBEDDER.encode([text])[0], chosen, limit)
    return search(store.connection.cursor(), indexes, query).hits


@pytest.mark.parametrize("same", ["The river  bends.", "the RIVER bends", " The river\nbends ", "The river bends..."])
def test_case_spaces_and_the_full_stop_at_the_end_make_no_other_fact(same: str) -> None:
    assert cluster_of("a", same) == cluster_of("a", "The river bends")


def test_signs_numbers_other_scripts_and_namespaces_make_other_facts() -> None:
    texts = ["port 80", "port 81", "is it?", "is it", "河弯了", "河直了", "C++", "C"]
    assert len({cluster_of("a", text) for text in texts}) == len(texts)
    assert cluster_of("a", "河弯了。") == cluster_of("a", "河弯了")
    assert cluster_of("a", "river") != cluster_of("b", "river")
    assert cluster_of("a", " \n . ") == ABSENT


@given(st.text())
def test_any_text_has_a_canonical_form_that_is_its_own(text: str) -> None:
    assert canonical(canonical(text)).strip() == canonical(text).strip()
    assert cluster_of("a", text) >= ABSENT


def test_an_insight_stands_for_the_entry_that_it_was_made_of(store: Store, indexes: IndexSet) -> None:
    write(store, indexes, "entry", "The river bends.", "JournalEntry")
    write(store, indexes, "insight", "The river bends")
    (hit,) = find(store, indexes, "where does the river bend")
    assert (hit.kind, hit.record_id) == ("Insight", "insight")
    assert hit.also == [("JournalEntry", "entry")]
    assert hit.times == 1  # the entry and what was made of it are one statement


def test_a_kind_that_is_by_user_is_returned_also_where_another_stands_for_it(store: Store, indexes: IndexSet) -> None:
    write(store, indexes, "entry", "The river bends.", "JournalEntry")
    write(store, indexes, "insight", "The river bends")
    (hit,) = find(store, indexes, "river", kinds=("JournalEntry",))
    assert (hit.record_id, list(hit.also)) == ("entry", [])


def test_what_was_said_three_times_is_one_row_of_its_newest_and_says_three(store: Store, indexes: IndexSet) -> None:
    for number in range(3):
        write(store, indexes, f"entry{number}", "The river bends.", "JournalEntry", at=number)
        write(store, indexes, f"insight{number}", "The river bends", at=number)
    (hit,) = find(store, indexes, "river")
    assert (hit.record_id, hit.times) == ("insight2", 3)
    assert [name for _, name in hit.also] == ["insight1", "insight0", "entry2", "entry1", "entry0"]


def test_ten_results_are_ten_facts_where_each_was_said_thirty_times(store: Store, indexes: IndexSet) -> None:
    for cluster in range(12):
        for number in range(30):
            write(store, indexes, f"f{cluster}n{number}", f"river number{cluster} bends", at=100 * number + cluster)
    found = find(store, indexes, "river bends")
    assert len({hit.text for hit in found}) == len(found) == 10
    assert {hit.times for hit in found} == {30}
    assert all(len(hit.also) == 10 for hit in found)  # the newest of them are named


def test_the_total_counts_facts(store: Store, indexes: IndexSet) -> None:
    for number in range(6):
        write(store, indexes, f"r{number}", f"river {number % 2}", at=number)
    query = Query("river", EMBEDDER.encode(["river"])[0], Filter("a"), 1)
    assert search(store.connection.cursor(), indexes, query).total == 2


def test_what_was_merged_is_one_row_and_what_only_has_its_text_is_another(store: Store, indexes: IndexSet) -> None:
    write(store, indexes, "first", "the login keeps failing", "Friction")
    write(store, indexes, "second", "login fails in case 2", "Friction", at=1)
    write(store, indexes, "said", "Login fails in case 2.", "JournalEntry", at=1)
    store.merge("second", "first")
    indexes.apply([], [])
    found = {hit.record_id: (list(hit.also), hit.times) for hit in find(store, indexes, "login fails")}
    assert found == {"first": ([("Friction", "second")], 2), "said": ([], 1)}, "a text that differs is not lost"


def test_what_was_merged_into_a_merged_record_goes_with_it(store: Store, indexes: IndexSet) -> None:
    for number, (record_id, into) in enumerate((("a", ""), ("b", "a"), ("c", "b"))):
        write(store, indexes, record_id, f"login fails {record_id}", "Friction", at=number)
        if into:
            store.merge(record_id, into)
    indexes.apply([], [])
    (hit,) = find(store, indexes, "login fails")
    assert (hit.record_id, hit.also, hit.times) == ("a", [("Friction", "c"), ("Friction", "b")], 3)


def test_an_order_of_coming_makes_no_other_answer(store: Store, indexes: IndexSet, tmp_path: Path) -> None:
    for number in range(4):
        write(store, indexes, f"r{number}", "The river bends", at=-number)
    write(store, indexes, "entry", "the river bends", "JournalEntry", at=9)
    live = find(store, indexes, "river")
    rebuilt = IndexSet(tmp_path / "rebuilt", store.connection.cursor, MODEL, sources=[JOURNAL])
    rebuilt.open(store.positions)
    assert [(hit.record_id, hit.also, hit.times) for hit in find(store, rebuilt, "river")] == [
        (hit.record_id, hit.also, hit.times) for hit in live
    ]
    assert live[0].record_id == "r0"
    rebuilt.close()


ENTRY = "The river bends in the north. Where does it rise? I believe the river is old."
PARTS = (("Observation", ENTRY), ("Question", "Where does it rise?"), ("Belief", "I believe the river is old"))


def test_a_sentence_that_was_extracted_from_an_entry_counts_as_the_entry(store: Store, indexes: IndexSet) -> None:
    write(store, indexes, "entry", ENTRY, "JournalEntry")
    extract(store, indexes, "e", *PARTS)
    extract(store, indexes, "f", ("Observation", "Another river is older. Where does that one rise?"))
    first, second = find(store, indexes, "where does the old river rise")
    assert {first.record_id, second.record_id} == {"e0", "f0"}
    whole = next(hit for hit in (first, second) if hit.record_id == "e0")
    assert sorted(whole.also) == [("Belief", "e2"), ("JournalEntry", "entry"), ("Question", "e1")]
    assert whole.times == 1  # what was said once, in whatever parts it was read


def test_a_sentence_is_a_row_of_its_own_where_its_kind_is_named(store: Store, indexes: IndexSet) -> None:
    extract(store, indexes, "e", *PARTS)
    extract(store, indexes, "f", ("Insight", "The delta is wide. Where does it rise?"), PARTS[1], at=1)
    asked = find(store, indexes, "where does it rise", kinds=("Question",))
    assert [(hit.record_id, hit.also, hit.times) for hit in asked] == [("f1", [("Question", "e1")], 2)]
    both = find(store, indexes, "i believe the river is old", kinds=("Belief", "Observation"))
    assert {(hit.record_id, tuple(hit.also)) for hit in both} == {("e0", ()), ("e2", ())}


def test_a_sentence_counts_as_the_entry_where_what_was_made_of_it_was_merged(store: Store, indexes: IndexSet) -> None:
    write(store, indexes, "entry", ENTRY, "JournalEntry")
    extract(store, indexes, "e", *PARTS)
    write(store, indexes, "head", "All rivers bend.", "Observation")
    store.merge("e0", "head")
    indexes.apply([], [])
    assert {hit.record_id for hit in find(store, indexes, "where does the old river rise")} == {"entry", "head"}


def test_a_word_of_a_longer_text_or_of_another_event_is_no_excerpt() -> None:
    said = [DocumentEntry(number, "a", text, event_id="e") for number, text in enumerate([ENTRY, "river", ENTRY + "."])]
    assert excerpts_of(said)[1] == set()
    alone = [DocumentEntry(number, "a", text) for number, text in enumerate([ENTRY, PARTS[1][1]])]
    assert excerpts_of(alone)[1] == set()


def test_excerpts_are_the_same_after_a_rebuild_and_gone_with_their_entry(
    store: Store, indexes: IndexSet, tmp_path: Path
) -> None:
    extract(store, indexes, "e", *PARTS)
    rebuilt = IndexSet(tmp_path / "rebuilt", store.connection.cursor, MODEL, sources=[JOURNAL])
    rebuilt.open(store.positions)
    shown = [
        [(hit.record_id, hit.also, hit.times) for hit in find(store, some, "where does the old river rise")]
        for some in (indexes, rebuilt)
    ]
    assert shown[0] == shown[1] and len(shown[0]) == 1
    rebuilt.close()
    store.connection.execute("DELETE FROM documents WHERE record_id = 'e0'")
    indexes.remove([label_of("e0")])
    assert {hit.record_id for hit in find(store, indexes, "where does the old river rise")} == {"e1", "e2"}


def test_what_an_excerpt_changes_is_changed_by_its_entry(store: Store, indexes: IndexSet) -> None:
    write(store, indexes, "old", "I believe the river is young.", "Belief", at=-9)
    extract(store, indexes, "e", *PARTS)
    store.connection.execute(
        "INSERT INTO memory_changes VALUES ('e2', 'old', .9, 'm', ?, 'a', 'thalweg.derived.v1', 0, 0, '')", [START]
    )
    indexes.apply([], [])
    hits = {hit.record_id: hit for hit in find(store, indexes, "I believe the river is young")}
    assert list(hits["e0"].earlier) == [("Belief", "old")]
    assert hits["e0"].score >= hits["old"].score
    assert list(hits["old"].disputed_by) == [("Observation", "e0")]


def test_a_record_that_is_gone_stands_for_nothing(store: Store, indexes: IndexSet) -> None:
    write(store, indexes, "old", "river")
    write(store, indexes, "new", "river", at=1)
    store.connection.execute("DELETE FROM documents WHERE record_id = 'new'")
    indexes.remove([label_of("new")])
    (hit,) = find(store, indexes, "river")
    assert (hit.record_id, list(hit.also), hit.times) == ("old", [], 1)


def test_sessions_are_found_by_each_of_their_records(store: Store, indexes: IndexSet) -> None:
    for session in ("s1", "s2"):
        moment = START + timedelta(hours=len(session))
        label = store.write(session, "the river bends", session_id=session, created_at=moment)
        indexes.apply([DocumentEntry(label, "a", "the river bends", session, moment)], [])
    found = search_sessions(store.connection.cursor(), indexes, Query("river", None, Filter("a"), 5))
    assert {hit.session_id for hit in found.sessions} == {"s1", "s2"}


def test_why_names_the_record_that_stands_for_another(store: Store, indexes: IndexSet) -> None:
    write(store, indexes, "entry", "The river bends.", "JournalEntry")
    write(store, indexes, "insight", "The river bends")
    query = Query("river", EMBEDDER.encode(["river"])[0], Filter("a"), 5)
    said = explain(store.connection.cursor(), indexes, query, "entry")
    assert said.verdict == "repeated" and "insight" in said.reasons[0]
    assert explain(store.connection.cursor(), indexes, query, "insight").verdict == "returned"


@given(st.data())
def test_every_record_of_a_fact_has_the_same_representative(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=12))
    clusters = Clusters([JOURNAL])
    for label, text in enumerate(texts):
        kind = data.draw(st.sampled_from([JOURNAL, ("talos", "Insight")]))
        clusters.add([DocumentEntry(label, "a", text, None, START + timedelta(minutes=label), kind)])
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, len(texts))] * 2), max_size=4))
    clusters.merge(pairs)
    allowed = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(texts))), min_size=1))), np.int64)
    found = clusters.find(allowed)
    standing = clusters.representatives(allowed, allowed)
    assert {len(set(standing[found == cluster].tolist())) for cluster in set(found.tolist())} == {1}
    assert set(standing.tolist()) <= set(allowed.tolist())
    assert clusters.find(standing).tolist() == found.tolist()


@given(st.data())
def test_what_stands_for_a_fact_does_not_depend_on_what_was_asked_before(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.sampled_from("abc"), min_size=2, max_size=12))
    entries = [
        DocumentEntry(label, "a", text, None, START + timedelta(minutes=label), ("talos", "Insight"))
        for label, text in enumerate(texts)
    ]
    clusters, allowed = Clusters([JOURNAL]), np.arange(len(texts))
    steps = data.draw(st.lists(st.sampled_from(["add", "merge", "remove"]), max_size=8))
    done: list[tuple[str, list[int]]] = []
    for step in ["add", *steps]:
        labels = data.draw(st.lists(st.sampled_from(range(len(texts))), min_size=2, max_size=2, unique=True))
        done.append((step, labels))
        change(clusters, step, labels, entries)
        fresh = Clusters([JOURNAL])
        for earlier in done:
            change(fresh, *earlier, entries)
        assert clusters.representatives(allowed, allowed).tolist() == fresh.representatives(allowed, allowed).tolist()


def change(clusters: Clusters, step: str, labels: list[int], entries: list[DocumentEntry]) -> None:
    if step == "add":
        clusters.add([entries[label] for label in labels])
    elif step == "merge":
        clusters.merge([(labels[0], labels[1])])
    else:
        clusters.remove(labels)


def test_of_a_fact_with_very_many_records_a_found_one_may_stand_for_it_whatever_was_asked_before() -> None:
    clusters = Clusters([JOURNAL])
    for label in range(MAX_COMPARED + 20):  # the first are the newest, and not among the last that came
        moment = START - timedelta(minutes=label)
        clusters.add([DocumentEntry(label, "a", "the same", None, moment, ("talos", "Insight"))])
    allowed = np.arange(MAX_COMPARED + 20)
    assert clusters.representatives(np.array([10]), allowed).tolist() == [10]
    assert clusters.representatives(np.array([5, 10]), allowed).tolist() == [5, 5]
    assert clusters.representatives(np.array([10]), allowed).tolist() == [10]

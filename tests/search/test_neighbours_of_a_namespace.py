"""What others remember changes no answer: the same places and scores, however much they have, in whatever words."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.search.entries import VectorEntry
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.search import search
from storage.search.vectors import vector_index as vector_module
from storage.search.words import keyword_index
from storage.search.words.keyword_index import KeywordIndex
from tests.search.store import EMBEDDER, MODEL, Store, label_of

QUERIES = ("river delta", "the old mill", "why does the gearbox whine", "bend", "river river mill stone water")
OWN = [
    f"{thing} {number} {where} {'and the water goes round and round it ' * (number % 5)}"
    for number, (thing, where) in enumerate(
        (thing, where)
        for thing in ("The river bends", "A mill stands", "The gearbox whines", "Stones fall")
        for where in ("in the delta", "at the bend", "near the old bridge", "in winter", "by the mill")
        for _ in range(4)
    )
]
FOREIGN = [f"{OWN[number % len(OWN)]} and again the river delta {number}"[: 20 + number % 90] for number in range(2000)]


def answers(store: Store, indexes: IndexSet, namespace: str = "a") -> list[list[tuple[str, float]]]:
    """For each query what is found with words and vectors, by words alone, and with their scores."""
    cursor = store.connection.cursor()
    found = []
    for query in QUERIES:
        for vector in (EMBEDDER.encode([query])[0], None):
            hits = search(cursor, indexes, Query(query, vector, Filter(namespace), 20)).hits
            found.append([(hit.record_id, hit.score) for hit in hits])
    return found


def add_foreign(store: Store, indexes: IndexSet) -> None:
    """Two thousand texts of the namespace `b` at once, made of a row of it."""
    store.write("foreign", FOREIGN[0], namespace="b", to=indexes)
    named = [f"foreign-{number}" for number in range(len(FOREIGN))]
    labels, vectors = [label_of(name, "b") for name in named], EMBEDDER.encode(FOREIGN)
    for table, extra in (("documents", ", unnest(?::VARCHAR[]) AS text"), ("embeddings", "")):
        given = [labels, named, *([FOREIGN] if extra else [])]
        store.connection.execute(
            f"INSERT INTO {table} SELECT {table}.* REPLACE (fresh.label AS label, fresh.record_id AS record_id"
            f"{', fresh.text AS text' if extra else ''}) FROM {table}, "
            f"(SELECT unnest(?::BIGINT[]) AS label, unnest(?::VARCHAR[]) AS record_id{extra}) AS fresh "
            "WHERE namespace = 'b'",
            given,
        )
    indexes.apply(
        [(label, "b", text) for label, text in zip(labels, FOREIGN, strict=True)],
        [VectorEntry(label, row, MODEL.space, MODEL.model_id) for label, row in zip(labels, vectors, strict=True)],
        store.positions,
    )


@pytest.mark.parametrize("is_committed", [False, True])
def test_ranks_and_scores_are_the_same_before_and_after_two_thousand_texts_of_another_namespace_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    """Also where they make so many rows that a namespace of that size would be searched through the graph."""
    monkeypatch.setattr(vector_module, "EXACT_ROWS", 500)
    monkeypatch.setattr(vector_module, "EXACT_LABELS", 10)
    store = Store()
    indexes = store.open(tmp_path)
    for number, text in enumerate(OWN):
        store.write(f"own-{number}", text, to=indexes)
    if is_committed:
        indexes.words.commit()
    before = answers(store, indexes)
    add_foreign(store, indexes)
    live = indexes.spaces.live
    assert live is not None and len(live.index) > len(FOREIGN)
    if is_committed:
        indexes.words.commit()
        while live.index.link():
            pass
    with monkeypatch.context() as patch:
        patch.setattr(vector_module, "query_graph", lambda *_: pytest.fail("the graph was asked for so few"))
        assert answers(store, indexes) == before
    assert all(before), "each query finds something"
    assert all(answers(store, indexes, "b")), "and so do those of the other"
    indexes.close(save=False)


def test_counts_of_words_are_those_of_a_namespace_also_after_a_save(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path)
    index.add([(1, "a", "river mill"), (2, "a", "river stone and more stone"), (3, "b", "mill")])
    index.commit()
    before = index.search("river mill", "a", 5), index.ceiling("river mill", "a")
    index.add([(number, "b", "mill mill river " * (number % 7)) for number in range(10, 400)])
    assert (index.search("river mill", "a", 5), index.ceiling("river mill", "a")) == before
    index.save({})
    index.close()
    loaded = KeywordIndex.load(tmp_path)
    assert loaded is not None
    assert (loaded.search("river mill", "a", 5), loaded.ceiling("river mill", "a")) == before
    assert {label for label, _ in loaded.search("mill", "b", 999)} == {3, *(n for n in range(10, 400) if n % 7)}
    loaded.close()


def test_only_a_few_namespaces_keep_a_writer_and_all_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyword_index, "MAX_WRITERS", 2)
    index = KeywordIndex(tmp_path)
    for turn in range(2):
        for number in range(6):
            index.add([(10 * turn + number, f"n{number}", f"river {turn}")])
            index.commit()
            assert sum(shard.is_writing for shard in index._shards.values()) <= 2
    for number in range(6):
        assert {label for label, _ in index.search("river", f"n{number}", 9)} == {number, 10 + number}
    index.remove([3, 13])
    assert index.search("river", "n3", 9) == [] and len(index) == 10
    index.close()

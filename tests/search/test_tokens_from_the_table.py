"""Whatever file of token vectors is there at the start, incomplete or another log's: then it has the table's."""

from pathlib import Path

import numpy as np
import pytest

from processors.embedding.loader import MINILM
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.records.selection import Selection
from storage.search.search import search
from storage.search.vectors.token_store import TokenStore
from storage.search.vectors.token_vectors import WIDTH, Tokens, pack
from tests.search.store import Store, label_of, unit_rows


def packed(seed: int) -> str:
    count = 1 + seed % 3
    return pack(
        Tokens(np.arange(seed, seed + count, dtype=np.uint16), unit_rows(count, WIDTH, seed=seed), np.ones(count, bool))
    )


@pytest.fixture(scope="module")
def store() -> Store:
    """What all tests of this module read."""
    store = Store()
    for number in range(30):
        store.write(f"r{number}", f"text {number}", vector=unit_rows(1, 384, seed=number)[0], model_id=MINILM.model_id)
        store.connection.execute(
            "UPDATE embeddings SET space = ?, tokens = ? WHERE record_id = ?",
            [MINILM.space, packed(number), f"r{number}"],
        )
    return store


def held(indexes: IndexSet) -> dict[int, bytes]:
    assert indexes.wait_ready(60)
    assert indexes.spaces.live is not None
    tokens = indexes.spaces.live.tokens
    return {label: tokens.packed_body(label) for label in tokens.labels().tolist()}


def open_and_read(store: Store, directory: Path) -> dict[int, bytes]:
    indexes = store.open(directory, MINILM)
    found = held(indexes)
    indexes.close(save=False)
    return found


@pytest.mark.parametrize("at_once", [5_000, 3])
@pytest.mark.parametrize("harm", ["none", "gone", "cut", "foreign", "another log"])
def test_whatever_lay_there_afterwards_it_is_the_tables(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str, at_once: int
) -> None:
    monkeypatch.setattr("storage.search.index_set.CATCH_UP_ROWS", at_once)
    whole = open_and_read(store, tmp_path)
    assert sorted(whole) == sorted(label_of(f"r{number}") for number in range(30))
    [path] = (tmp_path / "tokens").iterdir()
    if harm == "gone":
        path.unlink()
    elif harm == "cut":
        path.write_bytes(path.read_bytes()[:-700])
    elif harm != "none":
        file = TokenStore(path, MINILM.space, MINILM.model_id)
        if harm == "another log":
            file.clear()
        file.add([(1, packed(50)), *((label, packed(60 + place)) for place, label in enumerate(whole))])
        file.close()
    (path.parent / "another.tokens").write_bytes(b"of a model that is not held")
    assert open_and_read(store, tmp_path) == whole
    assert [other.name for other in path.parent.iterdir()] == [path.name]


def test_while_the_keyword_index_is_built_a_search_finds_what_is_in_it_and_the_newest_that_are_not(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IndexSet, "_rebuild", lambda self: None)
    monkeypatch.setattr("storage.search.words.backfill.CATCH_UP_ROWS", 3)
    monkeypatch.setattr("storage.search.words.words.SCANNED_ROWS", 10)
    indexes = store.open(tmp_path, MINILM)
    indexes.words.index.add([(label_of(f"r{number}"), "a", f"text {number}") for number in range(25, 30)])
    indexes.words._unindexed = 25
    cursor, away = store.connection.cursor(), unit_rows(1, 384, seed=99)[0]

    def found(vector: np.ndarray | None, text: str) -> list[str]:
        query = Query(text, vector, Filter("a"), 30, min_cosine=2.0)
        return [hit.record_id for hit in search(cursor, indexes, query).hits]

    assert found(away, "text 27")[0] == "r27"
    assert found(away, "text 16")[0] == "r16"
    assert "r3" not in found(away, "text 3")
    assert found(None, "text 3")[0] == "r3"
    assert "being rebuilt" in str(search(cursor, indexes, Query("text 3", away, Filter("a"), 3)).degraded)
    indexes.close(save=False)


def test_among_chosen_documents_the_same_ones_have_the_words_while_the_index_is_rebuilt(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as held_up:
        held_up.setattr(IndexSet, "_rebuild", lambda self: None)
        held_up.setattr("storage.search.words.backfill.CATCH_UP_ROWS", 3)
        indexes = store.open(tmp_path, MINILM)
    words, cursor = indexes.words, store.connection.cursor()
    chosen = Selection(np.sort(np.array([label_of(f"r{number}") for number in range(0, 30, 2)], np.int64)))
    everything = indexes.records.allowed(cursor, Filter("a"))

    def found(text: str) -> tuple[list[bool], set[int]]:
        matches = words.best_of(cursor, text, "a", chosen.labels, 30)
        assert [score for _, score in words.best_of(cursor, text, "a", chosen.labels, 1)] == [
            score for _, score in matches[:1]
        ]
        return words.contained_in(cursor, text, "a", chosen).tolist(), {label for label, _ in matches}

    asked = ["text", "4 16", "5", "elsewhere"]
    assert not words.is_ready and words.postings("text", everything, 50) == {}
    before = [found(text) for text in asked]
    words.rebuild(cursor, lambda: True)  # stopped at once
    assert not words.is_ready and [found(text) for text in asked] == before
    words.rebuild(cursor, lambda: False)
    assert words.is_ready and len(words.postings("text", everything, 50)["text"]) == 30
    assert [found(text) for text in asked] == before
    of_two = {label_of("r4"), label_of("r16")}
    assert [sum(marked) for marked, _ in before] == [15, 2, 0, 0] and before[1][1] == of_two
    assert words.best_of(cursor, "text", "a", np.empty(0, np.int64), 2) == []
    indexes.close(save=False)

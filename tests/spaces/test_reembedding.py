"""What a space lacks is asked of the store; the facts that fill it are functions of what they embed."""

from __future__ import annotations

import numpy as np
import pytest

from processors.memory.reembedding import facts_of, missing_labels, read_texts
from processors.memory.stages.embed import encode_texts
from storage.vector_codec import read_vector
from streams.log.base import RECORD_BYTES
from tests.spaces.making import FIRST, ONE, SECOND, TWO, Spaces


@pytest.fixture
def store() -> Spaces:
    store = Spaces()
    store.register(FIRST)
    store.switch(ONE)
    for number in range(7):
        store.write(f"caches lie {number}", id=f"e{number}")
    store.register(SECOND)
    return store


def test_filling_goes_on_where_it_was_and_ends_with_every_text(store: Spaces) -> None:
    assert [store.fill(SECOND, limit=3) for _ in range(4)] == [7, 4, 1, 0]
    assert store.vectors(TWO) == 7
    assert store.sql("SELECT count(*) FROM duplicates") == [(0,)]


def test_the_vectors_are_those_of_the_texts_on_the_log(store: Spaces) -> None:
    store.fill(SECOND)
    rows = store.sql(
        "SELECT d.text, e.vector FROM embeddings e JOIN documents d ON d.label = e.label WHERE e.space = ?", TWO
    )
    assert len(rows) == 7
    for text, vector in rows:
        assert np.allclose(read_vector(vector), SECOND.encode([text])[0], atol=1e-6)


def test_what_is_written_meanwhile_is_found_missing(store: Spaces) -> None:
    store.fill(SECOND)
    store.write("readers block", id="later")
    assert store.fill(SECOND) == 1
    assert store.vectors(TWO) == 8


def test_the_same_building_gives_the_same_facts_and_another_building_others(store: Spaces) -> None:
    cursor = store.database.cursor()
    texts = read_texts(cursor, missing_labels(cursor, TWO)[0])
    encoded = encode_texts(SECOND, [missing.text for missing in texts])

    def ids(building: str) -> list[str]:
        return [fact.id for group in facts_of(SECOND.info, building, texts, encoded, RECORD_BYTES) for fact in group]

    assert ids("a") == ids("a")
    assert not set(ids("a")) & set(ids("b"))


def test_a_space_that_was_dropped_can_be_built_again(store: Spaces) -> None:
    store.fill(SECOND)
    store.drop(TWO)
    assert store.vectors(TWO) == 0
    store.register(SECOND)
    store.fill(SECOND)
    assert store.vectors(TWO) == 7


def test_without_any_space_every_document_is_missing() -> None:
    store = Spaces()
    store.write("caches lie", id="e1", embedder=None)
    store.register(FIRST)
    assert store.fill(FIRST) == 1
    assert store.vectors(ONE) == 1

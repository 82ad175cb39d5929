"""The registry: which space answers is decided in the order of the log; what answers cannot be dropped."""

from __future__ import annotations

import numpy as np
import pytest

from processors.memory.vector_facts import embedded_by, encode_vector
from streams.event_types.memory import EMBEDDED
from tests.spaces.making import FIRST, ONE, SECOND, TWO, Spaces


@pytest.fixture
def store() -> Spaces:
    store = Spaces()
    store.register(FIRST)
    store.switch(ONE)
    return store


def test_a_registration_says_how_the_vectors_are_made(store: Spaces) -> None:
    [row] = store.sql(
        "SELECT state, model_id, revision, dim, dtype, pooling, query_prefix, document_prefix, provider, is_trained "
        "FROM embedding_spaces"
    )
    assert row == ("live", "hashing-384", "1", 384, "float32", "sum", "", "", "numpy", False)


def test_a_space_is_built_beside_the_one_that_answers_and_then_takes_its_place(store: Spaces) -> None:
    store.register(SECOND)
    assert store.states() == {ONE: "live", TWO: "building"}
    store.switch(TWO)
    assert store.states() == {ONE: "kept", TWO: "live"}
    assert store.sql("SELECT kind, space FROM live_spaces") == [("text", TWO)]


def test_one_can_go_back_to_a_space_that_is_kept(store: Spaces) -> None:
    store.register(SECOND)
    store.switch(TWO)
    store.register(FIRST)
    assert store.states() == {ONE: "building", TWO: "live"}
    store.switch(ONE)
    assert store.states() == {ONE: "live", TWO: "kept"}


def test_a_switch_to_what_nobody_registered_or_what_was_dropped_changes_nothing(store: Spaces) -> None:
    store.switch("text/unknown")
    store.register(SECOND)
    store.drop(TWO)
    store.switch(TWO)
    assert store.states() == {ONE: "live", TWO: "dropped"}
    assert store.sql("SELECT space FROM live_spaces") == [(ONE,)]


def test_the_space_that_answers_cannot_be_dropped(store: Spaces) -> None:
    store.write("caches lie", id="e1")
    store.drop(ONE)
    assert store.states() == {ONE: "live"}
    assert store.vectors(ONE) == 1


def test_a_dropped_space_has_no_vectors_whichever_way_the_partitions_interleave(store: Spaces) -> None:
    record_id = store.write("caches lie", id="e1")
    store.register(SECOND)
    store.embed(SECOND, record_id, "caches lie")
    assert store.vectors(TWO) == 1
    store.drop(TWO)
    late = store.write("readers block", id="e2")
    store.embed(SECOND, late, "readers block")
    assert (store.vectors(ONE), store.vectors(TWO)) == (2, 0)


def test_a_space_keeps_the_revision_that_it_was_registered_with(store: Spaces) -> None:
    store.register(SECOND)
    store.drop(TWO)
    store.register(SECOND, revision="2")
    assert store.states()[TWO] == "dropped"
    assert store.sql("SELECT revision FROM spaces WHERE space = ?", TWO) == [("1",)]


def test_vectors_of_a_space_that_nobody_registered_are_shown_as_foreign(store: Spaces) -> None:
    record_id = store.write("caches lie", id="e1")
    store.embed(SECOND, record_id, "caches lie")
    assert store.sql("SELECT space, state, vectors, is_trained FROM embedding_spaces ORDER BY dim DESC") == [
        (ONE, "live", 1, False),
        (TWO, "foreign", 1, False),
    ]


@pytest.mark.parametrize(
    ("vector", "tokens", "error"),
    [
        (np.ones(5, np.float32), None, "a vector is not 16 finite numbers"),
        (np.full(16, np.nan, np.float32), None, "a vector is not 16 finite numbers"),
        (np.ones(16, np.float32), "bm8=", None),  # whatever its reader says
    ],
)
def test_a_vector_that_no_search_can_use_is_a_dead_letter_and_the_others_are_applied(
    store: Spaces, vector: np.ndarray, tokens: str | None, error: str | None
) -> None:
    record_id = store.write("caches lie", id="e1")
    item = {"record_id": record_id, "vector": encode_vector(vector)} | ({"tokens": tokens} if tokens else {})
    store.happen(EMBEDDED, embedded_by(SECOND.info) | {"vectors": [item]})
    [(error_type, message)] = store.sql("SELECT error_type, error_message FROM dead_letters")
    assert error_type == "ValueError" and (error is None or message == error)
    assert store.vectors(TWO) == 0 and store.vectors(ONE) == 1
    store.embed(SECOND, record_id, "caches lie")
    assert store.vectors(TWO) == 1

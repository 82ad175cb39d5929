"""Token vectors in a file: a damaged end costs what was in it, another model's or log's file is not used."""

import os
from pathlib import Path

import numpy as np
import pytest

from storage.search.vectors.token_store import TokenStore
from storage.search.vectors.token_vectors import WIDTH, Tokens, pack
from tests.search.store import unit_rows

QUERY = Tokens(np.arange(4, dtype=np.uint16), unit_rows(4, WIDTH, seed=9), np.ones(4, bool))


def said(label: int) -> tuple[int, str]:
    """Between one and five tokens."""
    count = 1 + label % 5
    return label, pack(
        Tokens(
            np.arange(label, label + count, dtype=np.uint16), unit_rows(count, WIDTH, seed=label), np.ones(count, bool)
        )
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = TokenStore(tmp_path / "tokens", "space", "model")
    store.add(map(said, range(1, 21)))
    store.close()
    return tmp_path / "tokens"


def opened(path: Path, model_id: str = "model") -> TokenStore:
    return TokenStore(path, "space", model_id)


def test_what_was_added_is_there_after_a_start_and_scores_alike(path: Path, tmp_path: Path) -> None:
    anew = TokenStore(tmp_path / "anew", "space", "model")
    anew.add(map(said, range(1, 21)))
    again = opened(path)
    labels = np.arange(20, 0, -1)
    assert again.labels().tolist() == anew.labels().tolist() == list(range(1, 21))
    assert again.lengths(np.array([1, 4, 99])).tolist() == [2, 5, 0]
    assert np.array_equal(again.weights(QUERY), anew.weights(QUERY))
    known, found = again.similarities(QUERY, np.array([99, *labels]))
    assert known.tolist() == [False, *[True] * 20]
    assert np.array_equal(found, anew.similarities(QUERY, labels)[1])


@pytest.mark.parametrize("cut", [1, 100, 10_000])
def test_a_write_that_was_cut_off_costs_the_records_from_there_on_and_they_can_be_added_again(
    path: Path, cut: int
) -> None:
    os.truncate(path, max(0, path.stat().st_size - cut))
    store = opened(path)
    held = store.labels().tolist()
    assert held == list(range(1, len(held) + 1))
    assert len(held) < 20
    store.add(map(said, range(1, 21)))
    assert len(store) == len(opened(path)) == 20


def test_a_flipped_bit_ends_what_is_believed(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)
    assert 0 < len(opened(path)) < 20


def test_the_file_of_another_model_is_begun_anew(path: Path) -> None:
    assert len(opened(path, "another")) == 0
    assert len(opened(path)) == 0


def test_what_was_removed_leaves_no_number_in_the_file_and_stays_away(path: Path) -> None:
    store = opened(path)
    body = store.packed_body(7)
    assert body in path.read_bytes()
    store.remove([7, 99])
    assert body not in path.read_bytes()
    assert 7 not in store
    assert opened(path).labels().tolist() == [label for label in range(1, 21) if label != 7]

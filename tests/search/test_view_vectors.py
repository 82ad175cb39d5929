"""Vectors that a view's own model makes: how they are compared, averaged and kept in a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from storage.search.vectors.model_vector import (
    MOST_TERMS,
    NOTHING,
    ModelVector,
    mean_vector,
    pack_vector,
    rows_vector,
    similarities,
    terms_vector,
    unpack_vector,
)
from storage.search.vectors.vector_file import VectorFile, text_digest

CHANCE = np.random.default_rng(3)
DENSE = [rows_vector(CHANCE.normal(size=24)) for _ in range(5)]
BY_TOKEN = [rows_vector(CHANCE.normal(size=(count, 24))) for count in (1, 3, 8)]
TERMS = [terms_vector(CHANCE.permutation(60)[:12], CHANCE.random(12).astype(np.float32)) for _ in range(5)]


def spread(one: ModelVector) -> np.ndarray:
    """The weights of terms as a row of all 60."""
    assert one.terms is not None
    row = np.zeros(60)
    row[one.terms] = one.rows
    return row


@pytest.mark.parametrize("vector", [*DENSE, *BY_TOKEN, *TERMS, NOTHING])
def test_a_vector_is_kept_to_a_thousandth(vector: ModelVector) -> None:
    found = unpack_vector(pack_vector(vector))
    assert found.rows.shape == vector.rows.shape and np.abs(found.rows - vector.rows).max(initial=0) < 1e-3
    assert (found.terms is None) == (vector.terms is None)
    assert vector.terms is None or np.array_equal(found.terms, vector.terms)  # type: ignore[arg-type]


def test_single_rows_are_compared_by_cosine_rows_by_their_best_matches_and_terms_by_cosine() -> None:
    assert similarities(DENSE[0], DENSE) == pytest.approx([float(DENSE[0].rows[0] @ one.rows[0]) for one in DENSE])
    asked = BY_TOKEN[1]
    best = [(asked.rows @ one.rows.T).max(axis=1).mean() for one in BY_TOKEN]
    assert similarities(asked, BY_TOKEN) == pytest.approx(best)
    assert similarities(TERMS[0], TERMS) == pytest.approx([spread(TERMS[0]) @ spread(one) for one in TERMS])
    assert similarities(TERMS[0], TERMS)[0] == pytest.approx(1)


def test_what_is_missing_empty_or_of_another_kind_is_not_compared() -> None:
    other = rows_vector(np.ones(7))
    assert np.isnan(similarities(DENSE[0], [None, NOTHING, TERMS[0], other])).all()
    assert np.isnan(similarities(NOTHING, [DENSE[0]])).all()


def test_the_mean_is_of_length_one_counts_by_weights_and_is_among_the_texts_where_rows_are_by_token() -> None:
    mean = mean_vector(DENSE[:2], np.array([1.0, 0.0]))
    assert mean is not None and mean.rows == pytest.approx(DENSE[0].rows)
    both = mean_vector([*DENSE[:2], NOTHING])
    assert both is not None and np.linalg.norm(both.rows) == pytest.approx(1)
    assert both.rows[0] @ DENSE[0].rows[0] == pytest.approx(both.rows[0] @ DENSE[1].rows[0], abs=1e-6)
    terms = mean_vector(TERMS)
    assert terms is not None
    expected = np.sum([spread(one) for one in TERMS], axis=0)
    assert spread(terms) == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)
    assert any(mean_vector(BY_TOKEN) is one for one in BY_TOKEN)
    assert mean_vector([NOTHING]) is None and mean_vector([]) is None


def test_of_terms_the_heaviest_are_kept_in_their_order() -> None:
    count = MOST_TERMS + 10
    kept = terms_vector(np.arange(count)[::-1], np.arange(count, dtype=np.float32)[::-1] + 1)
    assert kept.terms is not None and kept.terms.tolist() == list(range(10, count))


def bodies(path: Path, space: str = "one") -> dict[int, bytes]:
    file = VectorFile(path, space)
    try:
        return file.read(file.labels().tolist())
    finally:
        file.close()


def test_a_file_keeps_what_was_added_whole_whatever_of_its_end_is_lost(tmp_path: Path) -> None:
    path, sizes, kept = tmp_path / "deep" / "E7.vectors", [], {}
    file = VectorFile(path, "one")
    for label in (5, -3, 9):
        file.add([(label, text_digest(str(label)), bytes([label & 255]) * (20 + label))])
        kept[label] = bytes([label & 255]) * (20 + label)
        sizes.append(file.size)
    assert file.read([9, 4, 5]) == {9: kept[9], 5: kept[5]}
    file.close()
    whole = path.read_bytes()
    for length in range(len(whole), sizes[0] - 1, -1):
        path.write_bytes(whole[:length])
        present = [label for label, size in zip(kept, sizes, strict=True) if size <= length]
        assert bodies(path) == {label: kept[label] for label in present}
        file = VectorFile(path, "one")
        file.add([(9, text_digest("9"), b"again")])
        file.close()
        assert bodies(path)[9] == b"again"
    path.write_bytes(whole[:-1] + b"?")
    assert set(bodies(path)) == {5, -3}, "what was changed on the disk is not taken for a vector"


def test_a_file_of_another_space_begins_anew(tmp_path: Path) -> None:
    file = VectorFile(tmp_path / "one", "one")
    file.add([(1, text_digest("a"), b"body")])
    file.close()
    assert bodies(tmp_path / "one", "two") == {}


def test_a_label_whose_text_has_changed_is_told_and_its_new_vector_counts(tmp_path: Path) -> None:
    file = VectorFile(tmp_path / "one", "one")
    file.add([(1, text_digest("a"), b"of a"), (2, text_digest("b"), b"of b")])
    file.close()
    file = VectorFile(tmp_path / "one", "one")
    changed = file.stale({1: text_digest("a"), 2: text_digest("other"), 3: text_digest("c")})
    assert changed == [2]
    file.remove(changed)
    assert file.labels().tolist() == [1]
    file.add([(2, text_digest("other"), b"of other")])
    file.close()
    assert bodies(tmp_path / "one") == {1: b"of a", 2: b"of other"}

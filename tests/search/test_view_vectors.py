"""Vectors that a view's own model makes: how they are compared, averaged and kept in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from storage.search.vectors.model_vector import (
    MOST_TERMS,
    NOTHING,
    ModelVector,
    join_passages,
    mean_vector,
    pack_vector,
    rows_vector,
    similarities,
    terms_vector,
    unpack_vector,
)
from storage.search.vectors.vector_file import VectorFile, text_digest
from storage.search.vectors.view_spaces import ViewSpace

CHANCE = np.random.default_rng(3)
DENSE = [rows_vector(CHANCE.normal(size=24)) for _ in range(5)]
BY_TOKEN = [rows_vector(CHANCE.normal(size=(count, 24))) for count in (1, 3, 8)]
TERMS = [terms_vector(CHANCE.permutation(60)[:12], CHANCE.random(12).astype(np.float32)) for _ in range(5)]
LONG = [join_passages(DENSE[:3]), join_passages(BY_TOKEN), join_passages(TERMS[1:4])]
"""Each of three passages."""


def spread(one: ModelVector) -> np.ndarray:
    """The weights of terms as a row of all 60."""
    assert one.terms is not None
    row = np.zeros(60)
    row[one.terms] = one.rows
    return row


@pytest.mark.parametrize("vector", [*DENSE, *BY_TOKEN, *TERMS, *LONG, NOTHING])
def test_a_vector_is_kept_to_a_thousandth(vector: ModelVector) -> None:
    found = unpack_vector(pack_vector(vector))
    assert found.rows.shape == vector.rows.shape and np.abs(found.rows - vector.rows).max(initial=0) < 1e-3
    assert (found.terms is None) == (vector.terms is None)
    assert vector.terms is None or np.array_equal(found.terms, vector.terms)  # type: ignore[arg-type]
    assert [len(one.rows) for one in found.passages] == [len(one.rows) for one in vector.passages]


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


@pytest.mark.parametrize(("long", "short"), zip(LONG, (DENSE, BY_TOKEN, TERMS), strict=True))
def test_of_a_long_text_the_passage_counts_that_matches_best(long: ModelVector, short: list[ModelVector]) -> None:
    parts = long.passages
    assert len(parts) == 3
    for one in short:
        assert similarities(one, [long])[0] == pytest.approx(similarities(one, parts).max(), abs=1e-6)
    each = [similarities(part, [short[0]])[0] for part in parts]
    assert similarities(long, [short[0]])[0] == pytest.approx(np.mean(each), abs=1e-6)
    assert join_passages([NOTHING, parts[0]]) is parts[0] and join_passages([NOTHING]) is NOTHING


def vectors_of(kind: str) -> list[ModelVector]:
    """Of 60 texts, every fourth of two passages and one of nothing."""
    if kind == "sparse":
        made = [terms_vector(CHANCE.permutation(60)[:9], CHANCE.random(9).astype(np.float32)) for _ in range(60)]
    else:
        counts = CHANCE.integers(1, 9, 60) if kind == "multi-vector" else np.ones(60, int)
        made = [rows_vector(CHANCE.normal(size=(count, 16))) for count in counts]
    return [NOTHING, *(join_passages([one, made[0]]) if place % 4 == 0 else one for place, one in enumerate(made[1:]))]


@dataclass(frozen=True)
class Model:
    """What a space must know of its model."""

    kind: str
    space: str = "text/one"
    model_id: str = "one"
    provider: str = "here"
    dim: int = 16

    @property
    def info(self) -> Model:
        return self

    def encode_query(self, text: str) -> ModelVector:
        raise AssertionError(f"{text} is not asked")


@pytest.mark.parametrize("kind", ["dense", "clip", "sparse", "multi-vector"])
def test_a_space_finds_what_is_nearest_of_all_that_are_allowed_also_after_a_restart(kind: str, tmp_path: Path) -> None:
    vectors, queries = vectors_of(kind), [one.passages[0] for one in vectors_of(kind)[1:9]]
    space = ViewSpace(Model(kind), tmp_path / "E1.vectors")
    for start in range(0, 60, 7):
        space.add([(label, b"digest..", vectors[label]) for label in range(start, min(start + 7, 60))])
    allowed = np.array([label for label in range(60) if label % 3], np.int64)
    for query in queries:
        expected = similarities(query, [vectors[label] for label in allowed])
        for k in (1, 5, 100):
            found = space.nearest(query, k, allowed)
            best = sorted((score for score in expected.tolist() if kind != "sparse" or score > 0), reverse=True)[:k]
            assert [score for _, score in found] == pytest.approx(best, abs=2e-3)
            assert [expected[np.flatnonzero(allowed == label)[0]] for label, _ in found] == pytest.approx(
                best, abs=2e-3
            )
    space.file.close()
    again = ViewSpace(Model(kind), tmp_path / "E1.vectors")
    again.index(lambda: None)
    for query in queries:
        best = np.sort(similarities(query, [vectors[label] for label in allowed]))  # NaN is last
        best = best[~np.isnan(best)][-5:]
        assert sorted(score for _, score in again.nearest(query, 5, allowed)) == pytest.approx(best, abs=2e-3)
    assert again.nearest(NOTHING, 5, allowed) == []
    again.file.close()


def test_half_of_what_a_clip_model_finds_are_images_where_there_are_any(tmp_path: Path) -> None:
    vectors, images = vectors_of("clip"), {11, 12, 13}
    space = ViewSpace(Model("clip"), tmp_path / "E10.vectors")
    assert space.images is not None
    space.add([(label, b"digest..", vector) for label, vector in enumerate(vectors)])
    space.images.add(sorted(images))
    every, query = np.arange(60, dtype=np.int64), vectors[2].passages[0]
    assert len({label for label, _ in space.nearest(query, 4, every)} & images) == 2
    assert {label for label, _ in space.nearest(query, 10, every)} > images
    assert not {label for label, _ in space.nearest(query, 4, np.array([1, 2, 3, 5]))} & images
    space.file.close()


def test_of_many_texts_by_token_those_are_compared_whose_mean_is_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = vectors_of("multi-vector")
    space = ViewSpace(Model("multi-vector"), tmp_path / "E12.vectors")
    space.add([(label, b"digest..", vector) for label, vector in enumerate(vectors)])
    every = np.arange(60, dtype=np.int64)
    exact = space.nearest(vectors[5], 20, every)
    monkeypatch.setattr("storage.search.vectors.row_lists.COMPARED", 30)
    some = space.nearest(vectors[5], 20, every)
    assert some[0][0] == 5 and dict(some).items() <= dict(space.nearest(vectors[5], 60, every)).items()
    assert len(dict(some).keys() & dict(exact).keys()) >= 12
    space.file.close()


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

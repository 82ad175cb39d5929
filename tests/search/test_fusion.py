"""Fusion: the check vectors of talos 6, and its order."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.search.ranking.fusion import fuse, ordered

NOW = datetime(2026, 1, 1, tzinfo=UTC)
rankings = st.lists(st.integers(0, 30), unique=True, max_size=20)


def test_first_on_all_sides_scores_one() -> None:
    assert fuse({"vector": [7], "keyword": [7], "graph": [7]})[7] == pytest.approx(1.0)


def test_first_by_vector_only_scores_a_half() -> None:
    assert fuse({"vector": [7], "keyword": [], "graph": []})[7] == pytest.approx(0.5)


def test_second_by_keyword_only_scores_its_share() -> None:
    assert fuse({"keyword": [1, 7]})[7] == pytest.approx(0.295161, abs=1e-6)


def test_a_tie_goes_to_the_newer_and_then_to_the_smaller_id() -> None:
    described = {1: (NOW, "b"), 2: (NOW, "a"), 3: (NOW + timedelta(seconds=1), "c")}
    assert ordered({1: 0.5, 2: 0.5, 3: 0.5}, described) == [3, 2, 1]


def test_sums_that_differ_only_by_rounding_are_a_tie() -> None:
    assert ordered({1: 0.1 + 0.2, 2: 0.3}, {1: (NOW, "b"), 2: (NOW, "a")}) == [2, 1]


@given(vector=rankings, keyword=rankings, graph=rankings)
def test_scores_lie_between_none_and_one_and_a_better_rank_never_lowers_them(
    vector: list[int], keyword: list[int], graph: list[int]
) -> None:
    scores = fuse({"vector": vector, "keyword": keyword, "graph": graph})
    assert set(scores) == {*vector, *keyword, *graph}
    assert all(0.0 < score <= 1.0 + 1e-12 for score in scores.values())
    for better, worse in pairwise(vector):
        swapped = fuse(
            {
                "vector": [worse if x == better else better if x == worse else x for x in vector],
                "keyword": keyword,
                "graph": graph,
            }
        )
        assert swapped[worse] >= scores[worse]

"""The check vectors of significance and relevance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.talos.rules.significance import SignificanceCounts, rate, relevance


def test_the_example_is_urgent_with_61_points() -> None:
    rating = rate(SignificanceCounts(high=2, recurring=3, emerging=1, confirmed=2, contradictions=0, questions=4))
    assert (rating.score, rating.level) == (61, "URGENT")


def test_nothing_at_all_is_stable() -> None:
    assert (rate(SignificanceCounts()).score, rate(SignificanceCounts()).level) == (0, "STABLE")


@pytest.mark.parametrize(
    ("counts", "score", "level"),
    [
        (SignificanceCounts(high=2, recurring=4), 50, "URGENT"),
        (SignificanceCounts(recurring=4, emerging=2), 30, "ATTENTION"),
        (SignificanceCounts(high=1), 15, "REVIEW"),
        (SignificanceCounts(contradictions=1), 10, "REVIEW"),
        (SignificanceCounts(emerging=3), 15, "MONITOR"),
        (SignificanceCounts(questions=9), 5, "STABLE"),
    ],
)
def test_each_level_has_its_threshold(counts: SignificanceCounts, score: int, level: str) -> None:
    assert (rate(counts).score, rate(counts).level) == (score, level)


@given(st.builds(SignificanceCounts, **{name: st.integers(0, 10**6) for name in SignificanceCounts.__slots__}))
def test_a_score_is_never_above_100_and_never_falls_when_a_count_rises(counts: SignificanceCounts) -> None:
    assert 0 <= rate(counts).score <= 100
    for name in SignificanceCounts.__slots__:
        more = SignificanceCounts(**{**counts.to_json(), name: getattr(counts, name) + 1})
        assert rate(more).score >= rate(counts).score


def test_relevance_weighs_meaning_indicators_and_occurrences() -> None:
    assert relevance(0.8, 1, 2, 5) == pytest.approx(0.65)
    assert relevance(0.8, 0, 0, 5) == pytest.approx(0.714286, abs=1e-6)
    assert relevance(-1.0, 0, 2, 0) == 0.0
    assert relevance(1.0, 2, 2, 99) == pytest.approx(1.0)

"""Relevance as a function of what was found: only the first rows count, and what is unknown is not guessed."""

from __future__ import annotations

from datetime import datetime

import pytest

from processors.memory.rules.relevance import FIRST, FLOOR, LEVEL, Calibration, is_nothing, relevance_of
from storage.search.records.hits import SearchHit


def hit(score: float, late: float | None) -> SearchHit:
    sides = {} if late is None else {"late": (1, late)}
    return SearchHit(
        1, "r", "text", "context_graph", None, None, "Said.", datetime(2026, 1, 5), score=score, sides=sides
    )


def test_a_row_that_stands_out_is_probably_right_and_one_of_many_alike_is_not() -> None:
    alike = relevance_of([hit(0.3, 0.5)] * FIRST).values
    apart = relevance_of([hit(0.5, 0.5), *[hit(0.3, 0.5)] * (FIRST - 1)]).values
    assert all(value is not None for value in (*alike, *apart))
    assert apart[0] > 0.7 > 0.2 > alike[0] > alike[-1]  # type: ignore[operator]
    assert apart[1:] == alike[1:]


def test_a_row_is_not_ahead_because_few_others_were_found() -> None:
    [alone] = relevance_of([hit(LEVEL, 0.3)]).values
    among_others = relevance_of([hit(LEVEL, 0.3)] * FIRST).values[0]
    assert alone == among_others and alone is not None and alone < 0.1
    told, *_ = relevance_of([hit(0.6, 0.8), hit(0.1, 0.2)]).values
    assert told is not None and told > 0.9, "what was meant stands out without others, too"


def test_of_few_rows_that_are_equally_near_none_is_ahead() -> None:
    first, *rest = relevance_of([hit(0.5, 0.5), *[hit(0.4, 0.4)] * 3]).values
    assert first is not None and first > 0.7
    assert all(value is not None and value < 0.5 for value in rest), "there are only four memories, all of one matter"


def test_rows_behind_the_first_change_nothing() -> None:
    first = [hit(0.5, 0.6), *[hit(0.3, 0.4)] * (FIRST - 1)]
    assert list(relevance_of([*first, *[hit(0.01, 0.0)] * 50]).values[:FIRST]) == list(relevance_of(first).values)


def test_more_words_of_the_question_count_up_to_a_half_of_them() -> None:
    def first(late: float) -> float | None:
        return relevance_of([hit(0.3, late), *[hit(0.2, 0.1)] * (FIRST - 1)]).values[0]

    values = [first(late / 10) for late in range(11)]
    assert None not in values and values[:6] == sorted(set(values[:6]))
    assert set(values[5:]) == {values[5]}


def test_without_token_vectors_there_is_no_relevance_and_nothing_is_said_of_the_whole() -> None:
    found = relevance_of([hit(0.3, None), hit(0.2, 0.1)])
    assert found.values[0] is None and found.values[1] is not None and not found.nothing
    assert relevance_of([hit(0.2, 0.1)]).nothing and relevance_of([]).nothing


def test_probably_none_is_right_below_the_floor() -> None:
    assert is_nothing([FLOOR - 0.001]) and not is_nothing([FLOOR + 0.001])
    assert not is_nothing([0.2] * FIRST), "one of ten is right more probably than not"
    assert is_nothing([0.0] * FIRST + [1.0]), "a row behind the first does not count"
    assert not is_nothing([None])


@pytest.mark.parametrize("probability", [0.0, 1e-12, 0.3, 1.0])
def test_a_correction_keeps_a_probability_one_and_its_order(probability: float) -> None:
    for correction in (Calibration(0.5, 4.0), Calibration(2.0, -4.0)):
        assert 0 < correction.corrected(probability) < 1
        assert correction.corrected(min(probability, 0.4)) < correction.corrected(0.5)
    assert Calibration().corrected(probability) == pytest.approx(probability, abs=2e-6)


def test_the_priors_are_what_calibration_has_not_touched() -> None:
    hits = [hit(0.5, 0.6), hit(0.3, 0.4)]
    plain, learned = relevance_of(hits), relevance_of(hits, Calibration(2.0, -1.0))
    assert list(learned.priors) == list(plain.priors) == list(plain.values)
    assert (learned.values[0] or 0.0) < (plain.values[0] or 0.0)

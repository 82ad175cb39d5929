"""The rules of learning: score, phases of life, quadrants and feeling, by the numbers that are published of them."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from processors.context_graph.rules.johari import ACTIONS, QUADRANTS, REASONS, advised, quadrant
from processors.context_graph.rules.learning import Learning, Means, intensity, learning_score
from processors.context_graph.rules.lifecycle import GROWTH, INFANCY, MATURITY, Phase, phase_at
from processors.context_graph.rules.sentiment import emotional_weight

NOON = datetime(2026, 1, 1, 12)


@pytest.mark.parametrize(
    ("measured", "phase", "score"),
    [
        ((0.8, 0.7, 1.2), GROWTH, 0.672),
        ((0.5, 0.6, 1.0), GROWTH, 0.3),
        ((1.0, 1.0, 1.5), GROWTH, 1.0),
        ((0.8, 0.7, 1.2), INFANCY, 0.56448),
        ((0.8, 0.7, 1.2), MATURITY, 0.56448),
    ],
)
def test_a_learning_score_is_the_published_product_clamped(
    measured: tuple[float, float, float], phase: Phase, score: float
) -> None:
    assert learning_score(*measured, phase) == pytest.approx(score, abs=1e-12)


def test_nothing_is_learned_out_of_phase() -> None:
    assert learning_score(0.8, 0.7, 1.2, GROWTH, math.pi / 2) == pytest.approx(0.0, abs=1e-12)
    assert learning_score(0.8, 0.7, 1.2, GROWTH, math.pi) == 0.0


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_learning_score_of_what_is_not_finite_is_refused(place: int, bad: float) -> None:
    entropy, coherence, weight, angle = (bad if number == place else 0.5 for number in range(4))
    with pytest.raises(ValueError, match="finite"):
        learning_score(entropy, coherence, weight, GROWTH, angle)


def test_a_namespace_grows_at_50_interactions_and_is_mature_at_500() -> None:
    assert [phase_at(n).name for n in (0, 49, 50, 499, 500, 10**9)] == [
        "Infancy",
        "Infancy",
        "Growth",
        "Growth",
        "Maturity",
        "Maturity",
    ]
    assert list(phase_at(49).thresholds.values()) == [0.9, 0.2, 0.1, 0.3]
    assert list(phase_at(50).thresholds.values()) == [0.7, 0.4, 0.3, 0.5]
    assert list(phase_at(500).thresholds.values()) == [0.6, 0.5, 0.5, 0.7]


@pytest.mark.parametrize(
    ("entropy", "coherence", "name"),
    [
        (0.3, 0.7, "Open"),
        (0.7, 0.3, "Blind"),
        (0.3, 0.3, "Hidden"),
        (0.7, 0.7, "Unknown"),
        (0.5, 0.5, "Hidden"),
        (0.5, 0.6, "Open"),
        (0.6, 0.5, "Blind"),
    ],
)
def test_a_quadrant_is_the_published_one_and_the_cut_is_low(entropy: float, coherence: float, name: str) -> None:
    assert quadrant(entropy, coherence) == name


def test_no_quadrant_is_made_of_nan() -> None:
    for pair in ((math.nan, 0.5), (0.5, math.nan)):
        with pytest.raises(ValueError, match="NaN"):
            quadrant(*pair)


def test_each_quadrant_suggests_the_published_action() -> None:
    assert [ACTIONS[name] for name in QUADRANTS] == [
        "direct_recall",
        "get_neighborhood",
        "trigger_dream",
        "epistemic_action",
    ]


def test_advice_is_the_quadrants_unless_all_was_new_for_five_minutes_or_little_fits() -> None:
    assert [advised(*pair, 0) for pair in ((0.3, 0.7), (0.7, 0.45), (0.3, 0.45), (0.7, 0.7))] == [
        "direct_recall",
        "trigger_dream",
        "get_neighborhood",
        "epistemic_action",
    ]
    assert advised(0.8, 0.7, 299) == "epistemic_action" and advised(0.8, 0.7, 300) == "trigger_dream"
    assert advised(0.7, 0.39, 0) == "epistemic_action" and advised(0.3, 0.39, 0) == "get_neighborhood"
    assert set(REASONS) == set(ACTIONS.values())


def test_before_the_first_memory_the_means_are_hidden() -> None:
    fresh = Means()
    assert (fresh.entropy, fresh.coherence, fresh.learning_score) == (0.5, 0.5, 0.0)
    assert quadrant(fresh.entropy, fresh.coherence) == "Hidden" and fresh.phase is INFANCY


def test_a_measured_memory_moves_the_means_by_three_tenths_and_an_unmeasured_one_only_counts() -> None:
    means = Means().after(Learning(1.0, 0.0, 1.0, 1.0, 0.4), NOON)
    assert means == Means(1, pytest.approx(0.65), pytest.approx(0.35), pytest.approx(0.12))
    assert means.after(None, NOON) == replace(means, interactions=2)


def test_what_has_been_new_since_when_is_known_until_the_entropy_falls() -> None:
    new, known = Learning(1.0, 0.5, 1.0, 1.0, 0.4), Learning(0.0, 0.5, 0.0, 1.0, 0.0)
    minutes = [NOON + timedelta(minutes=each) for each in range(5)]
    means = Means()
    since = []
    for moment, learning in zip(minutes, (new, new, new, None, known), strict=True):
        means = means.after(learning, moment)
        since.append(means.novel_since)
    assert since == [None, minutes[1], minutes[1], minutes[1], None]


def test_findings_of_an_event_count_only_when_all_are_there() -> None:
    findings = {"entropy": 0.4, "coherence": 0.6, "surprise": 0.2, "emotional_weight": 1.0, "learning_score": 0.24}
    assert Learning.of({**findings, "content": "x"}) == Learning(**findings)
    for name in findings:
        assert Learning.of({**findings, name: None}) is None


def test_intensity_is_low_below_three_tenths_and_high_above_seven() -> None:
    assert [intensity(score) for score in (0.29, 0.3, 0.7, 0.71)] == ["Low", "Medium", "Medium", "High"]


def test_words_of_joy_and_of_insight_weigh_more_and_words_of_trouble_less() -> None:
    assert emotional_weight("") == emotional_weight("The cache has 128 slots.") == 1.0
    joy, insight = emotional_weight("A brilliant breakthrough!"), emotional_weight("Now I understood it.")
    trouble, doubt = emotional_weight("It is broken."), emotional_weight("This is confusing.")
    assert 1.5 >= joy > insight > 1.0 > doubt > trouble > 0.5
    assert emotional_weight("love " * 10_000) == pytest.approx(1 + 0.25 * 0.9 + 0.15)
    assert emotional_weight("worst " * 50) == pytest.approx(1 - 0.25 * 0.9 + 0.15)

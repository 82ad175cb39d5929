"""The state that steers: oscillators, agreement of views, consciousness level, modulators."""

from __future__ import annotations

import math

import numpy as np
import pytest

from processors.context_graph.rules.agreement import SAYING, agreement
from processors.context_graph.rules.consciousness import Consciousness, differentiation, meta_score
from processors.context_graph.rules.modulators import DOPAMINE, Levels, adjusted
from processors.context_graph.rules.oscillators import OMEGA, order_of, settled, state_of

ALL = np.ones((13, 13))


@pytest.mark.parametrize(
    ("coupling", "low", "high"),
    [
        *((0.0, 0.0, 0.40), (0.5, 0.25, 0.50), (1.0, 0.56, 0.62), (1.5, 0.73, 0.77), (1.75, 0.77, 0.81)),
        *((2.0, 0.82, 0.85), (2.5, 0.891, 0.901), (3.0, 0.939, 0.949), (4.0, 0.967, 0.977), (10.0, 0.991, 1.0)),
    ],
)
def test_views_that_all_agree_come_to_the_order_of_their_coupling(coupling: float, low: float, high: float) -> None:
    found = settled(coupling, ALL)
    assert low < found.mean_r < high
    assert found.order[0] == pytest.approx(found.mean_r, abs=0.02)


def test_a_stronger_coupling_never_means_less_order() -> None:
    orders = [settled(step / 2, ALL).mean_r for step in range(21)]
    assert orders == sorted(orders)


def test_the_less_the_views_agree_the_less_order() -> None:
    orders = [settled(2.0, np.full((13, 13), share)).mean_r for share in (1.0, 0.7, 0.4, 0.1)]
    assert orders == sorted(orders, reverse=True) and orders[0] - orders[-1] > 0.4


def test_time_turns_the_phases_and_leaves_their_order() -> None:
    found = settled(2.0, ALL)
    later = found.turned(12.5)
    assert later.phases != found.phases and all(0 <= phase < 2 * math.pi for phase in later.phases)
    assert later.order[0] == pytest.approx(found.order[0], abs=1e-12)


def test_phases_that_are_spread_evenly_have_no_order() -> None:
    assert order_of([2 * math.pi * place / 13 for place in range(13)])[0] < 1e-9
    assert sum(OMEGA) / 13 == pytest.approx(1.0) and OMEGA[8] == pytest.approx(3.161, abs=5e-4)


@pytest.mark.parametrize(
    ("r", "state"),
    [
        *((0.29, "DORMANT"), (0.3, "FRAGMENTED"), (0.5, "EMERGING"), (0.8, "CONSCIOUS"), (0.95, "CONSCIOUS")),
        (0.96, "HYPERSYNC"),
    ],
)
def test_states_of_the_order(r: float, state: str) -> None:
    assert state_of(r)[0] == state
    assert state_of(r, idle_s=600)[0] == "DORMANT"


def rows(*views: list[float]) -> np.ndarray:
    """Alignments of as many results as each list has, by the views that say something; the others say nothing."""
    found = np.full((len(views[0]), 13), np.nan)
    found[:, list(SAYING[: len(views)])] = np.array(views).T
    return found


def test_views_that_point_at_one_memory_agree_and_others_do_not() -> None:
    same = agreement([rows([0.9, 0.2, 0.1, 0.2], [0.8, 0.1, 0.0, 0.1], [0.7, 0.3, 0.2, 0.3])])
    apart = agreement([rows([0.9, 0.2, 0.1, 0.2], [0.1, 0.8, 0.0, 0.1], [0.2, 0.3, 0.7, 0.3])])
    assert same[0, 4] > 0.9 > 0.6 > apart[0, 4]
    assert np.allclose(same, same.T) and np.allclose(np.diag(same), 1.0)
    assert same[1, 2] == pytest.approx(same[np.ix_([0, 4, 5], [0, 4, 5])][np.triu_indices(3, 1)].mean())


def test_the_last_recall_counts_most_and_one_result_tells_nothing() -> None:
    good = rows([0.9, 0.2, 0.1], [0.9, 0.2, 0.1])
    bad = rows([0.9, 0.2, 0.1], [0.1, 0.2, 0.9])
    assert agreement([bad, good])[0, 4] > agreement([good, bad])[0, 4]
    assert np.array_equal(agreement([good[:1]]), ALL) and np.array_equal(agreement([]), ALL)
    flat = rows([0.5, 0.5, 0.5], [0.9, 0.2, 0.1])
    assert np.array_equal(agreement([flat]), ALL)


@pytest.mark.parametrize(
    ("r", "meta", "level"), [(0.9, 0.9, 0.7488), (1.0, 1.0, 0.8808), (0.2, 0.9, 0.1664), (0.0, 0.5, 0.0)]
)
def test_the_level_is_the_product_of_its_factors(r: float, meta: float, level: float) -> None:
    found = Consciousness.of(r, meta, [1.0] * 13)
    assert found.level == pytest.approx(level, abs=5e-5)
    assert found.level == pytest.approx(r / (1 + math.exp(2 - 4 * meta)), abs=1e-9)
    assert Consciousness.of(r, meta, [0.0] * 13).level == 0.0


def test_a_purpose_is_differentiated_by_how_many_views_share_it() -> None:
    assert differentiation([1.0, *[0.0] * 12]) == 0.0
    assert differentiation([1.0, -1.0, *[math.nan] * 11]) == pytest.approx(0.2702, abs=5e-5)
    assert differentiation([0.3] * 13) == pytest.approx(1.0) and Consciousness(0.9, 0.4, 0.7).limiting_factor == (
        "reflection"
    )


def test_scores_that_were_foreseen_raise_the_meta_score_and_surprises_lower_it() -> None:
    assert meta_score([]) == meta_score([("text", 0.4)]) == 0.5
    assert meta_score([("text", 0.4)] * 30) > 0.99
    assert meta_score([("text", value) for value in (0.0, 1.0) * 15]) < 0.5
    assert meta_score([("text", 0.4), ("code", 0.9)] * 20) > 0.99  # each is foreseen from its own kind


def test_a_level_goes_back_to_its_baseline_however_often_it_is_read() -> None:
    assert DOPAMINE.after(4.0, 1.0) == pytest.approx(3.95)
    levels, once = Levels(dopamine=5.0), Levels(dopamine=5.0).later(10.0)
    for _ in range(10):
        levels = levels.later(1.0)
    assert levels.dopamine == pytest.approx(once.dopamine) and DOPAMINE.after(4.0, -5.0) == 4.0
    assert Levels().is_baseline and not Levels(serotonin=0.6).is_baseline
    assert Levels(dopamine=5.0).later(600.0).is_baseline


def test_a_change_stays_inside_its_bounds_and_moves_others() -> None:
    high = adjusted(Levels(), "dopamine", 10.0)
    assert (high.levels.dopamine, high.applied) == (5.0, 2.0)
    assert high.cascades == (("serotonin", 0.05), ("noradrenaline", 0.1))
    assert high.levels.serotonin == pytest.approx(0.55) and high.levels.noradrenaline == pytest.approx(1.1)
    low = adjusted(Levels(), "dopamine", -10.0)
    assert low.cascades == (("serotonin", -0.05), ("noradrenaline", 0.1))
    assert adjusted(Levels(), "dopamine", 0.2).cascades == ()
    assert adjusted(Levels(serotonin=0.99), "serotonin", 0.5).levels.serotonin == 1.0

"""How well probabilities agree with judgements, what corrects them, and thresholds: the printed numbers."""

from __future__ import annotations

import numpy as np
import pytest

from processors.context_graph.rules.calibration import (
    GRID,
    LEAST_JUDGEMENTS,
    RANGE,
    Calibrations,
    JudgedResult,
    ece_of,
    fitted,
    measured,
    metrics_of,
    recalibrated,
    view_metrics,
)
from processors.context_graph.rules.optimiser import maximised
from processors.context_graph.rules.recalibration import LEVELS, PULLS, Learned, decide
from processors.context_graph.rules.thresholds import (
    DOMAINS,
    FIRST_OBSERVED,
    ORDERED,
    THRESHOLDS,
    drift,
    ewma,
    f1,
    in_order,
    proposed_level,
    ucb,
    values_of,
    violation_budget,
)
from processors.memory.rules.relevance import Calibration

HALF_RIGHT = np.array([True] * 50 + [False] * 50)


def judged(similarity: float | None, is_relevant: bool, *, prior: float | None = None, e1: float = 0.5) -> JudgedResult:
    return JudgedResult(is_relevant, np.array([e1, *[np.nan] * 12]), similarity, prior)


@pytest.mark.parametrize(("temperature", "corrected"), [(1.5, 0.8123), (2.0, 0.75), (1.0, 0.9)])
def test_a_temperature_draws_a_probability_towards_a_half(temperature: float, corrected: float) -> None:
    assert Calibration(temperature).corrected(0.9) == pytest.approx(corrected, abs=5e-5)
    assert Calibration(temperature).corrected(1.0) < 1 and Calibration(temperature).corrected(0.0) > 0


def test_ece_and_brier_have_the_printed_values() -> None:
    nine_tenths = np.full(100, 0.9)
    assert measured(nine_tenths, HALF_RIGHT).ece == pytest.approx(0.4)
    assert measured(nine_tenths, HALF_RIGHT).mce == pytest.approx(0.4)
    assert measured(np.ones(10), np.ones(10, bool)).brier == 0
    assert measured(np.full(10, 0.9), np.zeros(10, bool)).brier == pytest.approx(0.81)


def test_a_probability_of_one_is_in_the_last_bin_and_one_of_a_tenth_in_the_second() -> None:
    edges = np.array([0.1] * 10 + [1.0] * 10)
    is_right = np.array([True, *[False] * 9] + [True] * 10)
    assert ece_of(edges, is_right) == pytest.approx(0)
    assert ece_of(edges, ~is_right) == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("said", "status"),
    [(0.5, "Excellent"), (0.56, "Good"), (0.63, "Acceptable"), (0.70, "Poor"), (0.9, "Critical")],
)
def test_the_status_goes_by_the_ece(said: float, status: str) -> None:
    assert measured(np.full(100, said), HALF_RIGHT).status == status


def test_fewer_than_ten_judgements_say_nothing_and_correct_nothing() -> None:
    few = [judged(0.9, False)] * (LEAST_JUDGEMENTS - 1)
    assert metrics_of(few, Calibrations()).ece is None and metrics_of(few, Calibrations()).status == "insufficient_data"
    assert recalibrated(few, Calibrations()) == Calibrations()
    for level in LEVELS:
        decision = decide(level, Learned(), values_of("General", {}), few, "General", np.random.default_rng(1))
        assert decision.reason == "insufficient_data" and not decision.changes and decision.learned == Learned()


def test_the_correction_is_the_best_of_its_grid_and_never_worse_than_none() -> None:
    chance = np.random.default_rng(2)
    said = chance.uniform(0.4, 0.9, 400)
    is_right = chance.random(400) < said / 5
    before = measured(said, is_right)
    best = fitted(said, is_right)
    assert best is not None and best.temperature in np.linspace(*RANGE, GRID)
    after = measured(np.array([best.corrected(p) for p in said]), is_right)
    assert after.brier is not None and before.brier is not None and after.brier < before.brier
    assert before.ece is not None and before.ece > 0.4 and after.ece is not None and after.ece < 0.05
    alone = fitted(said, is_right, offsets=np.zeros(1))
    assert alone is not None and alone.offset == 0
    cooled = measured(np.array([alone.corrected(p) for p in said]), is_right)
    assert cooled.ece is not None and cooled.ece > 0.3, "a temperature alone leaves all on the wrong side of a half"


def test_ten_judgements_that_agree_make_no_certainty() -> None:
    ten = fitted(np.full(10, 0.3), np.ones(10, bool))
    many = fitted(np.full(400, 0.3), np.ones(400, bool))
    assert ten is not None and many is not None
    assert 0.5 < ten.corrected(0.3) < 0.8 < many.corrected(0.3)


def test_relevance_is_fitted_on_what_was_said_of_relevance_and_similarity_on_the_rest() -> None:
    said = [judged(0.9, number % 10 == 0, prior=0.5) for number in range(100)]
    found = [judged(0.5, True) for _ in range(100)]
    after = recalibrated([*said, *found], Calibrations())
    assert after.relevance.corrected(0.5) == pytest.approx(0.1, abs=0.05)
    assert after.similarity.corrected(0.5) > 0.8
    assert recalibrated(found, Calibrations()).relevance == Calibrations().relevance
    assert after.temperatures[1:] == Calibrations().temperatures[1:], "views that said nothing keep theirs"


def test_a_view_begins_with_its_printed_temperature_and_stays_in_its_range() -> None:
    assert Calibrations().temperatures[:7] == (1.0, 1.0, 1.0, 1.0, 1.2, 1.0, 0.9)
    assert (Calibrations().temperatures[8], Calibrations().temperatures[12]) == (1.5, 1.1)
    wrong = [JudgedResult(False, np.full(13, 0.9))] * 50 + [JudgedResult(True, np.full(13, 0.9))] * 50
    hot = recalibrated(wrong, Calibrations()).temperatures
    assert (hot[0], hot[4], hot[6], hot[8], hot[12]) == (2.0, 2.5, 1.5, 3.0, 2.0)
    before, after = (view_metrics(wrong, 1, temperature) for temperature in (1.0, hot[0]))
    assert before.brier is not None and after.brier is not None and after.brier < before.brier


def test_running_means_drift_bounds_and_budget_have_the_printed_values() -> None:
    assert ewma(0.75, 0.80) == pytest.approx(0.76) and ewma(0.76, 0.85) == pytest.approx(0.778)
    assert ewma(0, 1, 0.05) == pytest.approx(0.1) and ewma(0, 1, 0.5) == pytest.approx(0.3)
    assert (proposed_level(drift(0.85, 0.75)), proposed_level(drift(0.905, 0.75))) == (2, 3)
    assert proposed_level(drift(0.84, 0.75)) is None and proposed_level(3.0) == 2
    assert ucb(0.7, 100, 10) == pytest.approx(1.7190, abs=5e-5) and ucb(0.0, 5, 0) is None
    assert violation_budget(100) == pytest.approx(36.788, abs=5e-4) and violation_budget(0) == 100


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        ("Code", (0.84, 0.772, 0.595)),
        ("Medical", (0.85, 0.78, 0.60)),
        ("Legal", (0.83, 0.764, 0.59)),
        ("Creative", (0.77, 0.716, 0.56)),
        ("Research", (0.80, 0.74, 0.575)),
        ("General", (0.75, 0.70, 0.55)),
    ],
)
def test_a_domain_has_its_printed_thresholds(domain: str, values: tuple[float, ...]) -> None:
    assert tuple(THRESHOLDS[name].base(domain) for name in ORDERED) == pytest.approx(values)


def test_every_threshold_of_every_domain_lies_in_its_range_and_what_is_ordered_stays_so() -> None:
    for domain in DOMAINS:
        for name, value in values_of(domain, {}).items():
            assert THRESHOLDS[name].least <= value <= THRESHOLDS[name].most, (domain, name)
        lowered = in_order({**values_of(domain, {}), "theta_opt": 0.6})
        assert lowered["theta_opt"] > lowered["theta_acc"] > lowered["theta_warn"]


def test_level_1_moves_a_threshold_the_way_that_what_it_cuts_has_drifted() -> None:
    for shift in (0.2, -0.1):
        learned = Learned()
        for _ in range(FIRST_OBSERVED):
            learned = learned.after(judged(0.6, True))
        before = values_of("General", {})
        still = decide(1, learned, before, [judged(0.6, True)] * 10, "General", np.random.default_rng(1))
        assert not still.changes
        for _ in range(20):
            learned = learned.after(judged(0.6 + shift, True))
        assert learned.observed["memory_sim"].drift == pytest.approx(abs(shift) / 0.05, rel=0.05)
        moved = decide(1, learned, before, [judged(0.6, True)] * 10, "General", np.random.default_rng(1))
        [change] = moved.changes
        assert change["name"] == "memory_sim" and change["old"] == 0.5
        assert change["new"] == pytest.approx(0.5 + shift, abs=0.01)
        assert moved.learned.observed["memory_sim"].drift == 0, "what was followed is no drift any more"


def test_level_3_concentrates_its_pulls_on_the_arm_that_tells_best() -> None:
    """Relevant is what has 0.79 and more: the arm 0.80 errs on nothing, the others on all that lies between."""
    judgements = [judged(0.81, True)] * 50 + [judged(0.785, False)] * 50
    learned, thresholds = Learned(), values_of("General", {})
    for number in range(10):
        decision = decide(3, learned, thresholds, judgements, "General", np.random.default_rng(number))
        learned = decision.learned
        thresholds |= decision.thresholds
    pulls = np.array(learned.successes) + np.array(learned.failures)
    assert pulls.sum() == 10 * PULLS == 200 and pulls[-1] >= 140, pulls
    assert thresholds["theta_opt"] == 0.80
    again = decide(3, Learned(), values_of("General", {}), judgements, "General", np.random.default_rng(0))
    assert again == decide(3, Learned(), values_of("General", {}), judgements, "General", np.random.default_rng(0))


def test_level_4_finds_a_better_f1_than_the_start() -> None:
    """What is relevant has a similarity from 0.66 on, and a cosine from 0.71 on: the start is below both."""
    chance = np.random.default_rng(4)
    judgements = []
    for _ in range(300):
        is_relevant = bool(chance.random() < 0.3)
        low = chance.uniform(0.45, 0.65), chance.uniform(0.4, 0.7)
        similarity, e1 = (chance.uniform(0.66, 0.9), chance.uniform(0.71, 0.9)) if is_relevant else low
        judgements.append(judged(similarity, is_relevant, prior=similarity, e1=e1))
    before = values_of("General", {})
    decision = decide(4, Learned(), before, judgements, "General", np.random.default_rng(7))
    after = before | dict(decision.thresholds)
    is_relevant_each = [each.is_relevant for each in judgements]
    for name, values in {
        "memory_sim": [each.similarity or 0.0 for each in judgements],
        "theta_edge": [float(each.views[0]) for each in judgements],
    }.items():
        assert THRESHOLDS[name].least <= after[name] <= THRESHOLDS[name].most
        assert f1(values, is_relevant_each, after[name]) > f1(values, is_relevant_each, before[name]) + 0.1
    assert decision.action == "optimise" and "theta_dup" not in decision.thresholds


def test_the_optimiser_keeps_its_start_where_nothing_is_better() -> None:
    best, value, start = maximised(
        lambda point: -float(abs(point - 0.5).sum()), [0.5], [(0, 1)], np.random.default_rng(1)
    )
    assert best.tolist() == [0.5] and value == start == 0


def test_f1_of_a_cut() -> None:
    values, is_relevant = [0.9, 0.8, 0.7, 0.6], [True, False, True, False]
    assert f1(values, is_relevant, 0.65) == pytest.approx(0.8)
    assert f1(values, is_relevant, 0.95) == 0

"""The rules of drift and of its corrections, without a store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from processors.context_graph.read.corrections import reordered
from processors.context_graph.rules import corrections
from processors.context_graph.rules.corrections import (
    GAIN,
    LARGEST_DOSE,
    NONE,
    REORDERED,
    STRATEGIES,
    TOP,
    Correction,
    Probe,
    correct,
    made,
    reachable_alignment,
    strategy_of,
    top_alignment,
)
from processors.context_graph.rules.drift import (
    MATTER,
    MILD,
    MODERATE,
    SEVERE,
    WINDOW,
    baseline_of,
    drift_of,
    scalar,
    scalar_severity,
    severity_of,
)
from processors.context_graph.rules.drift_series import TIMEFRAMES, Bucket, buckets_until_severe, course, epoch_us
from storage.search.records.hits import SearchHit

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
MEAN = np.array([0.6, 0.5, 0.1, 0.5, 0.6, 0.3, 0.1, 0.6, 0.3, 0.65, 0.5, 0.55, 0.55])


def purposes(count: int, seed: int, fall: float = 0.0, **views: float) -> np.ndarray:
    """Purpose vectors as those of conversations: [count, 13], with falls of all views or of some."""
    chance = np.random.default_rng(seed)
    common = chance.normal(0, 0.05, (count, 1))
    rows = MEAN + common + chance.normal(0, 0.05, (count, 13)) - fall
    for view, change in views.items():
        rows[:, int(view[1:]) - 1] -= change
    return rows


BASELINE = baseline_of([purposes(200, 1)])


@pytest.mark.parametrize(
    ("current", "severity"),
    [
        (0.90, "none"),
        (0.795, "none"),
        (0.79, "none"),
        (0.78, "mild"),
        (0.75, "moderate"),
        (0.74, "moderate"),
        (0.70, "severe"),
    ],
)
def test_the_scalar_ladder_below_a_baseline_of_eighty(current: float, severity: str) -> None:
    assert scalar_severity(0.80, current) == severity


def test_the_ladder_of_standard_errors_begins_at_its_numbers() -> None:
    steps = [0.0, MILD - 1e-6, MILD, MODERATE - 1e-6, MODERATE - 1e-10, SEVERE - 1e-6, SEVERE]
    assert [severity_of(step) for step in steps] == ["none", "none", "mild", "mild", "moderate", "moderate", "severe"]


def test_windows_of_the_same_matter_hardly_drift_and_a_fall_of_all_views_is_severe() -> None:
    same = [drift_of(BASELINE, purposes(WINDOW, seed)) for seed in range(2, 102)]
    assert sum(each.severity == "none" for each in same) >= 95 and all(each.severity != "severe" for each in same)
    fallen = drift_of(BASELINE, purposes(WINDOW, 2, fall=0.12))
    assert fallen.severity == "severe" and fallen.drift_score == pytest.approx(fallen.baseline - fallen.alignment)


def test_a_rotation_is_drift_although_the_mean_stays() -> None:
    turned = drift_of(BASELINE, purposes(WINDOW, 3, E1=0.3, E5=0.3, E6=-0.3, E13=-0.3))
    assert turned.severity == "severe" and turned.drift_score < 0.03 and turned.rotation > 0.05
    assert set(turned.most_drifted) < {"E1", "E5", "E6", "E13"}


def test_a_rise_of_all_views_is_no_fall_and_time_moves_nothing() -> None:
    risen = drift_of(BASELINE, purposes(WINDOW, 4, fall=-0.1) * 1.0)
    assert risen.drift_score == 0 and risen.severity in ("none", "mild")
    later, same = (
        drift_of(BASELINE, purposes(WINDOW, 5, E2=0.5, E3=0.9, E4=1.5)),
        drift_of(BASELINE, purposes(WINDOW, 5)),
    )
    assert (later.severity, later.distance) == (same.severity, same.distance)
    assert later.falls[1] > 0.4 and not {"E2", "E3", "E4"} & set(later.most_drifted)


def test_fewer_memories_and_a_small_baseline_are_less_sure() -> None:
    few, many = (
        drift_of(BASELINE, purposes(5, 6, fall=0.05)),
        drift_of(BASELINE, purposes(5, 6, fall=0.05).repeat(4, 0)),
    )
    assert few.alignment == pytest.approx(many.alignment) and few.distance == pytest.approx(many.distance / 2)
    small = baseline_of([purposes(200, 1)[:12]])
    assert small.scalar_error > BASELINE.scalar_error and small.angle_error > BASELINE.angle_error
    tiny = baseline_of([purposes(200, 1)[:4]])
    assert not tiny.has_errors
    fallen = purposes(WINDOW, 7, fall=tiny.alignment)
    assert drift_of(tiny, fallen).severity == scalar_severity(tiny.alignment, float(scalar(fallen).mean())) == "severe"


def test_neighbours_that_are_alike_make_the_error_larger() -> None:
    rows = purposes(200, 8)
    themes = rows + np.repeat(np.random.default_rng(9).normal(0, 0.05, 10), 20)[:, None]
    shuffled = themes[np.random.default_rng(10).permutation(200)]
    assert baseline_of([themes]).scalar_error > 1.3 * baseline_of([shuffled]).scalar_error


def test_views_that_are_missing_are_left_out() -> None:
    missing = purposes(200, 1)
    missing[:, [4, 10, 11]] = np.nan
    baseline, window = baseline_of([missing]), purposes(WINDOW, 11)
    window[:, [4, 10, 11]] = np.nan
    drift = drift_of(baseline, window)
    assert drift.severity in ("none", "mild") and np.isnan(drift.views[4]) and "E5" not in drift.most_drifted
    assert scalar(np.full((2, 13), np.nan)).tolist() == [0, 0]


def buckets(*means: float | None) -> list[Bucket]:
    return [Bucket(mean, 0 if mean is None else WINDOW) for mean in means]


def test_a_trend_is_a_slope_beyond_its_own_error() -> None:
    assert course(buckets(0.5, 0.49, 0.48, 0.47), 0.001)[:2] == ("worsening", pytest.approx(-0.01))
    assert course(buckets(0.5, 0.51, 0.52, 0.53), 0.001)[:2] == ("improving", pytest.approx(0.01))
    assert course(buckets(0.5, 0.504, 0.508), 0.0).trend == "stable", "a slope of 0.004"
    assert course(buckets(0.5, 0.49, 0.48, 0.47), 0.02).trend == "stable", "within the error"
    assert course(buckets(0.5, 0.3), 0.001) == ("stable", 0.0, 2)
    assert course(buckets(0.5, None, 0.48, None, 0.46), 0.001).slope == pytest.approx(-0.01), "empty buckets take time"
    assert course(buckets(*[0.9] * 5, *[0.5] * 10), 0.001).trend == "stable", "only the last ten count"
    assert buckets_until_severe(0.5, BASELINE, 0.01) is None
    line = BASELINE.alignment - SEVERE * BASELINE.scalar_error
    assert buckets_until_severe(line + 0.03, BASELINE, -0.01) == pytest.approx(3)
    assert buckets_until_severe(line - 0.03, BASELINE, -0.01) == 0


def test_each_time_is_in_one_bucket_of_a_timeframe() -> None:
    for name, count in (("1h", 12), ("24h", 24), ("7d", 28), ("30d", 30)):
        timeframe = TIMEFRAMES[name]
        start = timeframe.start(NOW)
        assert timeframe.buckets == count and count * timeframe.length == NOW - start
        times = (start, start + timeframe.length, NOW, NOW + timedelta(days=400))
        places = timeframe.places(NOW, np.array([epoch_us(at) for at in times])).tolist()
        assert places == [0, 1, count - 1, count - 1], "the last is of a clock that went back"


def test_the_strategy_follows_the_severity_and_the_trend_scales_the_dose_alone() -> None:
    table = {
        (severity, trend): strategy_of(severity, trend)
        for severity in ("none", "mild", "moderate", "severe")
        for trend in ("improving", "stable", "worsening")
    }
    assert {table["none", trend] for trend in corrections.TREND_FACTORS} == {"none"}
    assert {table["mild", trend] for trend in corrections.TREND_FACTORS} == {"threshold_adjustment"}
    assert {table["severe", trend] for trend in corrections.TREND_FACTORS} == {"emergency_intervention"}
    assert table["moderate", "stable"] == table["moderate", "improving"] == "weight_rebalancing"
    assert table["moderate", "worsening"] == "goal_reinforcement" == strategy_of("none", "stable", force=True)
    assert set(table.values()) == set(STRATEGIES)
    assert list(corrections.TREND_FACTORS.values()) == sorted(corrections.TREND_FACTORS.values())


DRIFT = drift_of(BASELINE, purposes(WINDOW, 12, fall=0.05, E6=0.2))


def test_what_each_strategy_adds_to_a_score() -> None:
    near, far = purposes(1, 13), purposes(1, 13, fall=0.3)
    threshold = made("threshold_adjustment", 0.3, BASELINE, DRIFT)
    assert threshold.threshold == pytest.approx(BASELINE.alignment)
    above = purposes(1, 13, fall=-0.3)
    assert threshold.bonus(above).tolist() == [0]
    lacking = BASELINE.alignment - scalar(far)[0]
    assert threshold.bonus(far)[0] == pytest.approx(-0.3 * lacking)
    reinforced = made("goal_reinforcement", 0.25, BASELINE, DRIFT)
    assert reinforced.bonus(near)[0] == pytest.approx(0.25 * scalar(near)[0]) and reinforced.penalty == 0
    rebalanced = made("weight_rebalancing", 0.25, BASELINE, DRIFT)
    assert np.argmax(rebalanced.view_weights) == 5 and sum(rebalanced.view_weights) == pytest.approx(1)
    assert not any(np.array(rebalanced.view_weights)[~MATTER])
    emergency = made("emergency_intervention", 9, BASELINE, DRIFT)
    assert (
        emergency.goal_weight == emergency.penalty == LARGEST_DOSE and emergency.view_weights == rebalanced.view_weights
    )
    assert made("goal_reinforcement", 0, BASELINE, DRIFT).is_empty and NONE.is_empty and NONE.bonus(far).tolist() == [0]


def probe(seed: int) -> Probe:
    """Ten results whose best are not the most aligned."""
    chance = np.random.default_rng(seed)
    return Probe(
        np.sort(chance.uniform(0.3, 0.5, REORDERED))[::-1],
        purposes(REORDERED, seed) - chance.uniform(0, 0.3, (REORDERED, 1)),
    )


PROBES = [probe(seed) for seed in range(20, 40)]


@pytest.mark.parametrize("strategy", [each for each in STRATEGIES if each != "none"])
def test_every_strategy_raises_the_alignment_of_the_first_five(strategy: corrections.Strategy) -> None:
    plain = top_alignment(PROBES, NONE)
    tried = correct(strategy, 1.0, BASELINE, DRIFT, PROBES, plain, None)
    assert tried.after - plain >= min(GAIN, (reachable_alignment(PROBES) - plain) / 2) - 1e-9 and tried.success
    assert tried.after <= tried.reachable + 1e-9 and tried.correction.strategy == strategy
    weaker, stronger = (correct(strategy, factor, BASELINE, DRIFT, PROBES, plain, None) for factor in (0.8, 1.25))
    assert weaker.factor < stronger.factor and weaker.after <= stronger.after + 1e-9
    middle = (plain + tried.reachable) / 2
    aimed = correct(strategy, 1.0, BASELINE, DRIFT, PROBES, plain, middle)
    less = made(strategy, corrections.DOSES[strategy] * aimed.factor - LARGEST_DOSE / 2**5, BASELINE, DRIFT)
    assert aimed.after >= middle > top_alignment(PROBES, less) and aimed.target == middle
    lifted = correct(strategy, 1.0, BASELINE, DRIFT, PROBES, tried.after, plain - 0.1)
    assert lifted.correction.is_empty and lifted.factor == 0 and lifted.after == pytest.approx(plain)


def hit(number: int, score: float, earlier: tuple[tuple[str, str], ...] = ()) -> SearchHit:
    about = {"toolset": "context_graph", "session_id": None, "domain": None, "text": "", "created_at": NOW}
    return SearchHit(number, str(number), "text", score=score, earlier=earlier, **about)  # type: ignore[arg-type]


def test_only_the_first_ten_are_reordered_and_what_changes_another_stays_before_it() -> None:
    hits = [hit(number, 0.9 - number / 100) for number in range(12)]
    hits[2] = hit(2, 0.88, earlier=(("text", "7"),))
    aligned = {str(number): MEAN - 0.3 * (number != 7) for number in range(12)}
    correction = Correction("goal_reinforcement", goal_weight=0.5)
    found, added = reordered(hits, correction, aligned)
    assert [each.record_id for each in found] == ["2", "7", *map(str, (0, 1, 3, 4, 5, 6, 8, 9)), "10", "11"]
    assert set(added) == set(map(str, range(10))) and added["7"] - added["0"] == pytest.approx(0.15)
    assert reordered(hits, NONE, aligned)[0] == hits
    unknown, _ = reordered(hits, correction, {})
    assert unknown == hits, "what has no vector yet is taken as it is"
    assert reordered([], correction, {}) == ([], {}) and TOP < REORDERED

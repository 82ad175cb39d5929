"""The pure rules of a dream, by numbers that were worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from processors.context_graph.rules import hebb, hyperbolic
from processors.context_graph.rules.dream_report import DreamReport, KeptChange, counted
from processors.context_graph.rules.edges import Edge, EdgeChange
from processors.context_graph.rules.idleness import refusal_of, waits_for
from processors.context_graph.rules.leaps import Bond, confidence_of, leaps, names_in


def test_two_active_memories_strengthen_the_edge_between_them() -> None:
    assert hebb.strengthening(0.8, 0.9) == pytest.approx(0.0072)
    assert hebb.strengthening(0.1, 1.0) == 0.0  # of at most 0.1 nothing is heard
    assert [hebb.activation_of(recalls) for recalls in (0, 1, 5, 9)] == [0.0, 0.2, 1.0, 1.0]


def test_a_replay_weakens_prunes_and_strengthens_but_never_weakens_evidence() -> None:
    def replayed(weight: float, activation: float = 0.0, kind: str = "similar") -> list[EdgeChange]:
        return hebb.replay([Edge("a", "b", kind, weight, 0.9)], {"a": activation, "b": activation})

    assert replayed(0.5) == [EdgeChange("a", "b", "similar", 0.4995, 0.9)]
    assert replayed(0.05)[0].is_removed
    assert replayed(1.0, 1.0) == []
    assert replayed(0.5, 1.0) == [EdgeChange("a", "b", "similar", 0.5095, 0.9)]
    assert replayed(0.05, kind="causal") == replayed(0.5, kind="causal") == []
    assert replayed(0.5, 1.0, "causal") == [EdgeChange("a", "b", "causal", 0.51, 0.9)]
    assert hebb.replay([Edge("a", "b", "similar", 0.5)], {"a": 0.0}) == []


def test_what_was_used_lately_and_often_is_replayed_first() -> None:
    assert hebb.replay_score(0.0, 0.0) == pytest.approx(0.8)
    assert hebb.replay_score(24.0, 1.0) == pytest.approx(0.6)
    assert hebb.replay_score(-5.0, 0.0) == hebb.replay_score(0.0, 0.0)


def test_edges_that_meet_are_one_cluster() -> None:
    assert hebb.clusters([]) == 0
    assert hebb.clusters([("a", "b"), ("c", "d"), ("b", "c"), ("e", "f")]) == 2


def test_distances_and_steps_in_the_ball() -> None:
    origin, point = np.array([0.0, 0.0]), np.array([0.5, 0.0])
    assert hyperbolic.distances(origin, point[None, :])[0] == pytest.approx(1.0986, abs=1e-4)
    assert float(hyperbolic.step_length(point)) == pytest.approx(0.0375)
    assert hyperbolic.mobius_add(point, np.array([0.0375, 0.0])) == pytest.approx(
        [(0.5 + 0.0375) / (1 + 0.5 * 0.0375), 0.0]
    )
    assert np.linalg.norm(hyperbolic.mobius_add(np.array([0.9999, 0.0]), np.array([0.99, 0.0]))) < 1.0


def test_vectors_far_apart_are_far_apart_in_the_ball() -> None:
    vectors = np.eye(8, dtype=np.float32)
    vectors[1] = vectors[0] * 0.99 + vectors[2] * 0.14
    points = hyperbolic.to_ball(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    assert np.linalg.norm(points, axis=1).max() < 1.0
    apart = hyperbolic.distances(points, points)
    assert apart[0, 1] < apart[0, 3]
    assert hyperbolic.to_ball(np.ones((1, 4), np.float32)).shape == (1, 1)  # alone: in the middle


def test_a_walk_depends_on_its_seed_alone_and_stays_in_the_ball() -> None:
    known = hyperbolic.to_ball(np.random.default_rng(7).standard_normal((30, 12)).astype(np.float32))
    first, again = (hyperbolic.walk(known[:5], known, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(first[0], again[0])
    assert np.isfinite(first[0]).all()
    assert not np.array_equal(first[0], hyperbolic.walk(known[:5], known, np.random.default_rng(4))[0])


def test_leaps_join_what_is_far_apart_and_makes_no_hub() -> None:
    points = {name: np.array(place) for name, place in {"a": (0.6, 0.0), "b": (-0.6, 0.0), "c": (0.59, 0.0)}.items()}
    bonds = [Bond("b", "a", "cause", "x"), Bond("a", "c", "name", "kafka"), Bond("a", "z", "recall", "q")]
    [leap] = leaps(bonds, points, set())
    assert (leap.change.source_id, leap.change.target_id, leap.change.kind) == ("a", "b", "rem")
    assert (leap.change.weight, leap.change.confidence) == (0.3, 0.5)
    assert leap.evidence == {"shared": "cause", "about": "x"}
    assert leap.distance == pytest.approx(2 * math.atanh(0.6) * 2)
    assert leaps(bonds, points, {("a", "b")}) == []
    around = {str(n): np.array((0.8 * math.cos(n), 0.8 * math.sin(n))) for n in range(6)}
    hub = leaps([Bond("0", str(n), "name", "kafka") for n in range(1, 6)], around, set())
    assert len(hub) == 2
    assert hub[0].distance >= hub[1].distance


def test_a_leap_is_the_surer_the_further_it_goes() -> None:
    assert confidence_of(0.7, 0.9) == pytest.approx(0.5)
    assert confidence_of(0.7, 0.4) == pytest.approx(0.7)
    assert confidence_of(9.0, 0.1) == 1.0


def test_names_are_words_with_a_capital_that_begin_no_sentence() -> None:
    assert names_in("We moved Grafana to port4. On Monday I said so. It runs.") == ["grafana", "port4"]
    assert names_in("nothing here") == []


def test_a_report_counts_what_was_kept() -> None:
    kept = [
        KeptChange("a", "b", "similar", 0.51, 0.5, False),
        KeptChange("b", "c", "similar", 0.61, 0.6, False),
        KeptChange("d", "e", "similar", 0.4995, 0.5, False),
        KeptChange("f", "g", "temporal", 0.04995, 0.05, True),
        KeptChange("a", "e", "rem", 0.3, None, False),
        KeptChange("a", "d", "shortcut", 0.4, None, False),
    ]
    report = counted(DreamReport("2026-01-01T00:00:00Z"), kept, edges_after=5)
    nrem, rem = report.nrem_report, report.rem_report
    assert (nrem.edges_strengthened, nrem.edges_weakened, nrem.edges_pruned, nrem.clusters_consolidated) == (2, 1, 1, 1)
    assert nrem.compression_ratio == 0.8
    assert nrem.average_weight_delta == pytest.approx((0.01 + 0.01 - 0.0005) / 3, abs=1e-6)
    assert (rem.new_edges_created, report.shortcuts_created) == (1, 1)
    assert DreamReport.of(report.to_json()) == report


def test_nobody_dreams_while_somebody_works() -> None:
    assert refusal_of(0.149, forced=False) is None
    assert "0.15" in (refusal_of(0.15, forced=False) or "")
    assert refusal_of(1.0, forced=True) is None
    assert waits_for(0.2, 0.0, None) == "activity"
    assert waits_for(0.0, 599.0, None) == "idleness"
    assert waits_for(0.0, 600.0, 1799.0) == "cooldown"
    assert waits_for(0.0, 600.0, 1800.0) is None
    assert waits_for(0.0, 600.0, None) is None
    assert waits_for(0.0, 600.0, -1.0) is None, "a dream of the future counts as none"

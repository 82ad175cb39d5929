"""Goals by their rules: groups without chance, what coherence and confidence are, levels, texts."""

from __future__ import annotations

import numpy as np
import pytest

from processors.context_graph.rules import goals
from processors.context_graph.rules.clusters import cluster_count, clusters
from processors.context_graph.rules.goals import (
    background,
    coherence_of,
    confidence_of,
    dominant_views,
    goal_text,
    level_of,
    nearness_within,
    north_star_id,
    passing_threshold,
    subgoal_id,
)
from storage.search.vectors.token_vectors import unit

DIM = 64


def around(axis: int, count: int, noise: float, seed: int = 0) -> np.ndarray:
    """Rows of length 1 around an axis."""
    rows = noise * np.random.default_rng([seed, axis]).standard_normal((count, DIM)) / np.sqrt(DIM)
    rows[:, axis] += 1
    made: np.ndarray = unit(rows)
    return made


def scattered(count: int, seed: int = 0) -> np.ndarray:
    made: np.ndarray = unit(np.random.default_rng(seed).standard_normal((count, DIM)))
    return made


@pytest.mark.parametrize(("memories", "count"), [(1, 1), (3, 1), (6, 2), (12, 3), (200, 10), (2_000, 32)])
def test_how_many_clusters_are_looked_for(memories: int, count: int) -> None:
    assert cluster_count(memories) == count


def test_themes_are_found_whole_whatever_their_order_and_the_same_each_time() -> None:
    rows = np.concatenate([around(axis, count, 0.5) for axis, count in ((3, 12), (9, 8), (20, 5))])
    owner = np.repeat([3, 9, 20], [12, 8, 5])
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(rows))
        found = clusters(rows[order], 3)
        assert [len(places) for places in found] == [12, 8, 5], "the largest first"
        assert all(len(set(owner[order][places].tolist())) == 1 for places in found)
        again = clusters(rows[order], 3)
        assert all(np.array_equal(one, other) for one, other in zip(found, again, strict=True))


def test_groups_of_fewer_than_three_are_none_and_repeats_do_not_disturb() -> None:
    assert clusters(around(0, 2, 0.1), 1) == []
    assert [len(places) for places in clusters(np.repeat(around(0, 1, 0.1), 9, axis=0), 3)] == [9]
    found = clusters(np.concatenate([around(0, 6, 0.2), around(5, 2, 0.2)]), 2)
    assert [places.tolist() for places in found] == [[0, 1, 2, 3, 4, 5]], "two alone make no group"


def test_coherence_is_0_of_what_is_as_far_apart_as_the_background_and_1_of_one_matter() -> None:
    unrelated = scattered(150, seed=7)
    assert coherence_of(around(3, 40, 0.5), unrelated) == pytest.approx(1.0)
    assert coherence_of(scattered(40, seed=1), unrelated) < 0.3
    assert coherence_of(around(3, 1, 0.5), unrelated) == 1.0, "one memory is of one matter"
    half = np.concatenate([around(3, 40, 0.5), scattered(40, seed=1)])
    assert 0.3 < coherence_of(half, unrelated) < 1.0


def test_a_cluster_is_held_against_the_nearest_of_the_background_because_it_was_chosen_so() -> None:
    """Of rows by chance the nearest thirty to anything look coherent, unless the others are chosen in the same way."""
    rows, unrelated = scattered(300, seed=3), scattered(300, seed=4)
    nearest = rows[np.argsort(-(rows @ rows[0]))[:30]]
    assert coherence_of(nearest, unrelated) > 0.6
    assert coherence_of(nearest, unrelated, share=0.1) < 0.3


def test_nearness_is_to_the_others_and_not_to_itself() -> None:
    pair = np.eye(DIM)[:2]
    assert nearness_within(pair).tolist() == [0.0, 0.0]
    assert nearness_within(pair[:1]).tolist() == [1.0]


def test_confidence_is_of_coherence_size_and_dominant_views() -> None:
    assert confidence_of(1.0, 50, 50, 1.0) == pytest.approx(1.0)
    assert confidence_of(0.5, 25, 400, 0.5) == pytest.approx(0.4 * 0.5 + 0.3 * 0.5 + 0.3 * 0.5)
    assert confidence_of(1.0, 1, 1, 1.0) == pytest.approx(1.0), "a store of one memory is all of it"


def test_a_view_that_no_memory_has_takes_no_part() -> None:
    aligned = np.full((3, 13), 0.2)
    aligned[:, [0, 7]] = 0.9
    aligned[:, 4] = np.nan
    aligned[0, 7] = np.nan
    assert dominant_views(aligned) == (["E1", "E8"], 2 / 12)
    assert dominant_views(np.full((2, 13), np.nan)) == ([], 0.0)


@pytest.mark.parametrize(
    ("share", "count", "coherence", "level"),
    [
        (0.20, 8, 0.9, "Strategic"),
        (0.20, 8, 0.79, "Tactical"),
        (0.10, 8, 0.9, "Tactical"),
        (0.10, 8, 0.7, "Operational"),
        (0.07, 26, 0.9, "Strategic"),
        (0.035, 26, 0.9, "Tactical"),
        (0.01, 26, 0.9, "Operational"),
        (0.5, 2, 0.9, "Strategic"),
    ],
)
def test_levels_are_of_relative_sizes(share: float, count: int, coherence: float, level: str) -> None:
    assert level_of(share, count, coherence) == level


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The tide turns. It is late.", "The tide turns."),
        ("Version 1.2 is out!  And\nmore.", "Version 1.2 is out!"),
        ("no end of it", "no end of it"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_a_goal_says_its_medoids_first_sentence(text: str, expected: str) -> None:
    assert goal_text(text) == expected


def test_the_threshold_that_is_named_would_pass() -> None:
    assert passing_threshold(0.496256) == 0.49
    assert passing_threshold(0.7) == 0.7
    assert passing_threshold(0.0) == 0.0


def test_ids_are_of_namespace_parent_and_medoid() -> None:
    assert north_star_id("north") == north_star_id("north") != north_star_id("south")
    assert len({subgoal_id("north", "p", "m"), subgoal_id("north", "q", "m"), subgoal_id("south", "p", "m")}) == 3


def test_the_background_is_of_many_matters() -> None:
    assert len(background()) >= 150
    assert len(set(background())) == len(background())
    assert all(sentence.strip() == sentence != "" for sentence in background())
    assert goals.LEAST_MEMBERS == 3

"""Search strategies: each parameter changes the order of a crafted corpus, and none can say more than 1."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from processors.context_graph.rules import synergy
from processors.context_graph.rules.groups import GROUPS
from processors.context_graph.rules.strategies import (
    SCOPES,
    STRATEGIES,
    Scope,
    Strategy,
    Weights,
    nearness,
    one_view,
    purpose_similarity,
    score,
)

NAN = math.nan
PURPOSES = np.linspace(1.0, 0.0, 40)


def corpus(seed: int = 3) -> np.ndarray:
    """Forty memories, each with its own profile of views."""
    return np.random.default_rng(seed).uniform(0.05, 0.95, size=(40, 13))


def order(**asked: object) -> tuple[int, ...]:
    found = score(corpus(), PURPOSES, **({"synergy": synergy.INITIAL} | asked))  # type: ignore[arg-type]
    return tuple(np.argsort(-found.similarity, kind="stable").tolist())


def test_each_strategy_orders_a_corpus_in_its_own_way() -> None:
    orders = {strategy: order(strategy=strategy) for strategy in STRATEGIES}
    assert orders.pop("adaptive") in orders.values(), "adaptive chooses one of the others"
    for one, other in itertools.combinations(orders, 2):
        assert orders[one] != orders[other], (one, other)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_memory_that_agrees_in_every_view_is_fully_similar_and_one_that_agrees_in_none_is_not(
    strategy: Strategy,
) -> None:
    alignments = np.stack([np.ones(13), np.zeros(13), np.full(13, -1.0)])
    found = score(alignments, np.array([1.0, 0.0, 0.0]), synergy.INITIAL, strategy=strategy).similarity
    assert found[0] == pytest.approx(1.0)
    assert (found[1:] < 0.45).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scope", SCOPES)
def test_every_similarity_is_finite_and_in_range_whatever_is_not_available(strategy: Strategy, scope: Scope) -> None:
    alignments = corpus() * 2 - 1
    alignments[::2, ::3] = NAN
    alignments[0] = NAN
    alignments[:, 4] = NAN
    found = score(alignments, PURPOSES, synergy.INITIAL, strategy=strategy, scope=scope)
    for numbers in (found.similarity, found.correlations, found.groups, found.purpose):
        assert np.isfinite(numbers).all()
        assert (numbers >= 0).all()
        assert (numbers <= 1).all()
    assert score(np.empty((0, 13)), np.empty(0), synergy.INITIAL, strategy=strategy).similarity.shape == (0,)


def test_each_scope_orders_a_corpus_in_its_own_way() -> None:
    orders = [order(strategy="cosine", scope=scope) for scope in SCOPES]
    assert len(set(orders)) == len(SCOPES)
    assert order(strategy="cosine", scope="purpose_vector_only") == tuple(range(40))
    distances = [order(strategy="euclidean", scope=scope) for scope in SCOPES]
    assert len(set(distances)) == len(SCOPES)


@pytest.mark.parametrize("name", ["purpose", "correlations", "groups"])
@pytest.mark.parametrize("strategy", ["cosine", "adaptive"])
def test_each_weight_changes_the_order(name: str, strategy: Strategy) -> None:
    heavy = order(strategy=strategy, weights=Weights(**({"purpose": 0, "correlations": 0, "groups": 0} | {name: 1.0})))
    without = order(strategy=strategy, weights=Weights(**{name: 0.0}))
    assert heavy != without
    assert heavy != order(strategy=strategy)


def test_each_group_alone_raises_the_memory_that_its_views_find() -> None:
    for group, members in GROUPS.items():
        alignments = np.full((2, 13), 0.5)
        alignments[0, list(members)], alignments[1, list(members)] = 0.9, 0.1
        others = [view for view in range(13) if view not in members]
        alignments[0, others], alignments[1, others] = 0.1, 0.9
        for strategy in STRATEGIES:
            chosen = Weights(only=[group])
            found = score(alignments, np.full(2, 0.5), synergy.INITIAL, strategy=strategy, weights=chosen).similarity
            assert found[0] > found[1], (group, strategy)


def test_each_view_alone_orders_by_itself() -> None:
    alignments = corpus()
    orders = [tuple(np.argsort(-one_view(alignments, view)).tolist()) for view in range(13)]
    assert len(set(orders)) == 13
    alignments[:, 2] = NAN
    assert not one_view(alignments, 2).any()


def test_views_of_a_profile_change_the_order() -> None:
    code = np.eye(13)[6] + 0.01
    best = int(np.argmax(corpus()[:, 6]))
    assert order(strategy="cosine", weights=Weights(views=code, purpose=0.0, correlations=0.0))[0] == best
    assert order(strategy="cosine", weights=Weights(purpose=0.0))[0] != best


def test_what_was_judged_relevant_rises_and_what_was_judged_irrelevant_falls() -> None:
    alignments = corpus()
    for place in (3, 11, 25):
        before = score(alignments, PURPOSES, synergy.INITIAL, strategy="synergy_weighted").similarity
        for judged, sign in ((1.0, 1), (0.0, -1)):
            learned = synergy.learn(synergy.INITIAL, alignments[place], judged, 0.5, "contributing_pairs").matrix
            after = score(alignments, PURPOSES, learned, strategy="synergy_weighted").similarity
            assert sign * (after[place] - before[place]) > 0
            rank_before, rank_after = (int((each > each[place]).sum()) for each in (before, after))
            assert sign * (rank_before - rank_after) >= 0


def test_adaptive_compares_by_groups_where_the_views_agree() -> None:
    scattered = np.tile(np.linspace(0, 1, 13), (3, 1))
    agreeing = np.full((3, 13), 0.6)
    purposes = np.ones(3)
    assert score(scattered, purposes, synergy.INITIAL).used == "cosine"
    assert score(agreeing, purposes, synergy.INITIAL).used == "group_hierarchical"
    chosen = Weights(purpose=0.1)
    assert score(agreeing, purposes, synergy.INITIAL, weights=chosen).used == "cosine", "a weight is not ignored"


def test_purposes_are_compared_by_their_direction_over_the_views_that_count() -> None:
    query = np.eye(13)[0] + np.eye(13)[1]
    memories = np.stack([query * 2, np.eye(13)[0], np.eye(13)[5], np.zeros(13), -query])
    found = purpose_similarity(query, memories)
    assert found == pytest.approx([1.0, math.sqrt(0.5), 0.0, 0.0, 0.0])
    only_first = purpose_similarity(query, memories, np.eye(13)[0])
    assert only_first == pytest.approx([1.0, 1.0, 0.0, 0.0, 0.0])


def test_nearness_falls_with_distance() -> None:
    assert nearness(25.0) == pytest.approx(0.16667, abs=5e-6)
    assert nearness(0.0) == 1.0

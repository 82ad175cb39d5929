"""Paths of causes: golden numbers, and the strongest path among several."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.context_graph.rules.edges import Edge
from processors.context_graph.rules.inference import DECAY, MAX_HOPS, abduce, causes, effects, mutual, path_of


def edge(source: str, target: str, weight: float, confidence: float = 0.9) -> Edge:
    return Edge(source, target, "causal", weight, confidence)


CHAIN = [edge("a", "b", 0.8), edge("b", "c", 0.9)]


def test_two_edges_in_a_row_are_as_strong_as_their_product_less_a_tenth() -> None:
    found = effects(CHAIN, "a")["c"]
    assert found.ids == ["a", "b", "c"]
    assert found.strength == pytest.approx(0.648)
    assert found.confidence == 0.9
    assert causes(CHAIN, "c")["a"].ids == ["a", "b", "c"]
    assert not effects(CHAIN, "c")
    assert not causes(CHAIN, "a")


def test_a_mutual_influence_is_the_geometric_mean() -> None:
    assert mutual(0.72, 0.5) == pytest.approx(0.6)
    assert mutual(0.72, 0.0) == 0


def test_a_path_has_five_edges_at_most() -> None:
    row = [edge(str(place), str(place + 1), 1.0) for place in range(8)]
    assert max(effects(row, "0"), key=int) == str(MAX_HOPS)
    assert effects(row, "0")[str(MAX_HOPS)].strength == pytest.approx(DECAY ** (MAX_HOPS - 1))


def test_what_is_denied_or_hardly_sure_is_not_walked() -> None:
    assert not effects([edge("a", "b", 0.0, 1.0), edge("a", "c", 0.9, 0.49)], "a")
    assert effects([edge("a", "c", 0.9, 0.5)], "a")["c"].confidence == 0.5


def test_a_longer_path_counts_where_it_is_the_stronger() -> None:
    found = effects([edge("a", "c", 0.5), *CHAIN, edge("c", "a", 1.0)], "a")
    assert found["c"].ids == ["a", "b", "c"]
    assert "a" not in found, "a memory is no cause of itself"


@given(st.dictionaries(st.sampled_from(list(permutations("abcde", 2))), st.floats(0.01, 1.0), max_size=14))
def test_no_path_is_stronger_than_the_one_that_is_found(weights: dict[tuple[str, str], float]) -> None:
    edges = {pair: edge(*pair, weight) for pair, weight in weights.items()}
    found = effects(edges.values(), "a")
    every: dict[str, float] = {}
    for count in range(2, 6):
        for walk in permutations("abcde", count):
            if walk[0] == "a" and all(pair in edges for pair in pairwise(walk)):
                strength = path_of([edges[pair] for pair in pairwise(walk)]).strength
                every[walk[-1]] = max(every.get(walk[-1], 0.0), strength)
    assert {end: path.strength for end, path in found.items()} == pytest.approx(every)


def test_the_likeliest_cause_is_strong_and_important() -> None:
    edges = [edge("near", "effect", 0.9), edge("far", "near", 0.9), edge("grave", "effect", 0.6)]
    alike = abduce(edges, "effect", {})
    assert [one.path.ids[0] for one in alike] == ["near", "far", "grave"]
    assert alike[0].posterior == pytest.approx(0.9 / 3)
    weighed = abduce(edges, "effect", {"near": 0.2, "far": 0.1, "grave": 0.7})
    assert [one.path.ids[0] for one in weighed] == ["grave", "near", "far"]
    assert weighed[0].posterior == pytest.approx(0.6 * 0.7)
    assert abduce([], "effect", {}) == []

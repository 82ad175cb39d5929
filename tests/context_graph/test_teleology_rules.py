"""Groups, correlations, synergy, Tucker, fusion and profiles: what the rules promise, in printed numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from processors.context_graph.rules import fusion, profiles, synergy, tucker
from processors.context_graph.rules.correlations import PAIRS, correlations, strongest_pair
from processors.context_graph.rules.groups import GROUPS, group_alignments, named, weighted_mean

EQUAL = np.full(13, 1 / 13)
NAN = math.nan


def place_of(first: int, second: int) -> int:
    """Among the 78."""
    return [(int(one), int(other)) for one, other in zip(*PAIRS, strict=True)].index((first, second))


def views(seed: int = 5) -> np.ndarray:
    """Thirteen unit vectors of the common space that share something."""
    drawn = np.random.default_rng(seed)
    made = drawn.normal(size=(13, 256)) + 2 * drawn.normal(size=256)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True))


@pytest.mark.parametrize(("pair", "place"), [((0, 1), 0), ((0, 12), 11), ((1, 2), 12), ((11, 12), 77)])
def test_a_pair_of_views_has_its_place_among_the_78(pair: tuple[int, int], place: int) -> None:
    assert place_of(*pair) == place


def test_a_correlation_is_the_geometric_mean_of_two_alignments_times_their_synergy() -> None:
    alignments = np.zeros(13)
    alignments[0], alignments[1], alignments[2], alignments[3] = 0.64, 0.36, -0.5, NAN
    found = correlations(alignments, synergy.INITIAL)
    assert found[place_of(0, 1)] == pytest.approx(0.288)
    assert np.count_nonzero(found) == 1, "what is not positive or not available correlates with nothing"
    assert strongest_pair(found) == ("E1", "E2")


def test_a_negligible_correlation_is_zero() -> None:
    alignments = np.zeros(13)
    alignments[:2] = 0.016  # times 0.6: 0.0096
    assert not correlations(alignments, synergy.INITIAL).any()


def test_the_initial_synergy_is_what_was_printed() -> None:
    matrix = synergy.INITIAL
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 1).all()
    assert int((matrix[PAIRS] >= synergy.HIGH).sum()) == 19
    assert matrix[PAIRS].mean() == pytest.approx(0.5308, abs=5e-5)
    assert np.linalg.norm(matrix) == pytest.approx(8.1413, abs=5e-5)
    assert (synergy.from_pairs(matrix[PAIRS]) == matrix).all()


def test_a_group_is_the_weighted_mean_of_its_views_without_those_that_are_not_available() -> None:
    alignments = np.zeros(13)
    alignments[0], alignments[10], alignments[7] = 0.8, 0.4, NAN
    found = named(group_alignments(alignments))
    assert found["factual"] == pytest.approx(0.6)
    assert found["relational"] == pytest.approx(0.4), "E8 is not available: E11 alone"
    weights = np.ones(13)
    weights[0] = 3
    assert named(group_alignments(alignments, weights))["factual"] == pytest.approx(0.7)
    assert list(found) == list(GROUPS)
    alignments[4] = NAN
    assert math.isnan(group_alignments(alignments)[list(GROUPS).index("causal")])
    assert weighted_mean(np.full(13, NAN), np.ones(13)) == 0


def judged(
    score: float, scope: synergy.UpdateScope = "contributing_pairs", rate: float = 0.01
) -> synergy.SynergyUpdate:
    alignments = np.full(13, 0.2)
    alignments[[0, 5, 11]] = 0.8
    alignments[1], alignments[2] = -0.9, NAN
    return synergy.learn(synergy.INITIAL, alignments, score, rate, scope)


def test_a_relevant_result_raises_the_pairs_that_found_it_most_and_an_irrelevant_one_lowers_them() -> None:
    up, down = judged(1.0), judged(0.0)
    best, other, usual = place_of(0, 5), place_of(0, 3), (3 * 0.8 + 24 * 0.4) / 27
    assert up.matrix[PAIRS][best] == pytest.approx(0.6 + 0.01 * (0.8 - usual))
    assert up.matrix[PAIRS][other] == pytest.approx(0.3 + 0.01 * (0.4 - usual)), "less than most: it is lowered"
    assert down.matrix[PAIRS][best] == pytest.approx(0.6 - 0.2 * 0.01 * (0.8 - usual)), "a fifth of a relevant one"
    assert up.mean_after == pytest.approx(up.mean_before), "the matrix turns and does not shift"
    assert up.matrix[0, 1] == 0.6, "a view that did not find it contributes nothing"
    assert up.frobenius_delta > 0
    assert 1 <= len(up.largest_changes) <= 5
    assert up.largest_changes[0]["new"] > up.largest_changes[0]["old"]  # type: ignore[operator]


def test_scopes_choose_the_pairs_that_learn() -> None:
    few, all_pairs, high = (judged(1.0, scope) for scope in ("contributing_pairs", "all_pairs", "high_synergy_only"))
    assert few.pairs_updated < all_pairs.pairs_updated
    changed = high.matrix[PAIRS] != synergy.INITIAL[PAIRS]
    assert changed.any()
    assert (synergy.INITIAL[PAIRS][changed] >= synergy.HIGH).all()
    contributing = few.matrix[PAIRS] != synergy.INITIAL[PAIRS]
    assert {(int(PAIRS[0][at]), int(PAIRS[1][at])) for at in np.flatnonzero(contributing)} >= {(0, 5), (0, 11), (5, 11)}


def test_half_relevant_changes_nothing() -> None:
    for scope in synergy.UPDATE_SCOPES:
        found = judged(synergy.FEEDBACK["partially_relevant"], scope)
        assert (found.pairs_updated, found.frobenius_delta, found.largest_changes) == (0, 0.0, [])


@pytest.mark.parametrize(("score", "end", "other"), [(1.0, synergy.MOST, synergy.LEAST), (0.0, 0.05, 0.99)])
def test_synergy_stays_symmetric_with_diagonal_one_and_within_its_bounds_however_long_it_learns(
    score: float, end: float, other: float
) -> None:
    matrix, alignments = synergy.INITIAL, np.where(np.arange(13) < 7, 0.9, 0.1)
    for _ in range(80):
        matrix = synergy.learn(matrix, alignments, score, 0.5, "all_pairs").matrix
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 1).all()
    both, neither = (alignments[PAIRS[0]] > 0.5) & (alignments[PAIRS[1]] > 0.5), np.maximum(*alignments[[*PAIRS]]) < 0.5
    assert matrix[PAIRS][both] == pytest.approx(np.full(21, end))
    assert matrix[PAIRS][neither] == pytest.approx(np.full(15, other))


def test_what_all_pairs_have_in_common_changes_nothing() -> None:
    same = synergy.learn(synergy.INITIAL, np.full(13, 0.9), 1.0, 0.5, "all_pairs")
    assert same.matrix == pytest.approx(synergy.INITIAL)
    none = synergy.learn(synergy.INITIAL, np.zeros(13), 1.0, 0.5, "contributing_pairs")
    assert (none.pairs_updated, none.frobenius_delta) == (0, 0.0)


def test_tucker_of_all_ranks_is_the_whole_tensor_and_of_fewer_a_part() -> None:
    vectors = views()
    tensor = np.einsum("ik,jk->ijk", vectors, vectors)
    whole = tucker.decompose(vectors, (13, 13, 256))
    assert whole.explained_variance == pytest.approx(1.0)
    assert (whole.core**2).sum() == pytest.approx((tensor**2).sum())
    part = tucker.decompose(vectors, (4, 4, 128))
    assert part.core.size == 2048
    assert part.compression_ratio == pytest.approx(1.2389, abs=5e-5)
    assert 0 < tucker.decompose(vectors, (1, 1, 1)).explained_variance < part.explained_variance < 1


def test_tucker_is_the_truncated_higher_order_svd_of_the_tensor() -> None:
    vectors = views(6)
    tensor = np.einsum("ik,jk->ijk", vectors, vectors)
    by_view = np.linalg.svd(tensor.reshape(13, -1), full_matrices=False)
    by_feature = np.linalg.svd(tensor.reshape(-1, 256).T, full_matrices=False)
    u, f = by_view[0][:, :3], by_feature[0][:, :10]
    expected = np.einsum("ijk,ia,jb,kc->abc", tensor, u, u, f)
    found = tucker.decompose(vectors, (3, 3, 10))
    assert found.strengths == pytest.approx(by_view[1][:3])
    assert np.abs(found.core) == pytest.approx(np.abs(expected), abs=1e-9)


def test_tucker_of_nothing_is_zeros() -> None:
    found = tucker.decompose(np.zeros((13, 256)))
    assert (found.explained_variance, float(np.abs(found.core).sum())) == (0.0, 0.0)


def shares(method: str, weights: np.ndarray = EQUAL, **changes: object) -> np.ndarray:
    alignments = np.linspace(0.9, -0.1, 13)
    given = {"synergy": None, "priorities": profiles.priorities(None), "tucker": tucker.decompose(views())}
    return fusion.shares(method, weights, alignments, **(given | changes))  # type: ignore[arg-type]


def test_each_fusion_method_shares_out_one_and_no_two_alike() -> None:
    found = [shares(method, synergy=matrix) for method in fusion.METHODS for matrix in (None, synergy.INITIAL)]
    for each in found:
        assert each.sum() == pytest.approx(1.0)
        assert (each >= 0).all()
    assert len({tuple(each.round(9)) for each in found}) == len(found), "synergy and method each make a difference"


def test_linear_fusion_of_one_view_is_that_view_alone() -> None:
    only = np.eye(13)[0]
    assert shares("linear", only) == pytest.approx(only)
    assert shares("linear", only, synergy=synergy.INITIAL) == pytest.approx(only)


def test_group_priorities_share_out_hierarchical_fusion() -> None:
    found = shares("hierarchical", priorities=profiles.priorities({"temporal": 3, "causal": 1}))
    assert found[[1, 2, 3]].sum() == pytest.approx(0.75)
    assert found[4] == pytest.approx(0.25)


def test_where_no_view_is_aligned_the_weights_are_the_shares() -> None:
    weights = np.arange(13) / 78
    found = fusion.shares("linear", weights, np.full(13, NAN), synergy.INITIAL, profiles.priorities(None))
    assert found == pytest.approx(weights)


def test_a_fused_vector_has_unit_length() -> None:
    assert np.linalg.norm(fusion.fused(EQUAL, views())) == pytest.approx(1.0)
    assert not fusion.fused(EQUAL, np.zeros((13, 256))).any()


def test_confidence_grows_with_alignment_and_is_zero_without() -> None:
    full = fusion.trust(np.ones(13), synergy.INITIAL)
    assert full.value == pytest.approx(1.0)
    assert full.active == 13
    half = fusion.trust(np.full(13, 0.5), synergy.INITIAL)
    assert half.value < full.value
    none = fusion.trust(np.full(13, NAN), synergy.INITIAL)
    assert (none.value, none.active) == (0.0, 0)


def test_there_are_thirteen_system_profiles_and_each_sums_to_one() -> None:
    assert len(profiles.SYSTEM) == 13
    for profile in profiles.SYSTEM.values():
        assert sum(profile.embedder_weights) == pytest.approx(1.0)
        assert sum(profile.group_priorities.values()) == pytest.approx(1.0)
        assert profile.is_system
    assert profiles.SYSTEM["code_search"].embedder_weights[6] == pytest.approx(0.35)
    assert profiles.SYSTEM["research"].embedder_weights[11] == pytest.approx(0.187)
    assert set(profiles.TASK_TYPES) < set(profiles.SYSTEM)


@pytest.mark.parametrize(
    "weights", [[1.0] * 12, [1.0] * 14, [0.0] * 13, [NAN] * 13, [math.inf] + [1.0] * 12, [-0.1] + [1.0] * 12, []]
)
def test_weights_that_weigh_nothing_or_not_thirteen_views_are_refused_with_a_sentence(weights: list[float]) -> None:
    with pytest.raises(profiles.ProfileError, match=r"`embedder_weights` .*\.$") as refused:
        profiles.view_weights(weights)
    assert refused.value.field == "embedder_weights"


def test_huge_weights_sum_to_one_too() -> None:
    assert profiles.view_weights([1.7e308] * 13) == pytest.approx([1 / 13] * 13)


def test_a_profile_is_made_from_its_task_and_changed_field_by_field() -> None:
    made = profiles.created({"profile_id": "mine", "name": "Mine", "task_type": "debugging"})
    assert made.embedder_weights == profiles.SYSTEM["debugging"].embedder_weights
    other = profiles.updated(made, {"task_type": "research", "group_priorities": {"causal": 2}})
    assert other.embedder_weights == profiles.SYSTEM["research"].embedder_weights
    assert (other.name, other.group_priorities["causal"]) == ("Mine", 1.0)
    own = profiles.updated(made, {"embedder_weights": [2.0] * 13})
    assert own.embedder_weights == pytest.approx(profiles.EQUAL)
    assert profiles.updated(own, {"name": "Other"}).embedder_weights == pytest.approx(own.embedder_weights)


def test_an_id_is_made_from_a_name_in_any_script() -> None:
    assert profiles.id_from_name("  My Code-Search! ") == "my_code_search"
    assert profiles.id_from_name("代码 搜索") == "代码_搜索"
    with pytest.raises(profiles.ProfileError, match="no letter or digit"):
        profiles.id_from_name(" !! ")

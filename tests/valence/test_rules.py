"""The pure rules of beliefs.

The check vectors of confidence, ranking and tensions, and what never may be taken for the same.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_ingress.toolsets.valence.belief_search import WEIGHTS as RANK
from processors.valence.rules.confidence import (
    WEIGHTS,
    Confidence,
    ConfidenceError,
    age_days,
    corroboration,
    evidence_of,
    label_of,
    ladder,
    overall_of,
    read_confidence,
    recency,
    temporal_freshness,
    under_tension,
)
from processors.valence.rules.entities import name_key, same_form
from processors.valence.rules.sources import read_source
from processors.valence.rules.tensions import (
    Claim,
    consistency,
    is_duplicate,
    judge,
    score_of,
    severity_of,
    signal_of,
    signals,
    tension_id,
)
from processors.valence.rules.wording import Wording

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
units = st.floats(0, 1)
dimensions = st.dictionaries(st.sampled_from(list(WEIGHTS)), units, min_size=1)
texts = st.lists(
    st.sampled_from(
        [
            "Redis",
            "team",
            "uses",
            "not",
            "never",
            "port",
            "5432",
            "v1.2",
            "good",
            "bad",
            "should",
            "n't",
            "cache",
            "Postgres",
            "was",
            "is",
        ]
    ),
    max_size=8,
).map(" ".join)


def held(content: str, overall: float = 0.7, number: int = 1, **more: Any) -> Claim:
    return Claim(f"b{number}", content, overall, NOON + timedelta(minutes=number), **more)


def test_overall_is_the_weighted_geometric_mean() -> None:
    mostly_high = {**dict.fromkeys(WEIGHTS, 0.9), "domain_applicability": 0.1}
    assert (
        round(overall_of(mostly_high), 4) == 0.7225
        and round(overall_of(mostly_high, dict.fromkeys(WEIGHTS, 1.0)), 4) == 0.6240
    )
    assert round(overall_of({"source_reliability": 0.9, "method_quality": 0.5}), 4) == 0.7220
    assert math.isclose(sum(WEIGHTS.values()), 1.0)


@given(dimensions)
def test_overall_lies_between_the_least_and_the_greatest_dimension(given_: dict[str, float]) -> None:
    overall = overall_of(given_)
    assert max(0.001, min(given_.values())) - 1e-9 <= overall <= max(0.001, *given_.values()) + 1e-9


def test_what_confidence_a_caller_means() -> None:
    assert read_confidence(None) == Confidence(0.7, "default", {})
    assert read_confidence(0.8) == Confidence(0.8, "caller", {})
    assert read_confidence({"overall": 0.8, "source_reliability": 0.9}) == Confidence(
        0.8, "caller", {"source_reliability": 0.9}
    )
    assert read_confidence({"source_reliability": 0.9}).origin == "computed"
    assert [read_confidence(bound).overall for bound in (0, 1)] == [0, 1]
    for wrong in ({"vibe": 1}, {"overall": 1.01}, {"overall": True}, {"overall": "high"}, -0.1, float("nan")):
        with pytest.raises(ConfidenceError):
            read_confidence(wrong)


@pytest.mark.parametrize(
    ("overall", "label"), [(0.9, "very high"), (0.75, "high"), (0.5, "moderate"), (0.25, "low"), (0.2499, "very low")]
)
def test_labels_begin_at_their_bounds(overall: float, label: str) -> None:
    assert label_of(overall) == label


def test_corroboration_freshness_recency_and_the_ladder() -> None:
    assert [round(corroboration([0.6] * count), 5) for count in (1, 2, 3, 5, 10)] == [
        0.4,
        0.64,
        0.784,
        0.92224,
        0.99395,
    ]
    assert [temporal_freshness([], age) for age in (30, 60)] == [0.5, 0.25]
    assert temporal_freshness(["tech", "timeless"], 9999) == 1.0 and temporal_freshness(["current"], 7) == 0.5
    assert {
        temporal_freshness([name], days)
        for name, days in (("stable", 365), ("professional", 90), ("ephemeral", 1 / 24))
    } == {0.5}
    assert [round(recency(age), 4) for age in (0, 30)] == [1, 0.7408] and round(recency(69.3), 2) == 0.5
    assert [ladder(count) for count in (1, 2, 3, 9)] == [0.5, 0.65, 0.8, 0.8]


def test_a_source_adds_half_its_reliability_and_four_tenths_when_that_is_not_given() -> None:
    assert [evidence_of(reliability) for reliability in (None, 0.9, 0.0)] == [0.4, 0.45, 0]


def test_age_counts_by_the_moment_and_not_by_the_day() -> None:
    half = age_days(NOON, NOON + timedelta(hours=12))
    assert half == 0.5 and age_days(NOON, NOON - timedelta(hours=12)) == 0
    assert recency(half) == pytest.approx(math.exp(-0.005)) and recency(0) > recency(half) > recency(1)
    assert temporal_freshness(["current"], half) == pytest.approx(0.5 ** (0.5 / 7))


def test_a_rank_is_half_meaning_a_third_confidence_and_the_rest_recency() -> None:
    parts = {"semantic": 0.8, "confidence": 0.7, "recency": recency(0)}
    assert math.isclose(sum(RANK[name] * part for name, part in parts.items()), 0.795)


def test_the_severity_of_the_check_vectors() -> None:
    strong = signal_of(negation=True, antonym=True, value=False)
    assert math.isclose(strong, 0.7) and math.isclose(score_of(strong, 0.93), 0.74)
    assert math.isclose(0.74 * 0.8, 0.592) and severity_of(0.74, 0.592, 0.8, 0.8) == "high"
    assert severity_of(0.74, 0.666, 0.9, 0.9) == "critical"
    assert severity_of(score_of(0.3, 0.8), 0.21, 0.7, 0.7) == "low"
    assert severity_of(score_of(0.4, 0.8), 0.28, 0.7, 0.7) == "medium"
    assert [consistency("low", 0.9), consistency("high", 0.7), consistency("high", 0.8), consistency("high", 0.95)] == [
        0.5,
        0.3,
        0.1,
        0,
    ]


def test_the_signal_of_a_conflict_is_at_most_one() -> None:
    assert signal_of(negation=True, antonym=True, value=True) == 1


def test_a_tension_is_critical_only_when_both_beliefs_are_held_with_high_confidence() -> None:
    assert severity_of(0.9, 0.6, 0.8, 0.8) == "critical"
    assert {severity_of(0.9, 0.6, 0.79, 1.0), severity_of(0.9, 0.6, 1.0, 0.79)} == {"high"}


@pytest.mark.parametrize(("score", "severity"), [(0.349, "low"), (0.35, "medium"), (0.5, "medium"), (0.501, "high")])
def test_a_score_of_thirty_five_hundredths_is_medium_and_one_above_a_half_high(score: float, severity: str) -> None:
    assert severity_of(score, 0.0, 1.0, 1.0) == severity


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("The cache isn't used", "The cache is used", (True, False, False)),
        ("The cache isn\u2019t used", "The cache is used", (True, False, False)),
        ("Good tests are quick", "Bad tests are quick", (False, True, False)),
        ("We should use tabs", "We shouldn't use tabs", (True, True, False)),
        ("The goods are in the shop", "The bad are in the shop", (False, False, False)),
        ("The cache is not used", "The cache is never used", (False, False, False)),
        ("Good and bad tests exist", "Bad tests exist", (False, False, False)),
        ("The port is 5432", "The port is 5433", (False, False, True)),
        ("The database is Postgres", "The database is MySQL", (False, False, True)),
        ("Deploys work well", "Deploys work nicely", (False, False, False)),
        ("Redis listens on port 6379", "Redis has 16 databases", (False, False, False)),
    ],
)
def test_what_words_tell_of_a_conflict(one: str, other: str, found: tuple[bool, bool, bool]) -> None:
    assert signals(held(one), held(other)) == found == signals(held(other), held(one))


def test_an_antonym_alone_is_a_conflict_as_material_as_the_geometric_mean_of_both_confidences() -> None:
    finding = judge(held("Good tests are quick", 0.4), held("Bad tests are quick", 0.9, number=2), None)
    assert finding is not None and finding.signal == 0.3 and math.isclose(finding.materiality, 0.3 * 0.6)


def test_an_age_is_counted_in_parts_of_days() -> None:
    assert age_days(NOON, NOON + timedelta(hours=36)) == 1.5 and age_days(NOON, NOON - timedelta(days=1)) == 0


@pytest.mark.parametrize(
    ("kind", "type_"), [(None, "conversation"), ("conversation", "conversation"), ("document", "document")]
)
def test_a_sessions_id_is_a_conversation_unless_another_type_is_named(kind: str | None, type_: str) -> None:
    source = read_source(kind, "s-1", lambda ref: ref == "s-1")
    assert (
        source is not None
        and source.type == type_
        and source.session_id == ("s-1" if type_ == "conversation" else None)
    )


def test_being_alike_is_no_conflict_by_itself() -> None:
    assert judge(held("Deploys are quick on Mondays"), held("On Mondays deploys are quick", number=2), 0.97) is None


@pytest.mark.parametrize(
    ("one", "other", "cosine", "kind"),
    [
        (held("The cache was on"), held("The cache is not on", number=2), 0.9, "temporal_conflict"),
        (held("The port is 1", valid_from=NOON), held("The port is 2", number=2), 0.9, "temporal_conflict"),
        (
            held("The port is 1", domain_path=["a"]),
            held("The port is 2", number=2, domain_path=["b"]),
            0.9,
            "scope_conflict",
        ),
        (held("Retries take 30 s"), held("Retries take 30 s, at most 5", number=2), 0.95, "partial_overlap"),
        (
            held("The cache is on", domain_path=["a"]),
            held("The cache is not on", number=2, domain_path=["a", "b"]),
            0.95,
            "contradiction",
        ),
    ],
)
def test_the_type_of_a_tension_is_the_first_that_holds(one: Claim, other: Claim, cosine: float, kind: str) -> None:
    finding = judge(one, other, cosine)
    assert finding is not None and finding.type == kind and (finding.belief_a_id, finding.belief_b_id) == ("b1", "b2")


def test_the_older_belief_is_a_whichever_is_named_first() -> None:
    older, newer = held("The port is 1", 0.5), held("The port is 2", 0.9, number=2)
    finding = judge(newer, older, 0.9)
    assert finding == judge(older, newer, 0.9)
    assert finding is not None and (finding.belief_a_id, finding.belief_b_id) == ("b1", "b2")
    assert finding.suggested_action == "supersede_a" and finding.consistency_a < finding.consistency_b


def test_an_action_is_suggested_only_when_the_other_is_newer_and_more_confident() -> None:
    sure = judge(held("The port is 1", 0.5), held("The port is 2", 0.9, number=2), 0.9)
    doubtful = judge(held("The port is 1", 0.9), held("The port is 2", 0.5, number=2), 0.9)
    assert sure is not None and sure.suggested_action == "supersede_a"
    assert doubtful is not None and doubtful.suggested_action is None


@given(texts, texts, st.floats(-1, 1))
def test_a_conflict_is_never_a_duplicate_and_is_found_from_either_side(one: str, other: str, cosine: float) -> None:
    a, b = held(one), held(other, number=2)
    finding = judge(a, b, cosine)
    assert finding == judge(b, a, cosine)
    if finding is not None:
        assert not is_duplicate(a, b, 1.0) and finding.tension_id == tension_id("b2", "b1")
        assert 0.3 <= finding.signal <= 1 and finding.materiality <= finding.score


@pytest.mark.parametrize(
    "other", ["Redis is not quick", "Redis 7 is quick", "Memcached is quick", "Redis is never quick"]
)
def test_a_text_with_something_of_its_own_is_not_the_same(other: str) -> None:
    assert not is_duplicate(held("Redis is quick"), held(other, number=2), 0.99)


def test_other_words_for_the_same_are_the_same_only_when_very_near_and_about_the_same_entities() -> None:
    one, other = held("Redis is very quick"), held("Redis is quick", number=2)
    assert is_duplicate(one, other, 0.91) and not is_duplicate(one, other, 0.90)
    assert not is_duplicate(one, held("Redis is quick", number=2, entities=frozenset({"e"})), 0.99)


@given(dimensions, units, st.integers(1, 4))
def test_a_tension_changes_an_overall_only_that_was_computed(
    given_: dict[str, float], consistent: float, count: int
) -> None:
    stated = Confidence(0.42, "caller", given_)
    assert under_tension(stated, consistent, count).overall == 0.42 and under_tension(stated, None, count) == stated
    computed = under_tension(Confidence(0.42, "computed", given_), consistent, count)
    assert computed.overall == max(
        overall_of({**given_, "internal_consistency": consistent}), ladder(count) if count > 1 else 0
    )


def test_names_of_one_thing_have_one_form() -> None:
    assert name_key("  Redis   Cluster ") == "redis cluster" == name_key("\uff32edis cluster")
    assert same_form("Node.js") == same_form("node js") == same_form("NodeJS") and same_form("C++") != same_form("C")


@given(st.text(max_size=60))
def test_any_text_can_be_taken_apart(text: str) -> None:
    wording = Wording(text)
    assert wording.negated <= wording.content_set and isinstance(
        wording.names | wording.values | wording.time_words, frozenset
    )
    assert not any(signals(held(text), held(text, number=2))[:2])

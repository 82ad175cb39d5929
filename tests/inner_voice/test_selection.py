"""Floor, slots, repeats, texts and hashes: the check vectors of the specification, and what holds for all inputs."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.inner_voice.config import InnerVoiceConfig, read_config
from processors.inner_voice.rules.provenance import origin_of, trust_tier
from processors.inner_voice.rules.selection import Candidate, adapted_floor, knowledge_slots, pick, ranked
from processors.inner_voice.rules.text import cap, content_hash, normalise
from processors.memory.kind import TableName
from processors.memory.registry import place_of

START = datetime(2026, 1, 5)
HELLO = "d74981efa70a0c880b8d8c1985d075dbcbf679b99a5f9914e5aaf96b831a9e24"


def candidate(
    number: int, score: float, *, table: TableName = "thoughts", text: str | None = None, minutes: int = 0
) -> Candidate:
    return Candidate(
        table, f"r{number:03}", text or f"text {table} {number}", score, START + timedelta(minutes=minutes)
    )


@pytest.mark.parametrize(
    ("mix", "top_k", "alone", "both"),
    [
        (0.6, 10, 6, 6),
        (0.25, 10, 3, 3),
        (0.5, 5, 3, 3),
        (0.05, 10, 1, 1),
        (0.01, 10, 0, 1),
        (0.99, 10, 10, 9),
        (0.5, 1, 1, 1),
        (0.0, 10, 0, 0),
        (1.0, 10, 10, 10),
    ],
)
def test_slots_are_rounded_halves_up_and_each_source_with_hits_has_one(
    mix: float, top_k: int, alone: int, both: int
) -> None:
    assert knowledge_slots(mix, top_k, both_hit=False) == alone
    assert knowledge_slots(mix, top_k, both_hit=True) == both


@pytest.mark.parametrize(
    ("best", "used"),
    [
        ([0.40, 0.20], 0.20),
        ([0.40, 0.12], 0.25),
        ([0.22, 0.18], 0.18),
        ([0.10, 0.12], 0.15),
        ([], 0.25),
        ([0.4, 0.3], 0.25),
        ([0.2], 0.2),
    ],
)
def test_the_floor_is_lowered_only_as_far_as_needed(best: list[float], used: float) -> None:
    assert adapted_floor(best, 0.25, 0.15) == used


def test_a_floor_below_the_least_is_used_as_it_is() -> None:
    assert adapted_floor([0.01], 0.05, 0.15) == 0.05


def test_a_source_with_too_few_unique_hits_leaves_its_slots_to_the_other() -> None:
    knowledge = [candidate(number, 0.5, table="kg_observations") for number in range(2)]
    thoughts = [candidate(number, 0.4) for number in range(20)]
    tables = [hit.candidate.table for hit in pick([*knowledge, *thoughts], 0.25, 0.6, 10, content_hash)]
    assert (tables.count("kg_observations"), tables.count("thoughts")) == (2, 8)


def test_the_same_text_is_one_snippet_and_its_slot_is_filled_again() -> None:
    belief, thought = (
        candidate(1, 0.5, table="kg_observations", text="The same."),
        candidate(2, 0.5, text=" the  SAME."),
    )
    hits = pick([thought, belief, candidate(3, 0.3), candidate(4, 0.29)], 0.25, 0.5, 3, content_hash)
    assert [hit.candidate.record_id for hit in hits] == ["r001", "r003", "r004"]


def test_of_the_same_text_the_better_score_stays() -> None:
    belief, thought = candidate(1, 0.4, table="kg_observations", text="same"), candidate(2, 0.5, text="same")
    assert [hit.candidate for hit in pick([belief, thought], 0.25, 0.5, 5, content_hash)] == [thought]


def test_equal_scores_come_newer_first_and_then_by_id() -> None:
    given_rows = [candidate(3, 0.5), candidate(1, 0.5), candidate(2, 0.5, minutes=1)]
    assert [row.record_id for row in ranked(given_rows)] == ["r002", "r001", "r003"]


ROWS = st.lists(
    st.builds(
        candidate,
        st.integers(0, 30),
        st.floats(-1, 1).map(lambda score: round(score, 6)),
        table=st.sampled_from(["thoughts", "kg_entities", "kg_observations"]),
        text=st.sampled_from(["a", "A ", "b", "c", None]),
        minutes=st.integers(0, 3),
    ),
    max_size=40,
)


@given(ROWS, st.floats(0, 1), st.floats(0, 1), st.integers(1, 50))
def test_picked_hits_are_unique_above_the_floor_in_order_and_fewer_only_when_there_are_no_more(
    rows: list[Candidate], floor: float, mix: float, top_k: int
) -> None:
    hits = pick(rows, floor, mix, top_k, content_hash)
    scores = [hit.candidate.score for hit in hits]
    assert len(hits) <= top_k and scores == sorted(scores, reverse=True) and all(score >= floor for score in scores)
    assert len({hit.content_hash for hit in hits}) == len(hits)
    assert len({(hit.candidate.table, hit.candidate.record_id) for hit in hits}) == len(hits)
    if len(hits) < top_k:
        known = {hit.content_hash for hit in hits} | {(hit.candidate.table, hit.candidate.record_id) for hit in hits}
        left = [row for row in rows if row.score >= floor]
        assert all(content_hash(row.text) in known or (row.table, row.record_id) in known for row in left)


@pytest.mark.parametrize("text", ["hello world", "  Hello \n\tWORLD ", "Hello\u200b World"])
def test_texts_that_differ_in_case_spaces_and_invisible_characters_have_one_hash(text: str) -> None:
    assert content_hash(text) == HELLO


def test_invisible_characters_are_removed_last_and_ligatures_taken_apart() -> None:
    assert normalise("ﬁne Text") == "fine text"
    assert normalise("Alpha \u200b beta") == "alpha  beta"


def sentences(*ends: int, length: int = 900) -> str:
    text = ["x"] * length
    for end in ends:
        text[end - 1], text[end] = ".", " "
    return "".join(text)


@pytest.mark.parametrize(
    ("ends", "kept"), [((100, 700), 700), ((400,), 400), ((200,), 800), ((800,), 800), ((320,), 320), ((319,), 800)]
)
def test_a_long_text_ends_with_its_last_sentence_unless_too_little_is_left(ends: tuple[int, ...], kept: int) -> None:
    assert len(cap(sentences(*ends))) == kept


def test_lengths_are_characters_and_what_is_short_enough_is_unchanged() -> None:
    assert cap("\U0001f30a" * 900) == "\U0001f30a" * 800
    assert cap("One. " * 160) == "One. " * 160
    assert cap('He said "stop." ' + "x" * 880) == ('He said "stop." ' + "x" * 880)[:800]


@given(st.text(max_size=1200))
def test_a_snippet_is_a_prefix_of_at_most_800_characters(text: str) -> None:
    assert text.startswith(cap(text)) and len(cap(text)) <= 800


@pytest.mark.parametrize(
    ("table", "toolset", "kinds"),
    [
        ("thoughts", "talos", "JournalEntry Reflection Friction"),
        ("thoughts", "cognitive_memory", "raw_dialogue l2_insight episode working_memory"),
        ("thoughts", "valence", "Exchange"),
        ("thoughts", "context_graph", "text code image audio structured mixed"),
        ("kg_entities", "valence", "Entity"),
        ("kg_entities", "talos", "Goal Capability Limitation Sutra Protocol Persona Domain"),
        ("kg_observations", "valence", "Belief Pattern Insight"),
        ("kg_observations", "talos", "Insight Observation Belief Pattern Decision"),
        (None, "talos", "Experience Question Tool Human Session OperationalState"),
    ],
)
def test_the_kinds_of_the_specification_are_where_it_says(table: str | None, toolset: str, kinds: str) -> None:
    places = [place_of(toolset, kind) for kind in kinds.split()]
    assert {place.table if place else None for place in places} == {table}


@pytest.mark.parametrize(
    ("toolset", "kind", "role", "origin", "tier"),
    [
        ("talos", "JournalEntry", None, "logged", "green"),
        ("valence", "Exchange", "user", "human", "green"),
        ("valence", "Exchange", "assistant", "model", "red"),
        ("valence", "Exchange", "system", "tool", "amber"),
        ("context_graph", "text", None, "tool", "amber"),
        ("cognitive_memory", "l2_insight", None, "model", "red"),
        ("a toolset of tomorrow", "note", None, None, "red"),
    ],
)
def test_trust_follows_the_origin_and_the_unknown_is_trusted_least(
    toolset: str, kind: str, role: str | None, origin: str | None, tier: str
) -> None:
    place = place_of(toolset, kind)
    assert place is not None
    found = origin_of(place, role)
    assert (found, trust_tier("thoughts", found)) == (origin, tier)
    assert trust_tier("kg_entities", found) == "green"


def test_only_the_one_enables_it() -> None:
    warned: list[str] = []
    assert not read_config({"SURR_ENABLE_INNER_VOICE": "true"}, warned.append).is_enabled
    assert read_config({"SURR_ENABLE_INNER_VOICE": "1"}, warned.append).is_enabled
    assert read_config({}, warned.append) == InnerVoiceConfig() and not warned


@pytest.mark.parametrize(
    ("name", "value", "field", "used"),
    [
        ("SURR_INNER_VOICE_MIX", "1.5", "mix", 1.0),
        ("SURR_INNER_VOICE_TOPK_DEFAULT", "99", "top_k", 50),
        ("SURR_INNER_VOICE_FLOOR", "-1", "floor", 0.0),
        ("SURR_INNER_VOICE_FLOOR", "nan", "floor", 0.25),
        ("SURR_INNER_VOICE_MIN_FLOOR", "1", "min_floor", 0.15),
        ("SURR_INNER_VOICE_MIN_FLOOR", "low", "min_floor", 0.15),
        ("SURR_INNER_VOICE_MAX_CANDIDATES_PER_SOURCE", "3", "max_candidates", 150),
    ],
)
def test_an_invalid_variable_is_mended_with_a_warning(name: str, value: str, field: str, used: float) -> None:
    warned: list[str] = []
    assert getattr(read_config({name: value}, warned.append), field) == used
    assert len(warned) == 1 and name in warned[0]


def test_a_fetch_gives_three_times_what_is_by_user_up_to_the_bound() -> None:
    assert (InnerVoiceConfig().candidates(10), InnerVoiceConfig().candidates(50)) == (30, 150)
    assert InnerVoiceConfig(max_candidates=100).candidates(50) == 100
    assert InnerVoiceConfig(max_candidates=20).candidates(30) == 90

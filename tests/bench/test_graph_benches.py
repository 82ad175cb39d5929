"""Benches of Context Graph on what is bundled and small: what they report, and that it holds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from mcp_ingress.inventory import find_tools
from streams.errors import Refused
from thalweg.bench.causes import measure_causes
from thalweg.bench.consolidation import measure_consolidation
from thalweg.bench.dials import follow_ups, measure_dials
from thalweg.bench.dream import measure_dream
from thalweg.bench.drift import measure_drift
from thalweg.bench.infer import measure_infer
from thalweg.bench.recall import load_for_recall
from thalweg.bench.recall_sets import Conversation, Question, Turn
from thalweg.bench.themes import measure_themes
from thalweg.bench.tools import PLAN, measure_tools
from thalweg.bench.trust import measure_trust
from thalweg.bench.watched_node import read_pieces

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
UNRELATED = Path(__file__).parents[1] / "context_graph" / "unrelated.txt"
UNSEEN = Path(__file__).parents[1] / "fixtures" / "causes_unseen.toml"
MATTERS = {
    "sea": ("tide", "harbour", "boat", "gull"),
    "code": ("parser", "compiler", "branch", "test"),
}


def dataset(folder: Path) -> str:
    """Two conversations of thirty messages about different matters, with a question each."""
    for name, (one, two, three, four) in MATTERS.items():
        messages = [
            {
                "id": f"{name}{number}",
                "role": "user",
                "content": f"The {one} number {number} met the {two if number % 2 else three} near the {four}.",
                "session": name,
            }
            for number in range(30)
        ]
        questions = [{"question": f"Which {one} had number 7?", "kind": "one", "messages": [f"{name}7"]}]
        (folder / f"{name}.json").write_bytes(orjson.dumps({"messages": messages, "questions": questions}))
    return str(folder)


def test_stated_causes_are_found_and_what_only_follows_is_not() -> None:
    figures = measure_causes(UNSEEN, load_for_recall("minilm"), "minilm").figures
    assert figures["unseen_precision"].value >= 80
    assert figures["unseen_direction"].value >= 90


def test_relevance_is_near_to_how_often_it_is_right() -> None:
    figures = measure_trust("small_talk", load_for_recall("minilm"), "minilm", fit=False).figures
    assert figures["small_talk_ece"].value < 0.08
    assert figures["small_talk_few_log_loss"].value < 0.25


def test_what_is_said_twice_becomes_one_over_mcp(tmp_path: Path) -> None:
    figures = measure_consolidation(dataset(tmp_path), "hashing", 1).figures
    assert {"1_memories_before", "1_memories_after", "1_of_two_turns"} <= figures.keys()


def test_a_goal_is_found_in_one_matter_and_in_many_none(tmp_path: Path) -> None:
    figures = measure_themes(dataset(tmp_path), UNRELATED, "minilm").figures
    for name in ("0", "1"):
        assert figures[f"{name}_confidence"].value >= 0.7 and figures[f"{name}_same_goal_again"].value == 1
    assert figures["unrelated_refused"].value == 1 and figures["unrelated_sentences"].value == 198
    assert 0 < figures["unrelated_best_confidence"].value < 0.7


def test_drift_is_measured_between_two_matters_over_mcp(tmp_path: Path) -> None:
    assert measure_drift(dataset(tmp_path), "hashing").figures


def test_drift_between_transcripts_needs_sessions_of_known_projects(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"sessionId": "unknown"}\n')
    with pytest.raises(Refused, match="no transcript"):
        measure_drift(str(tmp_path), "hashing")


def test_the_pieces_of_a_dream_are_noted_and_searches_and_writes_are_timed_beside_it() -> None:
    figures = measure_dream(200, 3, "hashing").figures
    assert figures["dream_s"].value > 0 and figures["searches_during"].value > 0 and figures["writes_during"].value > 0
    assert str(figures["dream_longest_piece"].target) == "≤ 20" and str(figures["search_p95_ratio"].target) == "≤ 1.5"
    assert str(figures["write_p95_ratio"].target) == "≤ 1.5"


def test_pieces_are_read_between_two_times_and_a_line_cut_short_is_left_out(tmp_path: Path) -> None:
    notes = tmp_path / "pieces"
    notes.write_text("10.0 0.004\n11.0 0.006\n12.0 0.008\n12")
    assert read_pieces(notes, 10.5, 12.5) == [6.0, 8.0]


def test_an_inference_walks_from_hubs_over_many_edges() -> None:
    figures = measure_infer(2_000, 1_000).figures
    assert figures["hubs_edges_walked_most"].value >= 50
    assert 0 < figures["hubs_cpu_p50"].value <= figures["hubs_cpu_p99"].value


def test_each_dial_is_turned_and_the_baseline_finds_what_is_asked_for(tmp_path: Path) -> None:
    figures = measure_dials(dataset(tmp_path), load_for_recall("minilm"), "minilm").figures
    names = sorted({figure.partition("_serotonin")[0] for figure in figures if "_serotonin" in figure})
    assert len(names) == 2
    for name in names:
        assert figures[f"{name}_serotonin_0.5_recall"].value == 100
        assert figures[f"{name}_dopamine_1_behind"].value > figures[f"{name}_dopamine_5_behind"].value
        assert figures[f"{name}_answered_at_once"].value >= figures[f"{name}_answered_later"].value


def test_a_follow_up_names_nobody_who_speaks_and_comes_after_the_turn_before_its_answer() -> None:
    at = datetime(2026, 1, 5, tzinfo=UTC)
    said = ("Ana: I was away.", "Ben: Where?", "Ana: In Porto, to see the river.")
    turns = [Turn(f"t{number}", "s", at, text) for number, text in enumerate(said)]
    asked = [
        Question("Where was Ana's journey, Ben?", "", frozenset({"t2"}), frozenset()),
        Question("Who was away?", "", frozenset({"t0"}), frozenset()),
    ]
    [(question, before)] = follow_ups(Conversation("c", turns, asked))
    assert (question.text, before) == ("Where was journey, ?", "t1")


def test_each_tool_but_searches_and_writes_is_timed() -> None:
    figures = measure_tools([100], 2, "hashing").figures
    assert {f"{tool}_100_wall_p99" for tool in PLAN} <= figures.keys()
    assert str(figures["get_pruning_candidates_100_cpu_p99"].target) == "≤ 1000"
    assert str(figures["get_steering_feedback_100_cpu_p99"].target) == "≤ 60"


def test_the_plan_names_every_tool_that_is_measured_nowhere_else() -> None:
    served = {name for name, tool in find_tools().tools.items() if tool.toolset == "context_graph"}
    elsewhere = {name for name in served if name.startswith(("search_", "store_", "inject_"))}
    assert PLAN.keys() <= served and len(PLAN) == 23
    assert served - PLAN.keys() - elsewhere == {
        *("compute_teleological_vector", "fuse_embeddings", "get_graph_manifest", "get_memetic_status"),
        *("manage_teleological_profile", "trigger_dream", "update_synergy_matrix", "utl_status"),
    }

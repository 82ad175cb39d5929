"""Benches of Context Graph on what is bundled and small: what they report, and that it holds."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from thalweg.bench.causes import measure_causes
from thalweg.bench.consolidation import measure_consolidation
from thalweg.bench.drift import measure_drift
from thalweg.bench.infer import measure_infer
from thalweg.bench.recall import load_for_recall
from thalweg.bench.trust import measure_trust

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
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


def test_what_is_said_twice_becomes_one_over_mcp(tmp_path: Path) -> None:
    figures = measure_consolidation(dataset(tmp_path), "hashing", 1).figures
    assert {"1_memories_before", "1_memories_after", "1_of_two_turns"} <= figures.keys()


def test_drift_is_measured_between_two_matters_over_mcp(tmp_path: Path) -> None:
    assert measure_drift(dataset(tmp_path), "hashing").figures


def test_an_inference_walks_from_hubs_over_many_edges() -> None:
    figures = measure_infer(2_000, 1_000).figures
    assert figures["hubs_edges_walked_most"].value >= 50
    assert 0 < figures["hubs_cpu_p50"].value <= figures["hubs_cpu_p99"].value

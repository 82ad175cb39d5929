"""The bench of a night: what it asks, in which words, and what it reports."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from processors.embedding.hashing import HashingEmbedder
from thalweg.bench.night import WORDINGS, measure_night

QUESTION = "Where does the harbour tide turn, and when?"


@pytest.mark.parametrize(
    ("wording", "words"),
    [
        ("same_words", QUESTION.split()),
        ("no_stop_words", ["harbour", "tide", "turn"]),
        ("another_order", ["Where", "does", "the", "harbour", "tide", "turn", "and", "when"]),
    ],
)
def test_a_question_is_asked_in_other_words_the_same_ones_each_time(wording: str, words: list[str]) -> None:
    said = WORDINGS[wording](QUESTION)
    assert sorted(said.split()) == sorted(words) and WORDINGS[wording](QUESTION) == said
    assert (said.split() == QUESTION.split()) is (wording == "same_words")
    assert WORDINGS[wording]("and the of"), "nothing but stop words is asked all the same"


@pytest.mark.process
def test_questions_with_several_answers_are_told_apart_from_those_with_one(tmp_path: Path) -> None:
    messages = [
        {"id": str(number), "role": "user", "content": f"The tide turns at {number} o'clock", "session": "s"}
        for number in range(12)
    ]
    questions = [
        {"question": "When does the tide turn?", "kind": "several", "messages": ["1", "2"]},
        {"question": "What turns at 5 o'clock?", "kind": "one", "messages": ["5"]},
    ]
    file = tmp_path / "chat.json"
    file.write_bytes(orjson.dumps({"messages": messages, "questions": questions}))
    report = measure_night(str(file), HashingEmbedder(), "hashing")
    figures = report.figures
    assert {"several_gold_r10", "one_gold_r10"} <= set(figures)
    names = [f"{night}_{wording}_{kind}_gain" for night in ("asked_several", "asked_all") for wording in WORDINGS
             for kind in ("several", "one")]  # fmt: skip
    assert set(names) <= set(figures)
    assert {figures[name].value for name in names} == {0.0}, "without token vectors ranks are fused, dream or not"
    assert str(figures["asked_several_same_words_several_gain"].target) == "≥ 5"

"""The bench of a week: what is told on which day, and what the nights make of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from thalweg.bench.recall_sets import Conversation, Question, Turn
from thalweg.bench.week import DAYS, days_of, measure_week

AT = datetime(2026, 1, 5, tzinfo=UTC)
TURNS = [Turn(f"t{n}", "s", AT, f"The boat number {n} is really late at the quay.") for n in range(70)]
ASKED = Question("Which boats are late?", "several", frozenset({"t3", "t25"}), frozenset())


@pytest.mark.parametrize("again", [0.0, 0.5, 1.0])
def test_each_turn_is_told_once_and_some_once_more_on_a_later_day_in_other_words(again: float) -> None:
    days = days_of(Conversation("boats", TURNS, [ASKED]), again)
    assert [turn for day in days for turn in day.new] == TURNS
    told_on = {turn.turn_id: place for place, day in enumerate(days) for turn in day.new}
    repeated = [(place, turn, text) for place, day in enumerate(days) for turn, text in day.again]
    assert all(told_on[turn.turn_id] < place and text != turn.text for place, turn, text in repeated)
    assert len({turn.turn_id for _, turn, _ in repeated}) == len(repeated)
    most = len(TURNS) * (DAYS - 1) // DAYS
    assert len(repeated) == most * again or 0 < len(repeated) < most
    assert days == days_of(Conversation("boats", TURNS, [ASKED]), again), "the same week each time"


def test_a_question_is_asked_on_the_day_of_its_last_answer() -> None:
    days = days_of(Conversation("boats", TURNS, [ASKED]), 0.5)
    assert [len(day.asked) for day in days] == [0, 0, 1, 0, 0, 0, 0]


@pytest.mark.process
@pytest.mark.timeout(300)
def test_what_was_told_again_is_fewer_memories_after_the_nights(tmp_path: Path) -> None:
    texts = ["tide", "invoice", "parser", "garden", "violin", "glacier", "ferry"]
    messages = [
        {
            "id": one,
            "role": "user",
            "content": f"The {one} of Oslo was really seen by a friend of mine near the old {one}.",
        }
        for one in texts
    ]
    questions = [{"question": "Who saw the parser?", "kind": "one", "messages": ["parser"]}]
    file = tmp_path / "chat.json"
    file.write_bytes(orjson.dumps({"messages": messages, "questions": questions}))
    figures = measure_week(str(file), "hashing", 1.0).figures
    assert (figures["0_turns"].value, figures["0_told"].value) == (7, 13)
    assert figures["0_live"].value < figures["0_live_without_nights"].value == 13
    assert figures["0_of_two_turns"].value == 0
    assert figures["0_recall"].value == figures["0_recall_without_nights"].value == 100

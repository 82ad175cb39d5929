"""The bench of what is given with a prompt: transcripts are replayed in order of time, and each mark is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from processors.embedding.hashing import HashingEmbedder
from streams.errors import Refused
from thalweg.bench.inject import measure_inject
from thalweg.bench.inject_marks import bundled_marks, read_marks, read_projects, shares
from thalweg.bench.report import Report

DECISION = "The lighthouse exporter signs all of its bundles with ed25519 keys from the vault."
QUESTION = "Which keys does the lighthouse exporter take from the vault to sign all its bundles?"
CHATTER = (
    "The parser rejects a missing comma.",
    "Retries double their pause up to a minute.",
    "Ann reviews what touches the schema.",
    "The nightly build takes forty minutes.",
    "Screenshots go into the wiki.",
    "Logs rotate once they are a gigabyte.",
    "A flag turns the new editor on.",
    "Two people approve a migration.",
    "Old branches are deleted every Friday.",
    "The cache is warm after three requests.",
)


def line(session: str, uuid: str, minute: int, role: str, text: str) -> dict[str, Any]:
    content = text if role == "user" else [{"type": "text", "text": text}]
    time = f"2026-03-01T{9 + minute // 60:02}:{minute % 60:02}:00Z"
    message = {"role": role, "content": content}
    return {"type": role, "uuid": uuid, "sessionId": session, "timestamp": time, "message": message}


def marks(first: dict[str, list[str]], second: dict[str, list[str]]) -> bytes:
    about = {"project": "p", "part": "report", "format": "claude-code"}
    rows = [about | {"session": name, "prompts": prompts} for name, prompts in (("one", first), ("two", second))]
    return b"\n".join(orjson.dumps(row) for row in rows)


@pytest.fixture
def transcripts(tmp_path: Path) -> Path:
    """Two sessions: the first decides and chats, the second asks for the decision, and for something else."""
    first = [line("one", "u0", 0, "user", "how are the bundles of the lighthouse exporter signed today?")]
    first += [line("one", "u1", 1, "assistant", DECISION)]
    first += [line("one", f"c{number}", 2 + number, "assistant", text) for number, text in enumerate(CHATTER)]
    second = [
        line("two", "v0", 70, "user", QUESTION),
        line("two", "v1", 71, "user", "Write a haiku on an owl, moonlight and snow."),
        line("two", "v2", 72, "user", "yes"),
        line("two", "v3", 73, "user", QUESTION.replace("Which", "So which")),
    ]
    # the later session's file is first by name: the order of time counts
    for name, rows in (("b-one", first), ("a-two", second)):
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(orjson.dumps(row) for row in rows))
    return tmp_path


def values(report: Report) -> dict[str, float]:
    return {name: figure.value for name, figure in report.figures.items()}


def test_a_prompt_counts_where_it_is_given_what_it_needs_and_one_that_needs_nothing_where_it_is_given_anything(
    transcripts: Path,
) -> None:
    second = {"v0": ["needs", "u1"], "v1": ["none"], "v2": ["none"]}
    found = values(measure_inject(transcripts, HashingEmbedder(), "hashing", marks({"u0": ["none"]}, second)))
    assert (found["p_needs"], found["p_needs_prompts"]) == (100, 1)
    assert (found["p_none"], found["p_none_prompts"]) == (0, 3)
    assert found["p_helps_prompts"] == 0
    assert found["p_facts_per_prompt"] == 0.25 and 10 < found["p_tokens_per_prompt"] < 40


@pytest.mark.parametrize("told", ["u0", "c9"])
def test_what_the_brief_of_a_session_has_told_counts_beside_what_its_prompts_were_given(
    transcripts: Path, told: str
) -> None:
    """The goal of the session before, and its last words."""
    marked = marks({"u0": ["none"]}, {"v1": ["needs", told], "v2": ["helps", "c3"]})
    found = values(measure_inject(transcripts, HashingEmbedder(), "hashing", marked))
    assert (found["p_needs"], found["p_needs_with_brief"]) == (0, 100)
    assert (found["p_helps"], found["p_helps_with_brief"], found["p_none"]) == (0, 0, 0)
    assert 20 < found["p_tokens_per_brief"] < 80, "the first session of two is told nothing"


def test_another_mark_on_the_same_prompt_counts_against(transcripts: Path) -> None:
    second = {"v0": ["none"], "v3": ["helps", "c0"]}
    report = measure_inject(transcripts, HashingEmbedder(), "hashing", marks({}, second))
    assert values(report)["p_none"] == 100, "it is given the decision, and would need nothing"
    assert values(report)["p_helps"] == 0, "what it is given is not what was marked"
    target, others = report.figures["p_none"].target, report.figures["p_needs_with_brief"].target
    assert target is not None and not target.is_met(100) and others is None, "what was not asked misses no target"


def test_what_a_session_was_given_is_not_given_again(transcripts: Path) -> None:
    second = {"v0": ["needs", "u1"], "v3": ["needs", "u1"]}
    found = values(measure_inject(transcripts, HashingEmbedder(), "hashing", marks({}, second)))
    assert (found["p_needs"], found["p_facts_per_prompt"]) == (50, 0.5)


def test_a_session_that_lacks_its_marked_prompts_counts_for_nothing(transcripts: Path) -> None:
    report = measure_inject(transcripts, HashingEmbedder(), "hashing", marks({}, {"gone": ["needs", "u1"]}))
    assert values(report)["p_needs_prompts"] == values(report)["p_tokens_per_prompt"] == 0
    assert report.figures["p_needs_with_brief"].target is None, "what was not asked misses no target"


def test_a_directory_without_marked_sessions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('5\n{"sessionId": "unknown"}\nno JSON\n')
    with pytest.raises(Refused, match="no transcript of a session that is marked"):
        measure_inject(tmp_path, HashingEmbedder(), "hashing")


def test_the_bundled_marks_name_events_and_no_text() -> None:
    sessions = list(read_marks(bundled_marks()))
    assert {session.part for session in sessions} == {"choice", "report"}
    kinds = [mark.kind for session in sessions if session.part == "report" for mark in session.marks.values()]
    assert len(kinds) >= 120 and set(kinds) == {"none", "helps", "needs"}
    for session in sessions:
        names = {*session.marks, *(fact for mark in session.marks.values() for fact in mark.facts)}
        assert all(name.startswith("line ") or len(name) == 36 for name in names)
        assert all(bool(mark.facts) == (mark.kind != "none") for mark in session.marks.values())


def test_a_long_session_is_cut_into_pieces_at_its_lines(tmp_path: Path) -> None:
    header = {"type": "session", "id": "long", "timestamp": "2026-03-01T09:00:00Z", "cwd": "/repo"}
    said = [
        {
            "type": "message",
            "timestamp": f"2026-03-01T09:0{number}:00Z",
            "message": {"role": "user", "content": [{"type": "text", "text": f"thing {number}"}]},
        }
        for number in range(1, 4)
    ]
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(map(orjson.dumps, [header, *said])))
    about = {"project": "q", "part": "report", "format": "pi", "session": "long"}
    rows = [about | {"lines": [1, 3], "prompts": {}}, about | {"lines": [3, 4], "prompts": {"line 3": ["none"]}}]
    [project] = read_projects(tmp_path, b"\n".join(map(orjson.dumps, rows)))
    assert [(turn.turn_id, turn.session, turn.text) for turn in project.turns] == [
        ("line 1", "long-1", "thing 1"),
        ("line 2", "long-1", "thing 2"),
        ("line 3", "long-3", "thing 3"),
    ]


def test_a_share_comes_with_its_interval() -> None:
    assert shares([]) == (0, 0, 100)
    share, low, high = shares([True] * 3 + [False] * 3)
    assert share == 50 and 18 < low < 19 and 81 < high < 82

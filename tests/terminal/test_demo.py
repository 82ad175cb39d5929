"""`thalweg demo`: the whole program on the bundled example; its report is true, and a failure is not a success."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.program import Program
from tests.node_process import NodeProcess
from thalweg.bench.scratch import environment
from thalweg.demo import ENTRIES, QUESTIONS, run_demo
from thalweg.example import session_path
from thalweg.terminal.show_demo import show_demo

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]


def test_the_report_says_what_was_done_and_every_number_agrees_with_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = run_demo({"embedder": "hashing"}, quiet=True)
    assert capsys.readouterr().out == ""
    assert report["ok"] and all(step["ok"] and step["ms"] > 0 for step in report["steps"])
    calls = [step["name"] for step in report["steps"] if step["kind"] == "call"]
    found = ["journal_query", "inner_voice.retrieve"]
    assert calls == [
        "session_open",
        *["journal_write"] * len(ENTRIES),
        "friction_log",
        "friction_log",
        *found,
        "session_close",
    ]
    tiers = [snippet["trust_tier"] for snippet in report["snippets"]]
    assert 0 < len(tiers) <= 3 and tiers[0] == "green", (
        tiers
    )  # a turn of the session may follow, once it has its vector
    lines = session_path().read_bytes().splitlines()
    assert report["imported"]["lines"] == len(lines) and report["imported"]["unreadable"] == 1
    assert report["dead_letter"]["value"].encode() == lines[-1] and report["dead_letter"]["bytes"] == len(lines[-1])
    assert len(report["moments"]) == report["imported"]["events"]
    assert [answer["question"] for answer in report["answers"]] == [question for question, _ in QUESTIONS]
    writes = 1 + len(ENTRIES) + 2 + 1
    assert all(
        (stage["processed"] >= writes, stage["lag"], stage["buried"]) == (True, 0, 0)
        for stage in report["stages"].values()
    )
    assert all(report["stages"][name]["facts"] > 0 for name in ("extract", "embed", "dedup", "patterns", "consolidate"))
    assert report["embedder"]["trained"] is False
    show_demo(report)
    shown = capsys.readouterr().out
    assert "everything worked" in shown and "untrained" in shown and "cut off" in shown


def test_the_command_prints_the_report_and_uses_no_broker_or_directory_of_the_caller(tmp_path: Path) -> None:
    done = Program(tmp_path / "home", "kafka://127.0.0.1:1", THALWEG_READ_ONLY="true")("demo", "--embedder", "none")
    assert done.code == 0, done
    assert "everything worked" in done.out and "by words and relations only" in done.out
    assert not (tmp_path / "home").exists()


def test_a_node_that_does_not_start_is_a_failure_with_the_node_s_own_reason(tmp_path: Path) -> None:
    done = Program(tmp_path / "home")("demo", "--embedder", "no/such-model")
    assert done.code == 1
    assert "a step failed" in done.out and "thalweg[models]" in done.err


def test_as_json_the_report_alone_is_printed_and_a_second_run_on_the_same_directory_works_as_the_first(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        assert Program(tmp_path / "home")("demo", "--json", "--home", str(tmp_path / "home")).json()["ok"]


def test_a_directory_on_which_a_node_runs_is_left_alone(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "home").start()
    done = Program(tmp_path / "home")("demo", "--home", str(tmp_path / "home"))
    assert done.code == 2 and "A node runs" in done.sentence
    assert node.is_alive() and node.stop() == 0


def test_the_environment_of_the_demo_names_no_setting_of_the_caller(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("THALWEG_BROKER", "kafka://elsewhere:9092")
    monkeypatch.setenv("THALWEG_NAMESPACE", "mine")
    given = environment(tmp_path, embedder="hashing")
    assert not {"THALWEG_BROKER", "THALWEG_NAMESPACE"} & set(given)

"""`thalweg hook` as a client runs it.

Quick, never forbidding, and at the end of a session its transcript is there too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.program import TIMEOUT_S, Program
from tests.node_process import Client, NodeProcess
from tests.processes import pause, resume
from thalweg.paths import socket_path

pytestmark = pytest.mark.timeout(300)


def hook(thalweg: Program, *arguments: str, wait_s: float = 60, **told: object) -> subprocess.CompletedProcess[bytes]:
    """What the hook says; it waits longer than by default, unless a test is about that."""
    command = [sys.executable, "-m", "thalweg", "hook", *arguments]
    env = {**thalweg.env, "THALWEG_CONTEXT_WAIT_S": str(wait_s)}
    return subprocess.run(
        command, env=env, input=json.dumps(told).encode(), capture_output=True, timeout=TIMEOUT_S, check=False
    )


def test_a_session_is_told_by_its_hooks_and_its_transcript_follows_at_its_end(
    thalweg: Program, node: NodeProcess, tmp_path: Path
) -> None:
    node.settle()  # it has published before: a hook waits for the log, but not long
    transcript = tmp_path / "s1.jsonl"
    line = {
        "type": "user",
        "sessionId": "s1",
        "uuid": "u1",
        "timestamp": "2026-01-05T10:00:00Z",
        "message": {"content": "Mend it."},
    }
    transcript.write_text(json.dumps(line) + "\n")
    told = {"session_id": "s1", "cwd": "/repo", "transcript_path": str(transcript)}
    for event in ("SessionStart", "UserPromptSubmit", "SessionEnd"):
        done = hook(thalweg, event, **told, hook_event_name=event)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    deadline = time.monotonic() + 90
    wanted = {"hook.SessionStart", "hook.UserPromptSubmit", "hook.SessionEnd", "user"}
    while {kind for (kind,) in node.sql("SELECT event_type FROM session_events WHERE session_id = 's1'")} != wanted:
        assert time.monotonic() < deadline, (node.home / "hook.log").read_text()
        time.sleep(0.2)


def test_what_goes_wrong_is_a_sentence_and_never_exit_code_2(thalweg: Program, node: NodeProcess) -> None:
    """An input that cannot be taken ends with 0, arguments that cannot be meant with 1."""
    for arguments, said, code in (
        (("Stop",), b"session_id", 0),
        (("UserPromptSubmit", "--answer"), b"session_id", 0),
        ((), b"usage", 1),
        (("Stop", "--nonsense"), b"usage", 1),
    ):
        done = hook(thalweg, *arguments)
        assert done.returncode == code and said in done.stderr and b"Traceback" not in done.stderr, done.stderr
        assert done.stdout == b""
    assert node.is_alive()


def given(done: subprocess.CompletedProcess[bytes], event: str) -> str:
    """The text for the model, out of the client's own form."""
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    output = json.loads(done.stdout)["hookSpecificOutput"]
    assert output["hookEventName"] == event and set(output) == {"hookEventName", "additionalContext"}
    return str(output["additionalContext"])


def test_a_session_that_starts_is_given_the_decisions_of_earlier_ones(thalweg: Program, node: NodeProcess) -> None:
    assert hook(thalweg, "SessionStart", "--answer", session_id="s1").stdout == b""
    client = Client(node.home)
    client.call("journal_write", {"content": "We decided to keep times in UTC.", "category": "decision"})
    client.close()
    node.settle()
    text = given(hook(thalweg, "SessionStart", "--answer", session_id="s2", source="startup"), "SessionStart")
    assert "We decided to keep times in UTC." in text and text.startswith("<thalweg-memory>")
    node.settle()
    assert node.sql("SELECT session_id, hook FROM injections") == [("s2", "SessionStart")]


def test_without_a_node_a_prompt_goes_through_at_once_and_a_node_is_started_that_takes_it(thalweg: Program) -> None:
    started = time.monotonic()
    done = hook(thalweg, "UserPromptSubmit", "--answer", session_id="s1", prompt="Which zone?")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert time.monotonic() - started < 30, "it did not wait for the node"
    deadline = time.monotonic() + 90
    while not socket_path(thalweg.home).exists():
        assert time.monotonic() < deadline, (thalweg.home / "hook.log").read_text()
        time.sleep(0.1)
    while thalweg.sql("SELECT payload->>'prompt' FROM session_events") != [["Which zone?"]]:
        assert time.monotonic() < deadline, (thalweg.home / "hook.log").read_text()
        time.sleep(0.2)


def test_a_node_that_hangs_costs_a_prompt_a_moment_and_one_sentence(thalweg: Program, node: NodeProcess) -> None:
    node.settle()
    assert node.process is not None
    pause(node.process)
    try:
        done = hook(thalweg, "UserPromptSubmit", "--answer", wait_s=0.4, session_id="s1", prompt="Which zone?")
    finally:
        resume(node.process)
    assert (done.returncode, done.stdout) == (0, b"") and b"did not answer within 0.4 s" in done.stderr


def test_an_input_of_five_megabytes_is_taken_and_one_beyond_the_limit_is_a_sentence(
    thalweg: Program, node: NodeProcess
) -> None:
    node.settle()
    taken = hook(thalweg, "UserPromptSubmit", session_id="s1", prompt="long " * 1_000_000)
    assert (taken.returncode, taken.stderr) == (0, b"")
    node.settle()
    assert node.sql("SELECT length(payload->>'prompt') FROM session_events") == [(5_000_000,)]
    refused = hook(thalweg, "UserPromptSubmit", "--answer", session_id="s1", prompt="long " * 2_000_000)
    assert refused.returncode == 0 and b"longer than" in refused.stderr and refused.stdout == b""

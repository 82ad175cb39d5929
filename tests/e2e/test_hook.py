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
from tests.node_process import NodeProcess

pytestmark = pytest.mark.timeout(300)


def hook(thalweg: Program, *arguments: str, **told: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "thalweg", "hook", *arguments]
    return subprocess.run(
        command, env=thalweg.env, input=json.dumps(told).encode(), capture_output=True, timeout=TIMEOUT_S, check=False
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


def test_what_goes_wrong_is_a_sentence_and_exit_code_1_never_2(thalweg: Program, node: NodeProcess) -> None:
    for arguments, said in ((("Stop",), b"session_id"), ((), b"usage"), (("Stop", "--nonsense"), b"usage")):
        done = hook(thalweg, *arguments)
        assert done.returncode == 1 and said in done.stderr and b"Traceback" not in done.stderr, done.stderr
    assert node.is_alive()

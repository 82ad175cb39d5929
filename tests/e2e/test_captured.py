"""Captured sessions through the program: found after an import, alike after a rebuild, and left out where asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import thalweg.example
from tests.e2e.program import TIMEOUT_S, Program
from tests.node_process import NodeProcess

pytestmark = [pytest.mark.timeout(300), pytest.mark.process]

EXAMPLE = str(Path(thalweg.example.__file__).parent / "session.jsonl")


def found(program: Program) -> list[tuple[Any, ...]]:
    """Kind, session, role, text and place of what a search finds, best first."""
    answer = program("search", "why does the parser lose the sign of an offset", "--json").json()
    assert answer["degraded"] is None
    return [
        (hit["kind"], hit["session_id"], hit.get("role"), hit["text"], hit.get("event_id")) for hit in answer["hits"]
    ]


def waiting(program: Program) -> int:
    return int(program("status", "--json").json()["spaces"]["turns"])


def test_what_was_said_is_found_after_the_import_and_alike_after_a_rebuild_from_the_log(
    thalweg: Program, node: NodeProcess
) -> None:
    assert thalweg("import", "claude-code", EXAMPLE, "--json").json()["applied"]
    at_once = found(thalweg)
    assert (
        at_once
        and {kind for kind, *_ in at_once} == {"Turn"}
        and {role for _, _, role, *_ in at_once}
        <= {
            "user",
            "assistant",
        }
    )
    while node.sql("SELECT count(*) FROM turns t WHERE label NOT IN (SELECT label FROM turn_embeddings)") != [(0,)]:
        pass  # each look takes its time; the test has a limit
    before = found(thalweg)
    node.stop()
    assert thalweg("rebuild", "--from-log").code == 0
    node.start()
    node.settle()
    assert found(thalweg) == before


def test_a_folder_that_is_switched_off_is_not_captured_by_hooks_or_imports_until_it_is_switched_on(
    thalweg: Program, node: NodeProcess, tmp_path: Path
) -> None:
    def hook(*arguments: str, **told: Any) -> str:
        command = [sys.executable, "-m", "thalweg", "hook", *arguments]
        given = json.dumps(told).encode()
        done = subprocess.run(
            command, env=thalweg.env, cwd=project, input=given, capture_output=True, timeout=TIMEOUT_S, check=True
        )
        return done.stdout.decode()

    def events() -> Any:
        return node.sql("SELECT count(*) FROM session_events")

    project = tmp_path / "project"
    project.mkdir()
    transcript = tmp_path / "s1.jsonl"
    line = {"type": "user", "sessionId": "s1", "uuid": "u1", "timestamp": "2026-01-05T10:00:00Z", "cwd": str(project)}
    transcript.write_text(json.dumps(line | {"message": {"content": "Mend the weir."}}) + "\n")
    assert "no longer captured" in hook("--off")
    assert hook("Stop", session_id="s1", cwd=str(project)) == ""
    report = thalweg("import", "claude-code", str(transcript), "--json").json()
    assert (report["ignored_files"], report["events"], events()) == (1, 0, [(0,)])
    assert "captured again" in hook("--on")
    hook("Stop", session_id="s1", cwd=str(project))
    assert thalweg("import", "claude-code", str(transcript), "--json").json()["ignored_files"] == 0
    node.settle()
    assert events() == [(2,)]

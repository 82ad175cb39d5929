"""What `thalweg hook` leaves behind where no node runs: the process that starts one, and a transcript's import."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from thalweg.client import hook


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str, bytes]]:
    """The commands that were left behind, with their namespace and input."""
    commands: list[tuple[list[str], str, bytes]] = []
    monkeypatch.setattr(hook, "_start", lambda home, *command: commands.append(command))
    return commands


def run(monkeypatch: pytest.MonkeyPatch, home: Path, body: bytes, *arguments: str) -> int:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(body)))
    return hook.run([*arguments, "--home", str(home), "--namespace", "north"])


def test_where_no_node_runs_one_is_started_that_takes_the_event_and_the_prompt_goes_on(
    left: list[tuple[list[str], str, bytes]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    body = b'{"session_id": "s1", "prompt": "Which zone?"}'
    assert run(monkeypatch, tmp_path / "home", body, "UserPromptSubmit", "--answer") == 0
    assert left == [(["hook", "UserPromptSubmit"], "north", body)]


@pytest.mark.parametrize(("name", "client"), [("s1.jsonl", "claude-code"), ("rollout-s1.jsonl", "codex")])
def test_each_clients_transcript_is_imported_by_its_own_reader_when_a_turn_or_session_ends(
    name: str,
    client: str,
    left: list[tuple[list[str], str, bytes]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    transcript = tmp_path / name
    transcript.write_text("{}\n")
    body = json.dumps({"session_id": "s1", "transcript_path": str(transcript)}).encode()
    imported = set()
    for event in ("SessionStart", "PostToolUse", "Stop", "SubagentStop", "PreCompact", "SessionEnd"):
        left.clear()
        assert run(monkeypatch, tmp_path / "home", body, event, "--answer") == 0
        if (["import", client, str(transcript), "--json"], "north", b"") in left:
            imported.add(event)
    assert imported == {"Stop", "PreCompact", "SessionEnd"}
    transcript.unlink()
    left.clear()
    assert run(monkeypatch, tmp_path / "home", body, "PreCompact", "--answer") == 0
    assert [command for command, *_ in left] == [["hook", "PreCompact"]], "a transcript that has gone is not read"


def test_a_session_of_codex_that_keeps_no_transcript_is_of_codex(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requests: list[dict[str, Any]] = []
    monkeypatch.setattr(hook, "_ask", lambda home, request, *rest: requests.append(request) or {})
    for given in ({"transcript_path": None}, {}):
        body = json.dumps({"session_id": "s1", **given}).encode()
        assert run(monkeypatch, tmp_path, body, "Stop", "--answer") == 0
    assert [request["client"] for request in requests] == ["codex", "claude-code"]


@pytest.mark.parametrize("body", [b"", b"no JSON", b"[1]", b'"text"', b'{"transcript_path": 5}', b"\xff"])
def test_no_input_ends_a_hook_with_anything_but_0(
    body: bytes, left: list[tuple[list[str], str, bytes]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert run(monkeypatch, tmp_path / "home", body, "SessionEnd", "--answer") == 0
    assert left == [(["hook", "SessionEnd"], "north", body)], "the node says what is wrong with it, and keeps it"


def test_a_hook_imports_next_to_nothing_because_each_prompt_waits_for_it() -> None:
    heavy = {
        "asyncio",
        "click",
        "duckdb",
        "jsonschema_rs",
        "msgspec",
        "numpy",
        "orjson",
        "streams.redaction",
        "subprocess",
    }
    code = f"import sys, thalweg.__main__, thalweg.client.hook; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"

"""The plugin in the real Codex: what is known reaches the model, and what happens reaches the memory."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.directory_lock import LOCK_NAME
from streams.errors import NotRunning
from tests.conformance.codex import Codex
from tests.conformance.responses_api import ResponsesApi, function_call, message, scripted
from tests.conformance.scripted_api import Step
from tests.e2e.program import Program
from tests.node_process import NodeProcess
from thalweg.control.requests import ask
from thalweg.paths import socket_path

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
DECISION = "We decided to keep all times of the billing service in UTC."
FACT = "The staging database of the billing service is called heron."
SETTINGS = 'embedder = "minilm"\ncontext_wait_s = 4\nwrite_wait_s = 30\nidle_exit_s = 600\n'
COMPACTS_SOON = "model_auto_compact_token_limit = 21\n"
PATIENCE_S = 120
DONE = message("Done.")


class Project:
    """Codex with the plugin in one project."""

    def __init__(self, thalweg: Program, folder: Path, home: Path) -> None:
        self.thalweg, self.folder, self.codex = thalweg, folder, Codex(home)
        folder.mkdir()
        self.codex("plugin", "marketplace", "add", str(ROOT), folder=home)
        self.codex("plugin", "add", "thalweg@thalweg", folder=home)

    def trust(self) -> None:
        self.codex.trust(self.codex.hooks(self.folder)["hooks"])

    def run(
        self, prompt: str, *script: Step, resume: str | None = None, settings: str = ""
    ) -> tuple[str, ResponsesApi]:
        """One turn to its end: the id of its session, and what the model was asked. Nothing has failed in it."""
        arguments = ["resume", resume, prompt] if resume else [prompt]
        with scripted(*(script or (DONE,))) as api:
            events = self.codex.turn(api, self.folder, *arguments, settings=settings)
        assert events[-1]["type"] == "turn.completed", events
        said = [event["item"]["text"] for event in events if event.get("item", {}).get("type") == "agent_message"]
        assert said == ["Done."]
        return str(events[0]["thread_id"]), api

    def transcript(self, session: str) -> Path:
        [path] = self.codex.sessions.glob(f"**/rollout-*-{session}.jsonl")
        return path


def context_of(request: dict[str, Any]) -> str:
    """What the memory had put before the model with this request; empty when it had nothing to say."""
    given = json.dumps(request["input"], ensure_ascii=False)
    return "\n".join(re.findall(r"<thalweg-memory>.*?</thalweg-memory>", given))


@pytest.fixture
def thalweg(tmp_path: Path) -> Iterator[Program]:
    """Its data directory is the one that a program finds by itself: Codex gives an MCP server no other variables."""
    home = tmp_path / ".local" / "share" / "thalweg"
    home.mkdir(parents=True)
    (home / "thalweg.toml").write_text(SETTINGS)
    program = Program(home, THALWEG_EMBEDDER="minilm")
    yield program
    if socket_path(program.home).exists():
        program("stop")


@pytest.fixture
def project(thalweg: Program, tmp_path: Path) -> Project:
    return Project(thalweg, tmp_path / "project", tmp_path)


def _use(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return function_call(number, tool, arguments, namespace="mcp__thalweg")


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.3)


def settle(thalweg: Program) -> None:
    """What the session left behind has come to rest: its import, and what the node makes of it."""
    wait_until(lambda: is_running(thalweg), "a hook starts the node")
    NodeProcess(thalweg.home).settle()


def is_running(thalweg: Program) -> bool:
    try:
        ask(thalweg.home, "status")
    except NotRunning:
        return False
    return True


def wait_for_transcript(project: Project, session: str) -> None:
    """Wait until each line of the session's transcript is an event."""
    lines = len(set(project.transcript(session).read_text().splitlines()))
    stored = (
        f"SELECT count(*) FROM session_events WHERE session_id = '{session}' AND NOT starts_with(event_type, 'hook.')"
    )
    wait_until(lambda: project.thalweg.sql(stored) == [[lines]], f"the {lines} lines are imported at the end")


def test_codex_takes_the_plugin_without_a_warning_and_runs_its_hooks_once_they_are_trusted(
    project: Project, thalweg: Program
) -> None:
    found = project.codex.hooks(project.folder)
    assert (found["warnings"], found["errors"]) == ([], [])
    hooks = found["hooks"]
    events = {"sessionStart", "userPromptSubmit", "postToolUse", "preCompact", "stop", "subagentStop", "sessionEnd"}
    assert {hook["eventName"] for hook in hooks} == events
    assert {hook["trustStatus"] for hook in hooks} == {"untrusted"}
    project.run("What now?")
    assert not (thalweg.home / "hook.log").exists(), "none of them has run"
    project.trust()
    assert {hook["trustStatus"] for hook in project.codex.hooks(project.folder)["hooks"]} == {"trusted"}
    session, _ = project.run("What now?")
    settle(thalweg)
    wait_for_transcript(project, session)


def test_what_one_session_keeps_comes_with_the_prompt_of_the_next_and_both_land_whole(
    project: Project, thalweg: Program
) -> None:
    project.trust()
    first, api = project.run("Good morning.")
    assert context_of(api.turns[0]) == "", "without a node a prompt goes through"
    settle(thalweg)
    wait_for_transcript(project, first)

    keep = _use(1, "remember", text=DECISION, kind="decision"), _use(2, "remember", text=FACT, kind="fact")
    look = function_call(3, "exec_command", {"cmd": "echo low water"})
    second, api = project.run("Write down what we know.", *keep, look, DONE)
    assert all('"success":true' in api.outputs[item["call_id"]] for item in keep)
    wait_for_transcript(project, second)
    settle(thalweg)
    calls = f"SELECT tool_name FROM tool_calls WHERE session_id = '{second}' AND NOT is_error ORDER BY started_at"
    *kept, looked = [name for (name,) in thalweg.sql(calls)]
    assert kept == ["mcp__thalweg__remember"] * 2
    assert looked in ("Bash", "exec_command"), "as its hook names it, or the transcript where that came first"

    third, api = project.run("What is the staging database of the billing service called?")
    given = context_of(api.turns[0])
    assert DECISION in given, "the brief of the session's start"
    assert FACT in given, "what bears on the prompt"
    wait_for_transcript(project, third)
    settle(thalweg)
    given_tokens = dict(thalweg.sql(f"SELECT hook, tokens FROM injections WHERE session_id = '{third}'"))
    assert given_tokens.keys() == {"SessionStart", "UserPromptSubmit"} and max(given_tokens.values()) <= 800

    of_third = f"FROM session_events WHERE session_id = '{third}'"
    hooks = {name for (name,) in thalweg.sql(f"SELECT DISTINCT event_type {of_third}") if name.startswith("hook.")}
    assert {"hook.SessionStart", "hook.UserPromptSubmit", "hook.SessionEnd"} <= hooks
    assert thalweg.sql("SELECT DISTINCT agent FROM telemetry_sessions") == [["codex"]]
    assert thalweg.sql("SELECT count(DISTINCT namespace) FROM session_events") == [[1]], "hooks and imports meet"
    assert thalweg.sql("SELECT count(*) FROM dead_letters") == [[0]]


def test_after_a_kill_of_the_node_a_prompt_goes_through_and_the_next_session_is_told_again(
    project: Project, thalweg: Program
) -> None:
    project.trust()
    project.run("Good morning.")
    settle(thalweg)
    project.run("Write down what we know.", _use(1, "remember", text=DECISION, kind="decision"), DONE)
    settle(thalweg)
    os.kill(int((thalweg.home / LOCK_NAME).read_text()), signal.SIGKILL)
    project.run("What now?")
    settle(thalweg)
    _, api = project.run("What now?")
    assert DECISION in context_of(api.turns[0])
    prompts = "SELECT count(*) FROM session_events WHERE event_type = 'hook.UserPromptSubmit'"
    wait_until(lambda: thalweg.sql(prompts) == [[4]], "each was taken, by whichever node")


def test_after_a_compaction_the_model_is_told_again_what_the_session_was_asked(
    project: Project, thalweg: Program
) -> None:
    project.trust()
    asked = "Move the clocks of the billing service to UTC."
    session, _ = project.run(asked)
    settle(thalweg)
    wait_for_transcript(project, session)
    _, api = project.run("Go on.", message("They moved."), DONE, resume=session, settings=COMPACTS_SOON)
    assert asked in context_of(api.turns[-1])
    wait_for_transcript(project, session)
    compacted = f"SELECT DISTINCT event_type FROM session_events WHERE session_id = '{session}'"
    assert {"hook.PreCompact", "compacted"} <= {name for (name,) in thalweg.sql(compacted)}

"""The plugin in the real Claude Code: what is known reaches the model, and what happens reaches the memory."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.directory_lock import LOCK_NAME
from tests.conformance.claude_code import RUN_S, claude_program, environment
from tests.conformance.messages_api import MessagesApi, scripted, tool_use
from tests.conformance.scripted_api import Block, Step
from tests.e2e.program import Program
from tests.node_process import NodeProcess
from thalweg.paths import socket_path

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "plugins" / "claude-code"
DECISION = "We decided to keep all times of the billing service in UTC."
FACT = "The staging database of the billing service is called heron."
PATIENCE_S = 120
DONE: Block = {"type": "text", "text": "Done."}


class Project:
    """Claude Code with the plugin in one project; its model is the script."""

    def __init__(self, thalweg: Program, folder: Path, home: Path) -> None:
        self.thalweg, self.folder, self.home = thalweg, folder, home
        folder.mkdir()
        self.claude = claude_program()

    def run(self, prompt: str, *script: Step, resume: str | None = None) -> tuple[dict[str, Any], MessagesApi]:
        """One session to its end; what Claude Code said of it, and what the model was asked."""
        command = [str(self.claude), "-p", prompt, "--plugin-dir", str(PLUGIN), "--output-format", "json"]
        command += ["--allowedTools", "mcp__plugin_thalweg_thalweg,Bash"] + (["--resume", resume] if resume else [])
        with scripted(*(script or (DONE,))) as api:
            env = environment(api, self.home)
            env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
            env |= {name: value for name, value in self.thalweg.env.items() if name.startswith("THALWEG_")}
            done = subprocess.run(
                command, env=env, cwd=self.folder, capture_output=True, timeout=RUN_S, stdin=subprocess.DEVNULL
            )
            assert done.returncode == 0, done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:]
            return json.loads(done.stdout), api


def told(api: MessagesApi) -> str:
    """What the memory had put before the model when it was asked first; empty when it had nothing to say."""
    given = json.dumps(api.turns[0]["messages"], ensure_ascii=False)
    return "\n".join(re.findall(r"<thalweg-memory>.*?</thalweg-memory>", given))


@pytest.fixture
def thalweg(tmp_path: Path) -> Iterator[Program]:
    program = Program(
        tmp_path / "home",
        THALWEG_EMBEDDER="minilm",
        THALWEG_CONTEXT_WAIT_S="4",
        THALWEG_WRITE_WAIT_S="30",
        THALWEG_IDLE_EXIT_S="600",
    )
    yield program
    if socket_path(program.home).exists():
        program("stop")


@pytest.fixture
def project(thalweg: Program, tmp_path: Path) -> Project:
    return Project(thalweg, tmp_path / "project", tmp_path)


def _load(number: int, *tools: str) -> Block:
    """The model asks for the tools' schemas before it calls them."""
    names = ",".join(f"mcp__plugin_thalweg_thalweg__{tool}" for tool in tools)
    return tool_use(number, "ToolSearch", {"query": f"select:{names}"})


def _use(number: int, tool: str, **arguments: Any) -> Block:
    return tool_use(number, f"mcp__plugin_thalweg_thalweg__{tool}", arguments)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.3)


def settle(thalweg: Program) -> None:
    """What the session left behind has come to rest: its import, and what the node makes of it."""
    node = NodeProcess(thalweg.home)
    wait_until(lambda: socket_path(thalweg.home).exists(), "a hook starts the node")
    node.settle()


def kill(thalweg: Program) -> None:
    """kill -9 of the node that a hook has started."""
    os.kill(int((thalweg.home / LOCK_NAME).read_text()), signal.SIGKILL)


def test_claude_code_accepts_the_plugin_and_its_marketplace(tmp_path: Path) -> None:
    for path in (PLUGIN, ROOT):
        command = [str(claude_program()), "plugin", "validate", str(path), "--strict"]
        done = subprocess.run(command, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, capture_output=True)
        assert done.returncode == 0 and b"Validation passed" in done.stdout, done.stdout.decode()


def test_what_one_session_keeps_comes_with_the_prompt_of_the_next_which_lands_whole(
    project: Project, thalweg: Program, tmp_path: Path
) -> None:
    keep = _use(1, "remember", text=DECISION, kind="decision"), _use(2, "remember", text=FACT, kind="fact")
    first, _ = project.run("Write down what we know.", _load(0, "remember"), *keep, DONE)
    assert first["permission_denials"] == []
    settle(thalweg)
    ended, api = project.run("What is the staging database of the billing service called?")
    given, session = told(api), ended["session_id"]
    assert DECISION in given, "the brief of the session's start"
    assert FACT in given, "what bears on the prompt"
    [transcript] = (tmp_path / ".claude" / "projects").glob(f"*/{session}.jsonl")
    of_session = f"FROM session_events WHERE session_id = '{session}'"
    lines = len(set(transcript.read_text().splitlines()))
    landed = f"SELECT count(*) {of_session} AND NOT starts_with(event_type, 'hook.')"
    wait_until(lambda: thalweg.sql(landed) == [[lines]], f"the {lines} lines of the transcript are imported at the end")
    settle(thalweg)
    given_tokens = dict(thalweg.sql(f"SELECT hook, tokens FROM injections WHERE session_id = '{session}'"))
    assert given_tokens.keys() == {"SessionStart", "UserPromptSubmit"} and max(given_tokens.values()) <= 800
    assert thalweg.sql(f"SELECT role, text {of_session} AND event_type = 'assistant'") == [["assistant", "Done."]]
    hooks = {name for (name,) in thalweg.sql(f"SELECT DISTINCT event_type {of_session}")}
    assert {"hook.SessionStart", "hook.UserPromptSubmit", "hook.SessionEnd"} <= hooks
    assert thalweg.sql("SELECT count(DISTINCT namespace) FROM session_events") == [[1]], "hooks and imports meet"
    assert thalweg.sql("SELECT count(*) FROM dead_letters") == [[0]]


def test_without_a_node_and_after_its_kill_a_prompt_goes_through_and_the_next_session_is_told_again(
    project: Project, thalweg: Program
) -> None:
    ended, api = project.run("Write down what we know.", _load(0, "remember"), _use(1, "remember", text=DECISION), DONE)
    assert (ended["result"], told(api)) == ("Done.", "")
    settle(thalweg)
    kill(thalweg)
    ended, _ = project.run("What now?")
    assert ended["result"] == "Done.", "nothing that the memory lacks keeps a prompt back"
    settle(thalweg)
    _, api = project.run("What now?")
    assert DECISION in told(api)
    prompts = "SELECT count(*) FROM session_events WHERE event_type = 'hook.UserPromptSubmit'"
    wait_until(lambda: thalweg.sql(prompts) == [[3]], "each was taken, by whichever node")


def test_in_the_evening_a_model_is_told_what_was_decided_in_the_morning_and_nothing_of_another_project(
    thalweg: Program, tmp_path: Path
) -> None:
    """A day of six sessions, one of them compacted, with a kill, a contradiction and a correction; no tool recalls."""
    billing, weather = (Project(thalweg, tmp_path / name, tmp_path) for name in ("billing", "weather"))
    numbers = itertools.count(1)  # of tool uses: the same id again would be the same call

    def decide(project: Project, *texts: str) -> str:
        uses = [_use(next(numbers), "remember", text=text, kind="decision") for text in texts]
        ended, _ = project.run("Write down what we decided.", _load(next(numbers), "remember"), *uses, DONE)
        settle(thalweg)
        return str(ended["session_id"])

    decide(billing, DECISION, "The deploy day is Monday.")
    decide(weather, "We decided to draw the map with Leaflet.")
    kill(thalweg)
    third = decide(billing, "The deploy day is Friday.")
    billing.run("/compact", {"type": "text", "text": "<summary>They decided.</summary>"}, resume=third)
    settle(thalweg)
    [[compacted]] = thalweg.sql(
        f"SELECT count(*) FROM session_events WHERE session_id = '{third}' AND payload->>'source' = 'compact'"
    )
    assert compacted == 1
    [[wrong]] = thalweg.sql("SELECT entry_id FROM journal WHERE contains(content, 'Leaflet')")
    right = _use(next(numbers), "correct", id=wrong, text="We decided to draw the map with deck.gl.", reason="faster")
    weather.run("Correct what we decided.", _load(next(numbers), "correct"), right, DONE)
    settle(thalweg)

    evening = {project: told(project.run("What did we decide today?")[1]) for project in (billing, weather)}
    for own, other, decisions in (
        (billing, weather, (DECISION, "The deploy day is Friday. [", "Friday. — against: The deploy day is Monday.")),
        (weather, billing, ("We decided to draw the map with deck.gl.",)),
    ):
        assert all(decision in evening[own] for decision in decisions), evening[own]
        assert not any(decision in evening[other] for decision in decisions), "nothing crosses between projects"
    assert "Leaflet" not in evening[weather], "it was corrected"
    spent = thalweg.sql("SELECT namespace, sum(tokens), max(tokens) FROM injections GROUP BY 1 ORDER BY 1")
    assert len(spent) == 2 and all(0 < most <= 800 and most <= total for _, total, most in spent)
    assert thalweg.sql("SELECT count(*) FROM tool_calls WHERE contains(tool_name, 'recall')") == [[0]]

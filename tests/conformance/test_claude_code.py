"""The real Claude Code with this server as its memory; its model is a script of ours on 127.0.0.1.

What is tested is what no client of ours can show: that Claude Code connects, offers the tools to its model, sends calls
as the server reads them, shows the model the answers, and writes a transcript that leads back to the memory.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.claude_code import RUN_S, claude_program, environment
from tests.conformance.messages_api import MessagesApi, scripted, tool_use
from tests.conformance.scripted_api import Block, Step
from tests.e2e.program import Program
from tests.kafka.rig.broker import free_port
from tests.node_process import NodeProcess
from thalweg.paths import socket_path

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1500)]

WAITING = {"THALWEG_WRITE_WAIT_S": "30"}
"""A write answers what became of it, not that it is pending, as long as its time allows."""
NOTED: Block = {"type": "text", "text": "Noted."}
LESSON = "I realized that the parser loses its place."


@dataclass(frozen=True)
class Session:
    """How a run of Claude Code ended, and the API that it spoke to."""

    ended: dict[str, Any]
    api: MessagesApi

    def shown(self, number: int) -> dict[str, Any]:
        """The block that the model was shown for the n-th tool use."""
        [block] = [block for block in self.api.tool_results if block["tool_use_id"] == _id(number)]
        return block

    def answer(self, number: int) -> dict[str, Any]:
        """That block's text, read as JSON."""
        content = self.shown(number)["content"]
        answer: dict[str, Any] = json.loads(content if isinstance(content, str) else content[0]["text"])
        return answer


Run = Callable[..., Session]


def _id(number: int) -> str:
    return str(tool_use(number, "", {})["id"])


def _use(number: int, tool: str, **arguments: Any) -> Block:
    return tool_use(number, f"mcp__thalweg__{tool}", arguments)


def _load(number: int, *tools: str) -> Block:
    """Tools of a server are named to the model at first; it asks for their schemas before it calls them."""
    return tool_use(number, "ToolSearch", {"query": "select:" + ",".join(f"mcp__thalweg__{tool}" for tool in tools)})


@pytest.fixture(scope="module")
def claude() -> Path:
    return claude_program()


@pytest.fixture
def thalweg(tmp_path: Path) -> Iterator[Program]:
    """The command line; the node that Claude Code started is stopped at the end."""
    program = Program(tmp_path / "home")
    yield program
    if socket_path(program.home).exists():
        program("stop")


@pytest.fixture
def over_stdio(thalweg: Program) -> dict[str, Any]:
    own = (
        {name: thalweg.env[name] for name in ("THALWEG_HOME", "THALWEG_EMBEDDER")}
        | WAITING
        | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    )
    return {"command": sys.executable, "args": ["-m", "thalweg", "mcp"], "env": own}


@pytest.fixture
def over_http(thalweg: Program) -> Iterator[dict[str, Any]]:
    port = free_port()
    node = NodeProcess(thalweg.home, THALWEG_HTTP=str(port), **WAITING).start()
    yield {"type": "http", "url": f"http://127.0.0.1:{port}/mcp", "headers": node.bearer()}
    node.stop()


@pytest.fixture
def run(claude: Path, tmp_path: Path) -> Run:
    """`claude -p` to its end, once, with this server alone and nothing but the script to talk to."""

    def run(server: dict[str, Any], *script: Step) -> Session:
        config = tmp_path / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"thalweg": server}}))
        options = [
            "--mcp-config",
            str(config),
            "--strict-mcp-config",
            "--allowedTools",
            "mcp__thalweg",
            "--output-format",
            "json",
        ]
        place = tmp_path / "project"
        place.mkdir(exist_ok=True)
        with scripted(*script) as api:
            command = [str(claude), "-p", "Write down what you have learned.", *options]
            env = environment(api, tmp_path)
            done = subprocess.run(
                command, env=env, cwd=place, capture_output=True, timeout=RUN_S, stdin=subprocess.DEVNULL
            )
            assert done.returncode == 0, done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:]
            assert api.refused == [], "it wanted to speak to somebody else"
            return Session(json.loads(done.stdout), api)

    return run


@pytest.mark.parametrize("way", ["over_stdio", "over_http"])
def test_what_claude_code_writes_is_in_the_store_and_what_it_asks_is_shown_to_its_model(
    way: str, request: pytest.FixtureRequest, run: Run, thalweg: Program
) -> None:
    write = _use(1, "journal_write", content=LESSON, category="insight")

    def query() -> Block:
        NodeProcess(thalweg.home).settle()  # Claude Code asks at once, and a slow node would answer `stale`
        return _use(2, "journal_query", query="which part loses its place")

    session = run(request.getfixturevalue(way), _load(0, "journal_write", "journal_query"), write, query, NOTED)
    assert (session.ended["result"], session.ended["is_error"], session.ended["permission_denials"]) == (
        "Noted.",
        False,
        [],
    )

    told = json.dumps(session.api.turns[0]["messages"])
    listed = {"mcp__thalweg__" + tool["name"].replace(".", "_") for tool in thalweg("tools", "--json").json()}
    assert listed == set(re.findall(r"mcp__thalweg__\w+", told)) and "thalweg is a durable memory" in told
    loaded = {tool["name"]: tool for tool in session.api.turns[1]["tools"]}
    assert loaded["mcp__thalweg__journal_write"]["input_schema"]["required"] == ["content", "category"]

    written = session.answer(1)
    assert thalweg.sql("SELECT entry_id, content, category FROM journal") == [[written["entry_id"], LESSON, "insight"]]
    [found] = [found for found in session.answer(2)["results"] if found["content"] == LESSON]
    assert found["also"] == [{"kind": "JournalEntry", "id": written["entry_id"]}]


def test_a_refused_call_is_shown_to_the_model_as_an_error_with_what_it_may_send(
    run: Run, over_stdio: dict[str, Any], thalweg: Program
) -> None:
    session = run(
        over_stdio, _load(0, "journal_write"), _use(1, "journal_write", content=LESSON, category="wisdom"), NOTED
    )
    assert session.shown(1)["is_error"] is True
    refusal = session.answer(1)
    assert refusal["error_code"] == "unknown_category" and '`category` is "wisdom"' in refusal["message"]
    assert "insight" in refusal["valid_options"] and session.ended["result"] == "Noted."
    assert thalweg.sql("SELECT count(*) FROM journal") == [[0]]


def test_a_call_repeated_under_one_tool_use_has_one_effect_and_the_transcript_leads_to_its_belief(
    run: Run, over_stdio: dict[str, Any], thalweg: Program, tmp_path: Path
) -> None:
    write = _use(1, "journal_write", content=LESSON, category="insight")
    create = _use(2, "belief_create", content="The user prefers blue green deployments")
    first, again = (run(over_stdio, _load(0, "journal_write", "belief_create"), write, create, NOTED) for _ in range(2))
    assert (
        again.answer(1)["entry_id"] == first.answer(1)["entry_id"]
        and again.answer(2)["belief"] == first.answer(2)["belief"]
    )
    assert thalweg.sql("SELECT count(*) FROM journal") == [[1]]

    imported = thalweg("import", "claude-code", str(tmp_path / ".claude" / "projects"), "--json").json()
    assert imported["unreadable"] == 0
    assert thalweg.sql("SELECT belief_id, request_id, tool_call_id FROM belief_origins") == [
        [first.answer(2)["belief"]["id"], _id(2), _id(2)]
    ]
    made = thalweg.sql(
        "SELECT DISTINCT tool_name, is_error FROM tool_calls SEMI JOIN belief_origins USING (tool_call_id)"
    )
    assert made == [["mcp__thalweg__belief_create", False]]


def test_a_tool_with_a_dot_in_its_name_is_called_by_the_name_that_claude_code_gives_it(
    run: Run, over_stdio: dict[str, Any]
) -> None:
    over_stdio["env"]["SURR_ENABLE_INNER_VOICE"] = "1"
    session = run(
        over_stdio, _load(0, "inner_voice_retrieve"), _use(1, "inner_voice_retrieve", query="what was learned"), NOTED
    )
    assert session.answer(1)["diagnostics"]["reason"] == "no_candidates"

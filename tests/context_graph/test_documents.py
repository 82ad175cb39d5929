"""docs/context-graph.md: its tools are those that are served, and its hooks and recipes run as they stand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.inventory import find_tools
from tests.e2e.program import TIMEOUT_S, Program
from thalweg.paths import socket_path

PAGE = (Path(__file__).parents[2] / "docs" / "context-graph.md").read_text()
EDIT = "def rounded(cents):\n    return round_half_even(cents)  # it's \"banker's\" $rounding"


def test_the_page_lists_the_tools_that_are_served() -> None:
    served = {tool.name for tool in find_tools() if tool.toolset == "context_graph"}
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE.partition("## ")[0], re.MULTILINE)) == served
    assert len(served) == 35


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """With `thalweg` on the path, in a project of its own."""
    program = Program(tmp_path / "home", CLAUDE_PROJECT_DIR=str(tmp_path), THALWEG_WRITE_WAIT_S="30")
    program.env["PATH"] = f"{Path(sys.executable).parent}:{program.env['PATH']}"
    yield program
    if socket_path(program.home).exists():
        program("stop")


def run(program: Program, command: str, given: Any = None) -> subprocess.CompletedProcess[str]:
    place = program.env["CLAUDE_PROJECT_DIR"]
    body = None if given is None else json.dumps(given)
    return subprocess.run(
        ["bash", "-c", command],
        cwd=place,
        env=program.env,
        input=body,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


@pytest.mark.process
@pytest.mark.timeout(300)
def test_the_hooks_keep_an_edit_and_give_it_to_a_prompt_and_never_forbid_anything(program: Program) -> None:
    [block] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    hooks = {event: entries[0]["hooks"][0]["command"] for event, entries in json.loads(block)["hooks"].items()}
    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "PostToolUse"}

    def hook(event: str, **given: Any) -> str:
        done = run(program, hooks[event], {"session_id": "s1", "hook_event_name": event, **given})
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
        return done.stdout

    assert hook("SessionStart") == "", "nothing is stored yet"
    assert hook("PostToolUse", tool_name="Write", tool_input={"file_path": "/a/b.py", "content": EDIT}) == ""
    assert hook("UserPromptSubmit", prompt='How is "rounded(cents)" done?') == EDIT + "\n"
    told = hook("SessionStart")
    assert told.startswith("The memory of this project has 1 entries. ") and "null" not in told
    deleted = {"file_path": "/a/b.py", "old_string": EDIT, "new_string": ""}
    assert hook("PostToolUse", tool_name="Edit", tool_input=deleted) == "", "an edit that only removes"
    assert hook("PostToolUse", tool_name="Edit", tool_input={**deleted, "new_string": "x" * 300_000}) == ""
    for prompt in (" ", "一" * 300_000, "\u0000"):
        hook("UserPromptSubmit", prompt=prompt)


@pytest.mark.process
@pytest.mark.timeout(300)
def test_each_recipe_runs_as_it_stands(program: Program) -> None:
    recipes = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    recipes.sort(key=lambda recipe: recipe.startswith("thalweg sql"))  # what asks the store comes when there is one
    assert len(recipes) == 7
    Path(program.env["CLAUDE_PROJECT_DIR"], "rounding.py").write_text(EDIT)
    outputs = []
    for recipe in recipes:
        done = run(program, f"set -euo pipefail\n{recipe}")
        assert done.returncode == 0, (recipe, done.stderr)
        outputs.append(done.stdout)
    _, kept, code, read, *_ = outputs
    assert {"entropy", "coherence", "learningScore"} <= json.loads(kept).keys()
    assert EDIT in json.loads("[" + code.replace("}\n{", "},{") + "]")[1]["results"][0]["content"]
    assert json.loads(read)["results"][0]["content"] == "The freeze begins on 20 December."

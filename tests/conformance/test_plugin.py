"""The plugin in the real Claude Code: what is known reaches the model, and what happens reaches the memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.claude_code import RUN_S, claude_program, environment
from tests.conformance.messages_api import Block, MessagesApi, Step, scripted
from tests.e2e.program import Program
from thalweg.paths import socket_path

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "plugins" / "claude-code"
DECISION = "We decided to keep all times of the billing service in UTC."
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


def asked(api: MessagesApi) -> str:
    """All that the model was given before its first answer."""
    return json.dumps(api.turns[0]["messages"])


@pytest.fixture
def thalweg(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path / "home", THALWEG_IDLE_EXIT_S="600")
    yield program
    if socket_path(program.home).exists():
        program("stop")


@pytest.fixture
def project(thalweg: Program, tmp_path: Path) -> Project:
    return Project(thalweg, tmp_path / "project", tmp_path)


def test_claude_code_accepts_the_plugin_and_its_marketplace(tmp_path: Path) -> None:
    for path in (PLUGIN, ROOT):
        command = [str(claude_program()), "plugin", "validate", str(path), "--strict"]
        done = subprocess.run(command, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, capture_output=True)
        assert done.returncode == 0 and b"Validation passed" in done.stdout, done.stdout.decode()

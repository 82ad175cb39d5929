"""Two agents with a `thalweg mcp` each: what one sends without end does not refuse the other's calls."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.program import Program
from tests.e2e.test_agent import over_stdio
from tests.ingress.lines import INITIALIZE, INITIALIZED, calling
from tests.patience import PATIENCE_S
from thalweg.control.requests import ask

pytestmark = pytest.mark.timeout(300)
CALLS = 20


@contextmanager
def flooding(program: Program) -> Iterator[None]:
    """An agent that calls `ping` as fast as its `thalweg mcp` takes it, without a look at the answers."""
    command = [sys.executable, "-m", "thalweg", "mcp"]
    process = subprocess.Popen(command, env=program.env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    stdin = process.stdin
    assert stdin is not None

    def flood() -> None:
        try:
            for message in (INITIALIZE, INITIALIZED):
                stdin.write(json.dumps(message).encode() + b"\n")
            number = 0
            while True:
                number += 1
                stdin.write(json.dumps(calling(number, "ping")).encode() + b"\n")
        except OSError:
            pass  # the test is over

    writer = threading.Thread(target=flood, daemon=True)
    writer.start()
    try:
        yield
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        writer.join(PATIENCE_S)


async def test_one_agents_flood_refuses_no_call_of_another(tmp_path: Path) -> None:
    program = Program(tmp_path / "home", THALWEG_RATE_LIMIT="50")
    try:
        async with over_stdio(program) as calm:
            with flooding(program):
                while ask(program.home, "status")["door"]["calls"] < 150:
                    await asyncio.sleep(0.05)
                for number in range(CALLS):
                    arguments = {"content": f"The tide turned {number} times.", "category": "observation"}
                    answer = await calm.call_tool("journal_write", arguments)
                    assert not answer.is_error, answer
    finally:
        program("stop")

"""What a whole node keeps from those who are not its owner, and from agents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.program import TIMEOUT_S, Program
from tests.ingress.lines import INITIALIZE
from tests.node_process import NodeProcess


@pytest.fixture
def broker_url() -> None:
    """The embedded log: the walls are the same on both."""


def test_no_line_of_an_agent_reaches_the_control_of_the_node(thalweg: Program, node: NodeProcess, tmp_path: Path) -> None:
    copied = tmp_path / "copy.duckdb"
    requests = [{"command": "snapshot_to", "file": str(copied)}, {"command": "stop"}]
    messages = [*({"thalweg": "control", **request} for request in requests), INITIALIZE]  # what is answered holds the pump
    lines = [json.dumps(message).encode() + b"\n" for message in messages]
    pump = [sys.executable, "-m", "thalweg", "mcp"]
    done = subprocess.run(pump, env=thalweg.env, input=b"".join(lines), capture_output=True, timeout=TIMEOUT_S, check=False)
    *refused, greeted = [json.loads(line) for line in done.stdout.splitlines()]
    assert greeted["id"] == INITIALIZE["id"]
    assert [answer["error"]["message"] for answer in refused] == ["Invalid request: a line is one JSON-RPC 2.0 message."] * 2
    assert not copied.exists() and thalweg("status", "--json").code == 0

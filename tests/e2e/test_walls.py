"""What a whole node keeps from those who are not its owner, and from agents."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.program import TIMEOUT_S, Program
from tests.ingress.lines import INITIALIZE
from tests.ingress.test_http import HEADERS
from tests.kafka.rig.broker import free_port
from tests.node_process import Client, NodeProcess
from tests.patience import PATIENCE_S


@pytest.fixture
def broker_url() -> None:
    """The embedded log: the walls are the same on both."""


def test_no_line_of_an_agent_reaches_the_control_of_the_node(
    thalweg: Program, node: NodeProcess, tmp_path: Path
) -> None:
    copied = tmp_path / "copy.duckdb"
    requests = [{"command": "snapshot_to", "file": str(copied)}, {"command": "stop"}]
    messages = [
        *({"thalweg": "control", **request} for request in requests),
        INITIALIZE,
    ]  # what is answered holds the pump
    lines = [json.dumps(message).encode() + b"\n" for message in messages]
    pump = [sys.executable, "-m", "thalweg", "mcp"]
    done = subprocess.run(
        pump, env=thalweg.env, input=b"".join(lines), capture_output=True, timeout=TIMEOUT_S, check=False
    )
    *refused, greeted = [json.loads(line) for line in done.stdout.splitlines()]
    assert greeted["id"] == INITIALIZE["id"]
    assert [answer["error"]["message"] for answer in refused] == [
        "Invalid request: a line is one JSON-RPC 2.0 message."
    ] * 2
    assert not copied.exists() and thalweg("status", "--json").code == 0


def test_http_on_loopback_asks_for_the_token_of_the_data_directory_sql_too(thalweg: Program) -> None:
    port = free_port()
    node = NodeProcess(thalweg.home, THALWEG_HTTP=str(port), THALWEG_HTTP_SQL="true").start()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=HEADERS, timeout=PATIENCE_S) as client:
        for path, asked in (("/mcp", INITIALIZE), ("/sql", {"sql": "FROM sessions"})):
            refused = client.post(path, json=asked)
            assert (
                refused.status_code == 401
                and "in the file `token` of the node's data directory" in refused.json()["message"]
            )
            assert client.post(path, json=asked, headers=node.bearer()).status_code == 200
    shown, token = thalweg("status").out, (thalweg.home / "token").read_text().strip()
    assert (
        f"HTTP on http://127.0.0.1:{port}/mcp, bearer token: {thalweg.home / 'token'}" in shown and token not in shown
    )
    checks = thalweg("doctor", "--json", THALWEG_HTTP=str(port)).out
    assert str(thalweg.home / "token") in checks and token not in checks
    assert token not in node.log_tail() and str(thalweg.home / "token") in node.log_tail()
    node.stop()


def test_everything_in_a_home_that_was_open_is_for_its_owner_alone(thalweg: Program, tmp_path: Path) -> None:
    thalweg.home.mkdir()
    thalweg.home.chmod(0o755)
    (thalweg.home / "node.log").touch(mode=0o644)
    outside = tmp_path / "outside"
    outside.mkdir()
    before = os.umask(0)  # the node's own mask counts, not that of the one who starts it
    try:
        node = NodeProcess(thalweg.home, THALWEG_IDLE_EXIT_S="0").start()
        client = Client(thalweg.home)
        client.insist("journal_write", {"content": "The parser drops its last token.", "category": "observation"}, "r1")
        client.close()
        (tmp_path / "t.jsonl").write_text(
            '{"type": "user", "sessionId": "s1", "uuid": "u1", "message": {"content": "Mend it."}}\n'
        )
        assert thalweg("import", "claude-code", str(tmp_path / "t.jsonl")).code == 0
        assert thalweg("sql", "FROM sessions").code == 0
        assert thalweg("snapshot", str(outside / "copy.duckdb")).code == 0
        exported = thalweg("export", "parquet", str(outside / "parquet"))
        assert exported.code == 0, exported
        node.settle()
        found = (
            open_to_others(thalweg.home) + open_to_others(outside / "copy.duckdb") + open_to_others(outside / "parquet")
        )
        node.stop()
    finally:
        os.umask(before)
    assert found == [] and open_to_others(thalweg.home) == []
    made = {path.name for path in thalweg.home.rglob("*")}
    assert {
        "log.db",
        "thalweg.duckdb",
        "store.lock",
        "analysts.duckdb",
        "manifest.json",
        "events.jsonl",
        "node.log",
    } <= made
    assert "was open to other users (755); it is yours alone now (700)." in node.log_tail()


def open_to_others(path: Path) -> list[str]:
    """It, and what lies below it, to which others than the owner have any right."""
    places = [path, *path.rglob("*")] if path.is_dir() else [path]
    return [f"{place} {stat.S_IMODE(place.lstat().st_mode):03o}" for place in places if place.lstat().st_mode & 0o077]

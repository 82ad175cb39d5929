"""A node as a process of its own, and a small MCP client on its socket: for tests that kill, count and compare."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from streams.errors import NotRunning, Unavailable
from tests.patience import PATIENCE_S
from thalweg.control.requests import ask
from thalweg.paths import socket_path

START_S = 90.0
CONNECTION_CLOSED = -32000


class NodeProcess:
    """`thalweg up` on a home; `env` adds variables such as THALWEG_FAILPOINT."""

    def __init__(self, home: Path, broker: str | None = None, embedder: str = "hashing", **env: str) -> None:
        self.home = home
        self.broker = broker
        self.env = {**os.environ, "THALWEG_HOME": str(home), "THALWEG_EMBEDDER": embedder, **env}
        if broker:
            self.env["THALWEG_BROKER"] = broker
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **env: str) -> NodeProcess:
        """Start and wait until it answers."""
        self.launch(**env)
        self.wait_ready()
        return self

    def launch(self, **env: str) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        with open(self.home / "node.log", "ab") as log:
            command = [sys.executable, "-m", "thalweg", "up"]
            self.process = subprocess.Popen(
                command, env={**self.env, **env}, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def wait_ready(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the node ended with {self.process.returncode}: {self.log_tail()}")
            try:
                ask(self.home, "status")
                return
            except (NotRunning, Unavailable):  # not yet, or it ended while it was asked: the next look says with what
                time.sleep(0.02)
        raise AssertionError(f"the node did not answer in {START_S} s: {self.log_tail()}")

    def bearer(self) -> dict[str, str]:
        """The header that its HTTP door asks for, from where `thalweg status` says that the token is."""
        token = Path(ask(self.home, "status")["http"]["token_file"]).read_text().strip()
        return {"Authorization": f"Bearer {token}"}

    def log_tail(self) -> str:
        return (self.home / "node.log").read_text(errors="replace")[-3000:]

    def kill(self) -> None:
        """SIGKILL."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE_S)

    def died(self, timeout_s: float = 2 * PATIENCE_S) -> int:
        """Wait until it has ended by itself; the exit code."""
        assert self.process is not None
        return self.process.wait(timeout_s)

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> int:
        assert self.process is not None
        if self.is_alive():
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def settle(self, timeout_s: float = 1.5 * PATIENCE_S) -> dict[str, Any]:
        """Wait until nothing lags, the records of the calls that were answered included; the status then.

        It is asked twice: a status looks at one part after the other, and what the first look saw wait (in the door, in
        the spool) may be on the log, and not applied yet, when the same look counts what waits there. The second one
        sees it lag.
        """
        deadline = time.monotonic() + timeout_s
        was_settled = False
        while True:
            status = ask(self.home, "status")
            is_settled = _is_settled(status)
            if is_settled and was_settled:
                return status
            parts, unpublished = [status["topics"], status["stages"]], status["door"]["records_waiting"]
            assert time.monotonic() < deadline, (
                f"still behind after {timeout_s} s: {status['problems']} {parts} {unpublished}\n{self.log_tail()}"
            )
            was_settled = is_settled
            if not is_settled:
                time.sleep(0.05)

    def wait_for(self, freshness: dict[str, Any], *stages: str, timeout_s: float = 1.5 * PATIENCE_S) -> None:
        """Until what a write's token covers is applied, and processed by these stages."""
        deadline = time.monotonic() + timeout_s
        while not ask(self.home, "wait", freshness=freshness, stages=stages, timeout_s=PATIENCE_S)["applied"]:
            assert time.monotonic() < deadline, (
                f"not processed by {stages} after {timeout_s} s: {ask(self.home, 'status')}"
            )

    @contextmanager
    def store(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A copy of the store as of now, to look into while the node runs."""
        path = ask(self.home, "snapshot", max_age_s=0.0)["path"]
        connection = duckdb.connect(path, read_only=True)
        try:
            yield connection
        finally:
            connection.close()

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        with self.store() as connection:
            return connection.execute(query).fetchall()


def _is_settled(status: dict[str, Any]) -> bool:
    parts = [*status["topics"].values(), *status["stages"].values()]
    # that of a new store is registered by the way
    has_space = status["embedder"] is None or status["spaces"]["live"] is not None
    is_still = status["door"]["records_waiting"] == 0 and status["spaces"]["building"] is None
    return is_still and has_space and status["status"] == "green" and all(part.get("lag", 0) == 0 for part in parts)


class Client:
    """MCP in lines on the node's socket: one request at a time."""

    def __init__(self, home: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect(str(socket_path(home)))
        self._lines = self._socket.makefile("rb")
        self._next = 0
        self.request(
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._next += 1
        self._send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        while True:
            line = self._lines.readline()
            if not line:
                raise ConnectionError("the node is gone")
            message = json.loads(line)
            if message.get("id") == self._next:
                return message

    def call(self, tool: str, arguments: dict[str, Any], request_id: str | None = None, **meta: Any) -> dict[str, Any]:
        """The tool's structured answer; of a tool whose errors are JSON-RPC errors what such an error says."""
        if request_id is not None:
            meta["thalweg/request_id"] = request_id
        answer = self.request("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})
        if answer.get("error", {}).get("code") == CONNECTION_CLOSED:
            raise ConnectionError("the node stops")
        if "error" in answer:
            said = answer["error"].get("data") or {}
            if "error_code" not in said:
                raise AssertionError(answer["error"])
            return {**said, "message": answer["error"]["message"]}
        return answer["result"]["structuredContent"]

    def insist(self, tool: str, arguments: dict[str, Any], request_id: str, *, spooled: bool = False) -> dict[str, Any]:
        """The answer to a write once the log has taken it, or with `spooled` once the spool has.

        A node that was too slow for that says so (spooled, or a time-out), and the same request is made again.
        """
        deadline = time.monotonic() + PATIENCE_S
        while (
            bool((answer := self.call(tool, arguments, request_id)).get("spooled")) != spooled or "error_code" in answer
        ):
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)
        return answer

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

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

from thalweg.control import NotRunning, ask
from thalweg.paths import socket_path

START_S = 60.0
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
            self.process = subprocess.Popen(command, env={**self.env, **env}, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def wait_ready(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the node ended with {self.process.returncode}: {self.log_tail()}")
            try:
                ask(self.home, "status")
                return
            except NotRunning:
                time.sleep(0.02)
        raise AssertionError(f"the node did not answer in {START_S} s: {self.log_tail()}")

    def log_tail(self) -> str:
        return (self.home / "node.log").read_text(errors="replace")[-3000:]

    def kill(self) -> None:
        """SIGKILL."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def died(self, timeout_s: float = 30.0) -> int:
        """Wait until it has ended by itself; the exit code."""
        assert self.process is not None
        return self.process.wait(timeout_s)

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> int:
        assert self.process is not None
        if self.is_alive():
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def settle(self, timeout_s: float = 30.0) -> dict[str, Any]:
        """Wait until nothing lags (I9), the records of the calls that were answered included; the status then."""
        deadline = time.monotonic() + timeout_s
        while True:
            status = ask(self.home, "status")
            parts = [*status["topics"].values(), *status["stages"].values()]
            unpublished = status["door"]["records_waiting"]
            if all(part.get("lag", 0) == 0 for part in parts) and unpublished == 0 and status["status"] == "green":
                return status
            assert time.monotonic() < deadline, f"still behind after {timeout_s} s: {status['problems']} {parts} {unpublished}"
            time.sleep(0.05)

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


class Client:
    """MCP in lines on the node's socket: one request at a time."""

    def __init__(self, home: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(30.0)
        self._socket.connect(str(socket_path(home)))
        self._lines = self._socket.makefile("rb")
        self._next = 0
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
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
        """The tool's structured answer."""
        if request_id is not None:
            meta["thalweg/request_id"] = request_id
        answer = self.request("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})
        if answer.get("error", {}).get("code") == CONNECTION_CLOSED:
            raise ConnectionError("the node stops")
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer["result"]["structuredContent"]

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

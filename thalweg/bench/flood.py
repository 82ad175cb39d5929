"""One client that sends as fast as its socket takes it: `python -m thalweg.bench.flood HOME KIND`.

It reads its answers, as a client does, but waits for none. When its stdin ends it prints how many it got, and ends.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from thalweg.paths import socket_path

FLOODS: Mapping[str, dict[str, Any] | None] = {
    "ping": {"method": "tools/call", "params": {"name": "ping", "arguments": {}}},
    "unknown": {"method": "tools/call", "params": {"name": "no_such_tool", "arguments": {}}},
    "list": {"method": "tools/list", "params": {}},
    "garbage": None,
    "read": {
        "method": "tools/call",
        "params": {"name": "journal_query", "arguments": {"query": "cache stalled under load"}},
    },
    "write": {
        "method": "tools/call",
        "params": {"name": "journal_write", "arguments": {"content": "cache", "category": "observation"}},
    },
}
"""What is sent again and again.

A cheap call, a wrong name, a long answer, lines that are not JSON, and the two calls that cost most.
"""
AT_ONCE = 100
_ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "flood", "version": "1"}}


def lines_of(kind: str) -> bytes:
    """AT_ONCE lines of a flood."""
    message = FLOODS[kind]
    if message is None:
        return b"{nonsense\n" * AT_ONCE
    return b"".join(
        orjson.dumps({"jsonrpc": "2.0", "id": number, **message}) + b"\n" for number in range(1, AT_ONCE + 1)
    )


class Flood:
    """Two threads: one writes without end, the other counts the answers."""

    def __init__(self, home: Path, kind: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(socket_path(home)))
        self._lines = lines_of(kind)
        self.answers = 0

    def start(self) -> None:
        greeting = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _ABOUT}
        self._socket.sendall(orjson.dumps(greeting) + b"\n")
        self._socket.recv(1 << 20)
        self._socket.sendall(orjson.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + b"\n")
        for work in (self._write, self._read):
            threading.Thread(target=work, daemon=True).start()

    def _write(self) -> None:
        while True:
            self._socket.sendall(self._lines)

    def _read(self) -> None:
        while chunk := self._socket.recv(1 << 20):
            self.answers += chunk.count(b"\n")


def main(home: str, kind: str) -> None:
    flood = Flood(Path(home), kind)
    flood.start()
    sys.stdin.buffer.read()
    os.write(1, b"%d\n" % flood.answers)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])

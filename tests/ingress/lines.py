"""A peer that speaks JSON lines by hand, where a well-behaved client would not say what the test says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "0"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
WAIT_S = 30.0
"""Longer than any stall: what comes, comes long before."""


def calling(request: int | str, tool: str, _meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    if _meta is not None:
        params["_meta"] = _meta
    return {"jsonrpc": "2.0", "id": request, "method": "tools/call", "params": params}


class Lines:
    """One end of a connection, or of a process's stdio."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to_socket(cls, path: Path) -> Lines:
        return cls(*await asyncio.open_unix_connection(str(path), limit=1 << 26))

    async def send(self, *messages: Any) -> None:
        """Messages as JSON lines; bytes go as they are."""
        for message in messages:
            self.writer.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        await self.writer.drain()

    async def receive(self) -> dict[str, Any]:
        """The next message; fails the test when the connection has ended."""
        line = await asyncio.wait_for(self.reader.readline(), WAIT_S)
        assert line, "the connection has ended"
        return json.loads(line)

    async def ended(self) -> bool:
        return await asyncio.wait_for(self.reader.readline(), WAIT_S) == b""

    async def greet(self) -> dict[str, Any]:
        await self.send(INITIALIZE)
        answer = await self.receive()
        await self.send(INITIALIZED)
        return answer

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        await self.send(message)
        answer = await self.receive()
        assert answer["id"] == message["id"]
        return answer

    async def result(self, message: dict[str, Any]) -> dict[str, Any]:
        """The object a tool answered with."""
        return (await self.ask(message))["result"]["structuredContent"]

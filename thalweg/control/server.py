"""The command line's socket: commands send one JSON object a line and get one back.

It is not the agents' one: the right to call tools is not that to stop the node, copy its store or act in another
namespace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

from mcp_ingress.socket import MAX_LINE, UnixServer
from streams.errors import Refused

OnRequest = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class ControlServer(UnixServer):
    """Answers each line by `on_request`; a line that is not a request is refused with a sentence."""

    def __init__(self, path: Path, on_request: OnRequest) -> None:
        super().__init__(path)
        self._on_request = on_request

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await _line(reader):
            request = _request(line)
            answer = _REFUSED if request is None else await self._on_request(request)
            writer.write(orjson.dumps(answer, default=str) + b"\n")
            await writer.drain()


_REFUSED = {
    "ok": False,
    "code": Refused.code,
    "error": f"A control request is a JSON object with a `command`, in one line of at most {MAX_LINE} bytes.",
}


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The next line, empty at the end; of one that is too long only its end, which is not a request."""
    try:
        return await reader.readline()
    except ValueError:
        return b"\n"


def _request(line: bytes) -> dict[str, Any] | None:
    try:
        request = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return request if isinstance(request, dict) and "command" in request else None

"""Unix sockets that only their owner may open. On the agents' one each connection is MCP in lines, as over stdio.

The first line of a connection may name its scope, which then holds until its end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import mcp.types as types
import orjson
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import SessionMessage

from mcp_ingress.door import Door, Visitor
from mcp_ingress.limits import LOCAL, PAUSE_S, RateLimits
from mcp_ingress.scope import METHOD, Scope
from mcp_ingress.toolset import INVALID_PARAMS
from streams.clock import Clock
from streams.errors import Refused, StoreError

MAX_LINE = 16 * 1024 * 1024
LAST_ANSWERS_S = 2.0
MAX_UNANSWERED = 16
"""Requests of one connection that are read before the first of them is answered."""
STOP_S = 1.0
BACKLOG = 128
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
SCOPED = (
    "The scope of a connection is named once, in its first line, and holds until its end; "
    "another namespace or other toolsets need a connection of their own."
)

logger = logging.getLogger(__name__)


class UnixServer(ABC):
    """Serves connections on one path. `start`, then `stop`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._bound: socket.socket | None = None
        self._listener: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    def listen(self) -> None:
        """Accept connections; they are served after `start`. Raises StoreError when another node answers there."""
        self._bound = _bind(self.path)

    async def start(self) -> None:
        """Serve. Raises StoreError as `listen` does."""
        if self._bound is None:
            self.listen()
        self._listener = await asyncio.start_unix_server(self._accept, sock=self._bound, limit=MAX_LINE)

    async def stop(self) -> None:
        """Close the door, then the connections; bounded and idempotent."""
        if self._bound is None:
            return
        (self._listener or self._bound).close()
        self._bound = self._listener = None
        self.path.unlink(missing_ok=True)
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=STOP_S)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the peer is gone, or the node stops
        except Exception:
            logger.exception("a connection failed")
        finally:
            self._connections.discard(task)
            writer.close()

    @abstractmethod
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until its peer is gone."""


class SocketServer(UnixServer):
    """Serves one MCP server to agents, to each in its scope."""

    def __init__(self, path: Path, server: Server[Visitor], clock: Clock, door: Door) -> None:
        super().__init__(path)
        self._server = server
        self._clock = clock
        self._door = door
        self.clients = 0
        self._last_left = clock.monotonic()

    @property
    def idle_since(self) -> float | None:
        """Monotonic time since when no client is connected; None while one is."""
        return None if self.clients else self._last_left

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.clients += 1
        try:
            first = await _read_line(reader, writer)
            scoped = _scope_request(first)
            try:
                visitor = self._door.visit(Scope() if scoped is None else Scope.parse(scoped.params))
            except Refused as refusal:
                writer.write(_error(None if scoped is None else scoped.id, INVALID_PARAMS, refusal.message))
                await writer.drain()
                return
            if scoped is not None:
                writer.write(_scoped(scoped.id, visitor))
                first = await _read_line(reader, writer)
            if first:
                await _McpLines(reader, writer, self._door.limits).serve(self._server, visitor, first)
        finally:
            self.clients -= 1
            self._last_left = self._clock.monotonic()


class _McpLines:
    """One MCP connection in lines. It answers malformed lines itself, and waits for the last answers after EOF."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: RateLimits) -> None:
        self._reader = reader
        self._writer = writer
        self._limits = limits
        self._unanswered: Counter[types.RequestId] = Counter()
        self._settled = asyncio.Event()

    async def serve(self, server: Server[Visitor], visitor: Visitor, first: bytes) -> None:
        """Serve the visitor until it is gone and what it asked is answered."""
        incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as group:
            group.start_soon(self._read, first, incoming)
            group.start_soon(self._write, outgoing)
            await serve_dual_era_loop(server, read_stream, write_stream, lifespan_state=visitor)
            group.cancel_scope.cancel()

    async def _read(self, line: bytes, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        async with incoming:
            while line:
                await self._turn(line)
                message = self._parse(line)
                if _is_scope(message):
                    self._writer.write(_error(getattr(message, "id", None), INVALID_REQUEST, SCOPED))
                elif message is not None:
                    self._note(message)
                    await incoming.send(SessionMessage(message))
                line = await _read_line(self._reader, self._writer)
            await self._last_answers()

    async def _turn(self, line: bytes) -> None:
        """Wait while this client sends more than the limits allow: its lines lie unread, then it cannot send."""
        while wait_s := self._limits.take_or_wait(LOCAL, self):
            await asyncio.sleep(max(wait_s, PAUSE_S))
        self._limits.charge(LOCAL, self, len(line))
        await self._answered(MAX_UNANSWERED - 1)

    async def _last_answers(self) -> None:
        """A peer that closed its writing side still reads: what it asked is answered, for a bounded time."""
        with anyio.move_on_after(LAST_ANSWERS_S):
            await self._answered(0)

    async def _answered(self, at_most: int) -> None:
        """Wait until no more requests than that lack their answer."""
        while self._unanswered.total() > at_most:
            self._settled.clear()
            await self._settled.wait()

    def _parse(self, line: bytes) -> types.JSONRPCMessage | None:
        if line.isspace():
            return None
        try:
            return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._writer.write(_rejection(line))
            return None

    def _note(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._unanswered[message.id] += 1
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._settle((message.params or {}).get("requestId"))  # a cancelled request is never answered

    def _settle(self, request_id: Any) -> None:
        if self._unanswered[request_id] > 1:  # a client may use an id again before it is answered
            self._unanswered[request_id] -= 1
        else:
            del self._unanswered[request_id]
        self._settled.set()

    async def _write(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with outgoing:
            async for item in outgoing:
                line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                self._limits.charge(LOCAL, self, len(line))
                self._writer.write(line)
                await self._writer.drain()
                if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                    self._settle(item.message.id)


async def _read_line(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """The next line; empty at the end, and after a line that is too long to be read (which is answered)."""
    try:
        return await reader.readline()
    except ValueError:
        writer.write(_error(None, PARSE_ERROR, f"Parse error: a message is longer than {MAX_LINE} bytes."))
        await writer.drain()
        return b""


def _rejection(line: bytes) -> bytes:
    """The JSON-RPC error for a line that is not a message: not JSON, or JSON of another shape."""
    try:
        body = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return _error(None, PARSE_ERROR, f"Parse error: {error}")
    request_id = body.get("id") if isinstance(body, dict) else None
    known = request_id if isinstance(request_id, str | int) and not isinstance(request_id, bool) else None
    return _error(known, INVALID_REQUEST, "Invalid request: a line is one JSON-RPC 2.0 message.")


def _is_scope(message: types.JSONRPCMessage | None) -> bool:
    return isinstance(message, types.JSONRPCRequest | types.JSONRPCNotification) and message.method == METHOD


def _scope_request(line: bytes) -> types.JSONRPCRequest | None:
    """The request by which a client names its scope; None when the line is anything else."""
    if METHOD.encode() not in line:
        return None
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return None
    return message if isinstance(message, types.JSONRPCRequest) and message.method == METHOD else None


def _scoped(request_id: str | int, visitor: Visitor) -> bytes:
    """The answer to a scope: what the connection sees now."""
    toolsets = [] if visitor.catalogue is None else [toolset.name for toolset in visitor.catalogue.toolsets]
    result = {"namespace": visitor.principal.namespace, "toolsets": toolsets}
    return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}) + b"\n"


def _error(request_id: str | int | None, code: int, message: str) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}) + b"\n"


def _bind(path: Path) -> socket.socket:
    """A listening socket that only this user may open. A dead node's socket file is removed, a live one's is not."""
    if path.exists():
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1.0)
            try:
                probe.connect(str(path))
            except OSError:
                path.unlink(missing_ok=True)
            else:
                raise StoreError("Another node answers on this data directory's socket; `thalweg stop` ends it.")
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        reason = error.strerror or error
        raise StoreError(
            f"The node's socket cannot be made: {reason}. Name a data directory (`home`) that "
            "you may write to and whose path is shorter."
        ) from error
    finally:
        os.umask(mask)
    return listener

"""`thalweg mcp`: a byte pump between stdio and the node's socket that outlives the node.

Nothing heavy is imported: it must answer in the time that a client waits for a program to start. Lines pass
unchanged; the pump keeps only what it needs when the node dies: scope, handshake, and the requests without an answer.
Those are sent again to the next node, under the same request id, so that each has one effect.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streams.ids import uuid7
from thalweg.client.handshake import CHUNK, ask, check_scope, parse, scope_line
from thalweg.client.launch import Launcher, NodeError

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one message; the node reads none that is longer."""
LAST_ANSWERS_S = 2.0
GREETING_S = 10.0
MAX_SENDS = 3
"""A request that was sent this often is what kills the node."""
INVALID_REQUEST, INTERNAL_ERROR = -32600, -32603
REQUEST_ID_META = "thalweg/request_id"
TOOL_USE_META = "claudecode/toolUseId"
_ANSWER_ID = re.compile(rb'\{"jsonrpc":"2\.0","id":(-?\d+|"[^"\\]*"),"(?:result|error)":')
_ENDED_BY_NODE = re.compile(
    rb'\{"jsonrpc":"2\.0","id":(-?\d+|"[^"\\]*"),"error":\{"code":-32000,"message":"Connection closed"'
)
"""With this a node that stops answers what it can no longer work on; the request goes to the next node instead."""


class _OpenRequest:
    """A request without an answer, as it was sent, and how often."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.sends = 0


class _Lines:
    """Cuts a stream of chunks at its last newline.

    An incomplete line is not copied again with each chunk.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> bytes:
        """The whole lines that are complete now, with their newlines; what follows them waits."""
        whole, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            self._parts.append(chunk)
            return b""
        lines = b"".join([*self._parts, whole, newline])
        self._parts = [rest] if rest else []
        return lines


class Pump:
    """Two threads: one reads stdin and sends; the caller's reads the socket, writes stdout and reconnects."""

    def __init__(
        self, launcher: Launcher, scope: Mapping[str, Any] | None = None, stdin: int = 0, stdout: int = 1
    ) -> None:
        self._launcher = launcher
        self._scope = scope_line(scope)
        self._stdin, self._stdout = stdin, stdout
        self._lock = threading.Lock()  # held while sending, and while the connection is replaced
        self._output = threading.Lock()
        self._wake, self._waker = os.pipe()  # readable once stdin has ended
        self._wanted = threading.Event()  # something waits to be sent, or stdin has ended
        self._socket: socket.socket | None = None
        self._pending: dict[str | int, _OpenRequest] = {}
        self._unsent: list[bytes] = []  # notifications and malformed lines that came while there was no node
        self._initialize: tuple[str | int, bytes] | None = None
        self._initialized: bytes | None = None
        self._answered_initialize = False
        self._ended_at: float | None = None
        self._failed_greetings = 0

    def run(self) -> int:
        """Until stdin ends; the exit code."""
        threading.Thread(target=self._read_stdin, name="stdin", daemon=True).start()
        while True:
            self._wanted.wait()
            try:
                connected = self._connect()
            except NodeError as error:
                self._give_up(error)
                return 1
            if connected is not None:
                self._relay(connected)
            if self._ended_at is not None and (connected is None or not self._pending):
                return 0

    # --- from the client

    def _read_stdin(self) -> None:
        lines = _Lines()
        while chunk := os.read(self._stdin, CHUNK):
            self._lines_from_client(lines.feed(chunk))
        self._lines_from_client(lines.feed(b"\n"))  # a last line may lack its newline
        with self._lock:
            self._ended_at = time.monotonic()
            if self._socket is not None:
                _half_close(self._socket)
        os.write(self._waker, b"!")
        self._wanted.set()

    def _lines_from_client(self, lines: bytes) -> None:
        for line in lines.split(b"\n"):
            if line.strip():
                self._from_client(line + b"\n")

    def _from_client(self, line: bytes) -> None:
        message = parse(line)
        request = _request_id(message)
        if len(line) > MAX_LINE:
            self._error(
                request, f"The message has {len(line)} bytes; at most {MAX_LINE} are accepted.", INVALID_REQUEST
            )
            return
        with self._lock:
            if request is not None:
                line = self._remember(request, message, line)
                self._pending[request].sends += self._send(line)
            else:
                self._note(message, line)
                if not self._send(line) and message.get("method") != "notifications/initialized":
                    self._unsent.append(line)
        self._wanted.set()

    def _remember(self, request: str | int, message: dict[str, Any], line: bytes) -> bytes:
        if message["method"] == "tools/call":
            line = _with_request_id(message, line)
        elif message["method"] == "initialize":
            self._initialize, self._initialized, self._answered_initialize = (request, line), None, False
        self._pending[request] = _OpenRequest(line)
        return line

    def _note(self, message: dict[str, Any], line: bytes) -> None:
        if message.get("method") == "notifications/initialized":
            self._initialized = line
        elif message.get("method") == "notifications/cancelled":
            params = message.get("params")
            cancelled = params.get("requestId") if isinstance(params, dict) else None
            self._pending.pop(cancelled, None)  # type: ignore[arg-type]

    def _send(self, line: bytes) -> bool:
        """Whether there was a node to send it to; whether it arrived shows in the answer."""
        if self._socket is None:
            return False
        try:
            self._socket.sendall(line)
        except OSError:
            return False  # the reading side sees the end of the connection too, and makes a new one
        return True

    # --- from the node

    def _relay(self, connection: socket.socket) -> None:
        """Pass lines on until the connection ends (or stdin has, and nothing more is owed)."""
        lines = _Lines()
        while chunk := self._receive(connection):
            whole = _drop_goodbyes(lines.feed(chunk))
            self._note_answers(whole)
            self._to_client(whole)
        with self._lock:
            connection.close()
            self._socket = None
            if not self._pending and not self._unsent and self._ended_at is None:
                self._wanted.clear()  # no node is needed before the client's next line

    def _receive(self, connection: socket.socket) -> bytes:
        """The next bytes; none when the connection has ended, or stdin has and nothing is owed any more."""
        while True:
            ended_at = self._ended_at
            watched, patience = [connection.fileno()], None
            if ended_at is None:
                watched.append(self._wake)
            else:
                patience = max(0.0, ended_at + LAST_ANSWERS_S - time.monotonic()) if self._pending else 0.0
            if connection.fileno() in select.select(watched, [], [], patience)[0]:
                try:
                    return connection.recv(CHUNK)
                except OSError:
                    return b""
            if ended_at is not None:
                self._pending.clear()
                return b""

    def _note_answers(self, lines: bytes) -> None:
        for line in lines.split(b"\n"):
            found = _ANSWER_ID.match(line)
            message = {"id": json.loads(found.group(1))} if found else parse(line)
            if "method" in message:
                continue  # the node's own request or notification
            request = message.get("id")
            if self._initialize is not None and request == self._initialize[0]:
                self._answered_initialize = True
            if isinstance(request, str | int):
                self._pending.pop(request, None)

    # --- the connection

    def _connect(self) -> socket.socket | None:
        """A connection with the handshake done and all unanswered requests sent; None when none is needed."""
        with self._lock:
            while self._pending or self._unsent or self._ended_at is None:
                self._refuse_fatal()
                connection = self._launcher.connect()
                if self._greet(connection):
                    self._socket = connection
                    for pending in self._pending.values():
                        pending.sends += self._send(pending.line)
                    for line in self._unsent:
                        self._send(line)
                    self._unsent.clear()
                    if self._ended_at is not None:
                        self._ended_at = time.monotonic()  # the last answers are waited for from here on
                        _half_close(connection)
                    return connection
                connection.close()
                self._failed_greetings += 1
                if self._failed_greetings >= MAX_SENDS:
                    raise NodeError(
                        f"The node ends during the handshake. The last lines of its log:\n{self._launcher.log_tail()}"
                    )
        return None

    def _greet(self, connection: socket.socket) -> bool:
        """Name the scope, and repeat the client's handshake on a later connection; False when the node died.

        Raises NodeError with the node's sentence when it cannot give what the scope asks for.
        """
        try:
            connection.settimeout(GREETING_S)
            if self._scope:
                check_scope(ask(connection, self._scope))
            if self._initialize is not None and self._answered_initialize:
                ask(connection, self._initialize[1])
                if self._initialized is not None:
                    connection.sendall(self._initialized)
            connection.settimeout(None)
        except OSError:
            return False
        self._failed_greetings = 0
        return True

    def _refuse_fatal(self) -> None:
        for request, pending in list(self._pending.items()):
            if pending.sends >= MAX_SENDS:
                del self._pending[request]
                self._error(
                    request,
                    f"The node ended {MAX_SENDS} times while it worked on this request; `thalweg doctor` may say why.",
                )

    def _give_up(self, error: NodeError) -> None:
        for request in list(self._pending):
            self._error(request, str(error))
        print(f"thalweg: {error}", file=sys.stderr, flush=True)

    # --- to the client

    def _error(self, request: str | int | None, message: str, code: int = INTERNAL_ERROR) -> None:
        answer = {"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": message}}
        self._to_client(json.dumps(answer).encode() + b"\n")

    def _to_client(self, lines: bytes) -> None:
        view = memoryview(lines)
        with self._output:  # both threads write, and a line must stay whole
            while view:
                view = view[os.write(self._stdout, view) :]


def run(home: Path, command: list[str], scope: Mapping[str, Any]) -> int:
    """Pump until stdin ends; `command` starts a node, `scope` is asked of it.

    The exit code: 0, or 1 when there is no node to be had or it does not give the scope.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        code = Pump(Launcher(home, command), scope).run()
    except BrokenPipeError:
        code = 0  # the client is gone
    sys.stderr.flush()
    os._exit(code)  # the thread on stdin may be in a read that never ends


def _drop_goodbyes(lines: bytes) -> bytes:
    """The lines without those by which a stopping node says that it ends.

    Such a request stays unanswered and is sent again.
    """
    if b"-32000" not in lines:
        return lines
    return b"".join(line for line in lines.splitlines(keepends=True) if not _ENDED_BY_NODE.match(line))


def _request_id(message: dict[str, Any]) -> str | int | None:
    request = message.get("id")
    is_request = (
        isinstance(message.get("method"), str) and isinstance(request, str | int) and not isinstance(request, bool)
    )
    return request if is_request else None


def _with_request_id(message: dict[str, Any], line: bytes) -> bytes:
    """A tool call that has no request id gets one here, so that sending it again has one effect."""
    params = message.get("params")
    if not isinstance(params, dict) or not isinstance(params.get("_meta", {}), dict):
        return line
    meta = params.get("_meta", {})
    if REQUEST_ID_META in meta or TOOL_USE_META in meta:
        return line
    params["_meta"] = {**meta, REQUEST_ID_META: str(uuid7())}
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        return line  # half a surrogate pair: the node says what is wrong with it


def _half_close(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # it has ended by itself

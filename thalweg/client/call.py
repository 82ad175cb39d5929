"""`thalweg call TOOL`: one call of a tool, for shells. Quick: it imports next to nothing.

Like `thalweg mcp` it starts the node when none runs, and sends the call again, under one request id, when the node ends
before it has answered.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from streams.ids import uuid7
from thalweg.client.handshake import CHUNK, ask, check_scope, parse, scope_line
from thalweg.client.launch import Launcher, NodeError
from thalweg.client.node_process import node_command
from thalweg.client.pump import MAX_LINE, MAX_SENDS, REQUEST_ID_META
from thalweg.client.scope import home_and_scope, read_options

USAGE = (
    "usage: thalweg call TOOL [JSON|-] [--request-id ID] [--freshness TOKEN] "
    "[--namespace NAME|auto] [--toolsets NAMES] [--read-only] [--home DIR]"
)
OWN_OPTIONS = ("request_id", "freshness")
STDIN = "-"
CLIENT = "thalweg call"
PROTOCOL = "2025-06-18"
FRESHNESS_META = "thalweg/freshness"
INVALID_PARAMS, CONNECTION_CLOSED = -32602, -32000
"""With the second a node that stops answers what it can no longer work on."""
RETIRED = "retired_tool"
SENTENCES = ("message", "error_message", "details", "error")
"""Where the answer of a failed tool has its sentence; the name is the toolset's choice."""
FAILED, USAGE_ERROR = 1, 2


def run(arguments: list[str]) -> int:
    """Print the answer as JSON. The exit code: 0, 1 (refused or failed) or 2 (a call that cannot be meant)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        given, words = read_options(arguments, OWN_OPTIONS)
        if not 1 <= len(words) <= 2:
            raise ValueError(f"Name one tool, then its arguments as one JSON object.\n{USAGE}")
        line = _request(words[0], _arguments(words[1] if len(words) == 2 else "{}"), _meta(given))
        home, scope = home_and_scope(given)
    except ValueError as error:
        return _complain(error, USAGE_ERROR)
    try:
        answer = _answer(Launcher(home, node_command(home)), scope, line)
    except NodeError as error:
        return _complain(error, FAILED)
    return _show(answer)


def _arguments(text: str) -> dict[str, Any]:
    """The tool's arguments. Raises ValueError for what is no JSON object."""
    place = "The tool's arguments"
    given: str | bytes = text
    if text == STDIN:
        place, given = "Standard input", sys.stdin.buffer.read(MAX_LINE + 1)
        if len(given) > MAX_LINE:
            raise ValueError(f"Standard input has more than the {MAX_LINE} bytes that are accepted.")
    try:
        arguments = json.loads(given, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError(f"{place} must be one JSON object; this one is nested too deeply.") from None
    except ValueError as error:
        raise ValueError(f"{place} must be one JSON object: {error}.") from None
    if not isinstance(arguments, dict):
        raise ValueError(f"{place} must be one JSON object, such as {{}}.")
    return arguments


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def _meta(given: Mapping[str, str]) -> dict[str, Any]:
    """What goes with the call: a request id, so that sending it again has one effect. Raises ValueError."""
    meta: dict[str, Any] = {REQUEST_ID_META: given.get("request_id") or str(uuid7())}
    if "freshness" in given:
        try:
            meta[FRESHNESS_META] = json.loads(given["freshness"])
        except ValueError:
            raise ValueError("--freshness needs a token in JSON, as a write answers it in `freshness`.") from None
    return meta


def _request(tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> bytes:
    line = _line("tools/call", {"name": tool, "arguments": arguments, "_meta": meta}, CLIENT)
    if len(line) > MAX_LINE:
        raise ValueError(f"The call has {len(line)} bytes; at most {MAX_LINE} are accepted.")
    return line


def _answer(launcher: Launcher, scope: Mapping[str, Any], line: bytes) -> dict[str, Any]:
    """The node's message that answers the call. Raises NodeError when there is none to be had."""
    for _ in range(MAX_SENDS):
        with launcher.connect() as connection:
            try:
                answer = _exchange(connection, scope, line)
            except OSError:
                continue
        if answer.get("error", {}).get("code") != CONNECTION_CLOSED:
            return answer
    raise NodeError(f"The node ended {MAX_SENDS} times while it worked on the call; `thalweg doctor` may say why.")


def _exchange(connection: socket.socket, scope: Mapping[str, Any], line: bytes) -> dict[str, Any]:
    """One call on a connection of its own. Raises OSError when the node ends, NodeError when it refuses the scope."""
    if scope:
        check_scope(ask(connection, scope_line(scope)))
    hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": CLIENT, "version": "1"}}
    ask(connection, _line("initialize", hello, "hello"))
    connection.sendall(_line("notifications/initialized", {}) + line)
    received: list[bytes] = []
    while True:
        chunk = connection.recv(CHUNK)
        if not chunk:
            raise ConnectionError("The node ended during the call.")
        received.append(chunk)
        if b"\n" not in chunk:
            continue
        *whole, rest = b"".join(received).split(b"\n")
        received = [rest]
        for message in map(parse, whole):
            # an error without an id is of the line that the node could not read, and there is no other
            if message.get("id") == CLIENT or ("error" in message and message.get("id") is None):
                return message


def _line(method: str, params: Mapping[str, Any], request: str | None = None) -> bytes:
    own = {} if request is None else {"id": request}
    return json.dumps({"jsonrpc": "2.0", **own, "method": method, "params": params}).encode() + b"\n"


def _show(answer: Mapping[str, Any]) -> int:
    """Print the tool's object, or the JSON-RPC error, and the sentence of a failure. The exit code."""
    if (error := answer.get("error")) is not None:
        _print(error)
        # without data it was refused before any tool saw it: the tool or the parameters are not what there is
        reason = (error.get("data") or {"reason": RETIRED}).get("reason")
        is_usage = error.get("code") == INVALID_PARAMS and reason == RETIRED
        return _complain(error.get("message"), USAGE_ERROR if is_usage else FAILED)
    body = answer["result"].get("structuredContent", {})
    _print(body)
    if not answer["result"].get("isError"):
        return 0
    return _complain(next(body[name] for name in SENTENCES if isinstance(body.get(name), str)), FAILED)


def _print(value: Any) -> None:
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2).encode()
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2).encode()  # half a surrogate pair has no UTF-8
    try:
        sys.stdout.buffer.write(text + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the reader has what it wanted; Python must not flush again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(sentence: object, code: int) -> int:
    print(f"thalweg: {sentence}", file=sys.stderr)
    return code

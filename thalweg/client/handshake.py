"""What a client says to the node before it asks: its scope. Light enough for the pump to import."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any

from thalweg.client.launch import NodeError

CHUNK = 1 << 16
METHOD_NOT_FOUND = -32601
OLD_NODE = (
    "The node that runs is of an older version, which has one namespace for all clients: end it with `thalweg stop`, "
    "and the next client starts a new one."
)


def scope_line(scope: Mapping[str, Any] | None) -> bytes:
    """The request that names the scope; empty for none."""
    if not scope:
        return b""
    return json.dumps({"jsonrpc": "2.0", "id": "scope", "method": "thalweg/scope", "params": scope}).encode() + b"\n"


def ask(connection: socket.socket, line: bytes) -> bytes:
    """The node's answer to the line. Raises ConnectionError when it ends first."""
    connection.sendall(line)
    answer = b""
    while not answer.endswith(b"\n"):
        chunk = connection.recv(CHUNK)
        if not chunk:
            raise ConnectionError("The node ended during the handshake.")
        answer += chunk
    return answer


def check_scope(answer: bytes) -> None:
    error = parse(answer).get("error")
    if not isinstance(error, dict):
        return
    if error.get("code") == METHOD_NOT_FOUND or not error.get("message"):
        raise NodeError(OLD_NODE)
    raise NodeError(str(error["message"]))


def parse(line: bytes) -> dict[str, Any]:
    """The message in the line; empty for what is not a message (the node says what is wrong with it)."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}

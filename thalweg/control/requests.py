"""Asking a running node: one JSON object over the control socket, one back."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import orjson

from streams.errors import NotRunning, Refused, Unavailable
from thalweg.paths import control_path

ANSWER_SHARE = 0.9
"""How much of its caller's time the node may wait: what is left is for the answer."""


def ask(home: Path, command: str, *, timeout_s: float = 60.0, **arguments: Any) -> dict[str, Any]:
    """Ask the node of this data directory. What it waits for itself (`wait`) it gives up in time to say so.

    Raises NotRunning, Refused with the node's own sentence, or Unavailable when it does not answer or ends meanwhile.
    """
    request = {"command": command, "timeout_s": timeout_s * ANSWER_SHARE, **arguments}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        try:
            connection.connect(str(control_path(home)))
        except OSError:
            raise NotRunning(f"No node runs on {home}.") from None
        try:
            connection.sendall(orjson.dumps(request, default=str) + b"\n")
            with connection.makefile("rb") as stream:
                line = stream.readline()
        except TimeoutError:
            raise Unavailable(f"The node did not answer `{command}` within {timeout_s:g} s.") from None
        except ConnectionError:  # it was killed with the question unread, or before it was asked
            line = b""
    if not line.endswith(b"\n"):
        raise Unavailable(f"The node ended while it was asked for `{command}`.")
    answer: dict[str, Any] = orjson.loads(line)
    if not answer.pop("ok", False):
        raise Refused(str(answer.get("error")), code=str(answer.get("code")))
    return answer

"""Asking a running node: one JSON object over the control socket, one back."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from streams.errors import NotRunning, Refused, Unavailable
from thalweg.paths import control_path

if TYPE_CHECKING:
    from thalweg.settings import Settings

ANSWER_SHARE = 0.9
"""How much of its caller's time the node may wait: what is left is for the answer."""


def decide(settings: Settings, kind: str, data: dict[str, Any], *, stages: Sequence[str] = ()) -> dict[str, Any]:
    """Publish an operator's request through the node and give what was decided.

    It is answered once `stages` have processed it. Raises Refused with the reducer's sentence when it was refused, and
    what `ask` raises.
    """
    answer = ask(settings.home, "request", type=kind, data=data, namespace=settings.namespace, stages=list(stages))
    if answer["status"] == "refused":
        raise Refused(answer["message"], code=answer["code"])
    return dict(answer["result"])


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

"""What the command line asks of a running node: one JSON object over the control socket, one back."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from processors.telemetry.formats.hooks import hook_event
from storage.reader import find_outcome
from storage.sql.export import export_parquet
from streams.errors import Refused, ThalwegError, Unavailable
from streams.events import Event
from streams.ids import uuid7
from streams.topics import MEMORY, TELEMETRY
from thalweg.cognitive.agreement import agreement_report
from thalweg.control import dead_letters
from thalweg.control.search import search_node, why_node
from thalweg.importing.stored import find_stored
from thalweg.paths import control_path

if TYPE_CHECKING:
    from thalweg.process.node import Node

REQUEST_WAIT_S = 30.0
ANSWER_SHARE = 0.9
"""How much of its caller's time the node may wait: what is left is for the answer."""
Handler = Callable[["Node", dict[str, Any]], Awaitable[dict[str, Any]]]


async def handle(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    """Answer a control request: `{"ok": true, ...}` or `{"ok": false, "error": sentence, "code": ...}`."""
    handler = HANDLERS.get(str(request.get("command")))
    if handler is None:
        return {
            "ok": False,
            "code": "unknown_command",
            "error": f"The node knows no command {request.get('command')!r}.",
        }
    try:
        return {"ok": True, **await handler(node, request)}
    except ThalwegError as error:
        code = error.error_code if isinstance(error, Refused) else error.code
        return {**error.extra, "ok": False, "code": code, "error": error.message}


async def _status(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    return await node.health.report()


async def _stop(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    asyncio.get_running_loop().call_later(0.05, node.ask_to_stop)  # after the answer is out
    return {}


async def _wait(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    """Wait until a freshness token is applied; with `stages`, until those have processed it too."""
    token = node.applied.token(request["freshness"])
    timeout_s = float(request.get("timeout_s", 30.0))
    return {"applied": await node.applied.wait(token, timeout_s=timeout_s, stages=request.get("stages", ()))}


async def _snapshot(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    snapshot, lacks = await node.snapshot(float(request.get("max_age_s", 0.0)), request.get("freshness"))
    return {"path": str(snapshot.path), "age_s": snapshot.age_s, **lacks}


async def _snapshot_to(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    return {"bytes": await asyncio.to_thread(node.snapshots.snapshot_to, Path(request["file"]))}


async def _export(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    return {"rows": await asyncio.to_thread(export_parquet, node.database.cursor(), Path(request["directory"]))}


async def _request(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    """Publish an operator's request on the memory topic and answer what was decided about it."""
    identity, namespace = str(uuid7()), str(request["namespace"])
    data = {**request["data"], "request_id": identity}
    event = Event(identity, dead_letters.OPERATOR, str(request["type"]), namespace, node.clock.now(), data)
    token = await node.publish(event, MEMORY.name)
    if not await node.applied.wait(token, timeout_s=REQUEST_WAIT_S):
        raise Unavailable(
            "The request is on the log and not applied yet; `thalweg status` says how far behind the node is."
        )
    outcome = await node.reader.run(lambda cursor: find_outcome(cursor, namespace, identity))
    if outcome is None:
        raise Refused("The request could not be applied; `thalweg dlq list` says why.")
    return {"status": outcome.status, "message": outcome.message, "result": outcome.result}


async def _hook(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    """Put what a client's hook was told on the log."""
    raw = base64.b64decode(str(request["input"]))
    identity, namespace, now = str(uuid7()), str(request["namespace"]), node.clock.now()
    event = hook_event(str(request["event"]), raw, namespace=namespace, identity=identity, time=now)
    return {"freshness": (await node.publish(event, TELEMETRY.name)).to_json()}


async def _agreement(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    return {"report": await node.reader.run(lambda cursor: agreement_report(cursor, str(request["namespace"])))}


async def _spaces(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    return await node.spaces.report()


async def _reembed(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    return {"space": await node.spaces.register(str(request["model"]))}


async def _drop_spaces(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    return {"dropped": await node.spaces.drop(request.get("space"))}


HANDLERS: dict[str, Handler] = {
    "request": _request,
    "hook": _hook,
    "agreement": _agreement,
    "status": _status,
    "stop": _stop,
    "wait": _wait,
    "snapshot": _snapshot,
    "snapshot_to": _snapshot_to,
    "export": _export,
    "search": search_node,
    "why": why_node,
    **dead_letters.HANDLERS,
    "stored": find_stored,
    "spaces": _spaces,
    "reembed": _reembed,
    "drop_spaces": _drop_spaces,
}


class NotRunning(ThalwegError):
    """No node answers for this data directory."""

    code = "node_not_running"
    remedy = "`thalweg up` starts one; `thalweg mcp` and `thalweg import` start one by themselves."


def ask(home: Path, command: str, *, timeout_s: float = 60.0, **arguments: Any) -> dict[str, Any]:
    """Ask the node of this data directory; what it waits for itself (`wait`) it gives up in time to say so.

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

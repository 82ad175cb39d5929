"""What a running node answers to the command line: each command is one handler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb

from processors.frame.domains import modules_of
from storage.reader import find_outcome
from storage.sql.export import export_parquet
from streams.errors import Refused, ThalwegError, Unavailable
from streams.events import Event
from streams.ids import uuid7
from streams.topics import MEMORY
from thalweg.control import dead_letters
from thalweg.control.hooks import hook_node
from thalweg.control.search import search_node, why_node
from thalweg.dreams.dreamer import Dreamer
from thalweg.importing.stored import find_stored
from thalweg.process.analyst_snapshots import AnalystSnapshots
from thalweg.process.running import Running
from thalweg.spaces.spaces import Spaces
from thalweg.status.health import node_status
from thalweg.status.status import Status

REQUEST_WAIT_S = 30.0
Request = dict[str, Any]
Answer = dict[str, Any]
Report = Callable[[duckdb.DuckDBPyConnection, str], dict[str, Any]]
"""(cursor, namespace) -> plain JSON."""


class Control:
    """One for each node. `stop` is called to end it."""

    def __init__(
        self,
        running: Running,
        spaces: Spaces,
        dreamer: Dreamer,
        snapshots: AnalystSnapshots,
        stop: Callable[[], None],
    ) -> None:
        self.running, self.snapshots = running, snapshots
        self._spaces, self._dreamer, self._stop = spaces, dreamer, stop

    async def handle(self, request: Request) -> Answer:
        """Answer a control request: `{"ok": true, ...}` or `{"ok": false, "error": sentence, "code": ...}`."""
        command = str(request.get("command"))
        if command not in COMMANDS:
            return {
                "ok": False,
                "code": "unknown_command",
                "error": f"The node knows no command {request.get('command')!r}.",
            }
        try:
            if (of_node := _OF_NODE.get(command)) is not None:
                return {"ok": True, **await of_node(self, request)}
            return {"ok": True, **await _OF_PARTS[command](self.running, request)}
        except ThalwegError as error:
            code = error.error_code if isinstance(error, Refused) else error.code
            return {**error.extra, "ok": False, "code": code, "error": error.message}

    async def status(self) -> Status:
        """Look at every part now."""
        return await node_status(self.running, self._spaces, self._dreamer)

    async def _status(self, request: Request) -> Answer:
        return (await self.status()).to_json()

    async def _end(self, request: Request) -> Answer:
        asyncio.get_running_loop().call_later(0.05, self._stop)  # after the answer is out
        return {}

    async def _snapshot(self, request: Request) -> Answer:
        snapshot, lacks = await self.snapshots.get(float(request.get("max_age_s", 0.0)), request.get("freshness"))
        return {"path": str(snapshot.path), "age_s": snapshot.age_s, **lacks}

    async def _snapshot_to(self, request: Request) -> Answer:
        return {"bytes": await self.snapshots.copy_to(Path(request["file"]))}

    async def _space_report(self, request: Request) -> Answer:
        return await self._spaces.report()

    async def _reembed(self, request: Request) -> Answer:
        return {"space": await self._spaces.register(str(request["model"]))}

    async def _drop_spaces(self, request: Request) -> Answer:
        return {"dropped": await self._spaces.drop(request.get("space"))}


async def _wait(running: Running, request: Request) -> Answer:
    """Wait until a freshness token is applied; with `stages`, until those have processed it too."""
    token = running.store.applied.token(request["freshness"])
    timeout_s = float(request.get("timeout_s", 30.0))
    return {"applied": await running.store.applied.wait(token, timeout_s=timeout_s, stages=request.get("stages", ()))}


async def _export(running: Running, request: Request) -> Answer:
    return {
        "rows": await asyncio.to_thread(export_parquet, running.store.database.cursor(), Path(request["directory"]))
    }


async def _request(running: Running, request: Request) -> Answer:
    """Publish an operator's request on the memory topic and answer what was decided about it.

    With `stages` it is answered once they have processed it.
    """
    identity, namespace = str(uuid7()), str(request["namespace"])
    data = {**request["data"], "request_id": identity}
    event = Event(identity, dead_letters.OPERATOR, str(request["type"]), namespace, running.clock.now(), data)
    token = await running.publish(event, MEMORY.name)
    stages = [str(stage) for stage in request.get("stages") or ()]
    if not await running.store.applied.wait(token, timeout_s=REQUEST_WAIT_S, stages=stages):
        raise Unavailable(
            "The request is on the log and not applied yet; `thalweg status` says how far behind the node is."
        )
    outcome = await running.store.reader.run(lambda cursor: find_outcome(cursor, namespace, identity))
    if outcome is None:
        raise Refused("The request could not be applied; `thalweg dlq list` says why.")
    return {"status": outcome.status, "code": outcome.code, "message": outcome.message, "result": outcome.result}


def _reports() -> Iterator[tuple[str, Callable[[Running, Request], Awaitable[Answer]]]]:
    """A command for each report that a domain declares in its `reports.py`."""

    def command(read: Report) -> Callable[[Running, Request], Awaitable[Answer]]:
        async def answer(running: Running, request: Request) -> Answer:
            return {"report": await running.store.reader.run(lambda cursor: read(cursor, str(request["namespace"])))}

        return answer

    return ((name, command(read)) for module in modules_of("reports") for name, read in module.REPORTS.items())


_OF_NODE: dict[str, Callable[[Control, Request], Awaitable[Answer]]] = {
    "status": Control._status,
    "stop": Control._end,
    "snapshot": Control._snapshot,
    "snapshot_to": Control._snapshot_to,
    "spaces": Control._space_report,
    "reembed": Control._reembed,
    "drop_spaces": Control._drop_spaces,
}
_OF_PARTS: dict[str, Callable[[Running, Request], Awaitable[Answer]]] = {
    "request": _request,
    "hook": hook_node,
    "wait": _wait,
    "export": _export,
    "search": search_node,
    "why": why_node,
    **dead_letters.HANDLERS,
    "stored": find_stored,
    **dict(_reports()),
}
COMMANDS = _OF_NODE.keys() | _OF_PARTS.keys()

"""Takes what a client's hook was given, and answers what its model should know."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from processors.telemetry.formats.claude_code import AGENT
from processors.telemetry.formats.hooks import hook_event
from processors.telemetry.formats.lines import fingerprint
from streams.dlq import DeadLetter, bury
from streams.errors import RecordRefused, Refused
from streams.ids import uuid7
from streams.log.base import Record
from streams.positions import Position
from streams.topics import TELEMETRY
from thalweg.control.context import context_for
from thalweg.importing.ignore import IgnoreLists

if TYPE_CHECKING:
    from thalweg.process.running import Running

STAGE = "hook"
MAX_BURIED = 64 * 1024
"""Of an input that is unreadable this many bytes are kept."""


async def hook_node(running: Running, request: Mapping[str, Any]) -> dict[str, Any]:
    """Put the hook's event on the log: `{"freshness"}`. Asked for an `answer`, also `{"context": text or None}`.

    What an ignore list leaves out is not published and gets no context; `ignored` says which line it was.

    Raises Refused for an input that cannot be read, or is larger than a record; its bytes are a dead letter then.
    """
    raw, name, namespace = base64.b64decode(str(request["input"])), str(request["event"]), str(request["namespace"])
    try:
        event = hook_event(
            name,
            raw,
            namespace=namespace,
            identity=str(uuid7()),
            time=running.clock.now(),
            agent=str(request.get("client", AGENT)),
        )
    except Refused as refused:
        await _bury(running, name, namespace, raw, refused.message)
        raise
    lists, given = IgnoreLists(running.settings.home), event.data["payload"]
    for path in (given.get("cwd"), given.get("transcript_path")):
        if isinstance(path, str) and (reason := lists.reason(path)) is not None:
            return {"freshness": {}, "context": None, "ignored": reason}
    try:
        published = running.accept(event, TELEMETRY.name)
        if not request.get("answer"):
            return {"freshness": (await published).to_json()}
        freshness, context = await asyncio.gather(
            published, context_for(running, event, name, float(request.get("timeout_s", 1.0)))
        )
    except RecordRefused as refused:
        await _bury(running, name, namespace, raw, refused.message)
        raise
    return {"freshness": freshness.to_json(), "context": context}


async def _bury(running: Running, name: str, namespace: str, raw: bytes, reason: str) -> None:
    if not raw.strip():
        return
    letter = DeadLetter(
        position=Position(TELEMETRY.name, 0, 0),
        stage=STAGE,
        group=namespace,
        attempt=1,
        error_type="Unreadable",
        error_message=f"hook {name}: {reason}",
        first_failed_at=running.clock.now(),
        identity=f"hook/{namespace}/{fingerprint(raw)}",
    )
    record = Record(TELEMETRY.name, 0, 0, 0, namespace.encode(), raw[:MAX_BURIED])
    await running.log.publish([bury(record, letter)])

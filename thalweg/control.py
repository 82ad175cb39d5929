"""What the command line asks of a running node: one JSON object over the control socket, one back."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from processors.telemetry.hooks import hook_event
from storage.reader import find_outcome
from storage.sql.export import export_parquet
from streams.codec import encode
from streams.dlq import exhume, read_letter
from streams.errors import Poison, Refused, ThalwegError, Unavailable
from streams.events import Event
from streams.ids import uuid7
from streams.log.base import Log, Outgoing, Record
from streams.positions import Freshness, Position
from streams.topics import MEMORY, TELEMETRY
from thalweg.agreement import agreement_report
from thalweg.importing import reread
from thalweg.paths import control_path
from thalweg.searching import search_node, why_node

if TYPE_CHECKING:
    from thalweg.node import Node

OPERATOR = "thalweg:operator"
REQUEST_WAIT_S = 30.0
ANSWER_SHARE = 0.9
"""How much of its caller's time the node may wait: what is left is for the answer."""
Handler = Callable[["Node", dict[str, Any]], Awaitable[dict[str, Any]]]


async def handle(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    """Answer a control request: `{"ok": true, ...}` or `{"ok": false, "error": sentence, "code": ...}`."""
    handler = HANDLERS.get(str(request.get("command")))
    if handler is None:
        return {"ok": False, "code": "unknown_command", "error": f"The node knows no command {request.get('command')!r}."}
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
    token = Freshness.from_json(request["freshness"])
    timeout_s = float(request.get("timeout_s", 30.0))
    return {"applied": await node.applied.wait(token, timeout_s=timeout_s, stages=request.get("stages", ()))}


async def _snapshot(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    snapshot, lacks = await node.snapshot(float(request.get("max_age_s", 0.0)), request.get("freshness"))
    return {"path": str(snapshot.path), "age_s": snapshot.age_s, **lacks}


async def _snapshot_to(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    return {"bytes": await asyncio.to_thread(node.snapshots.snapshot_to, Path(request["file"]))}


async def _export(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    return {"rows": await asyncio.to_thread(export_parquet, node.database.cursor(), Path(request["directory"]))}


REASONS = 10
"""How many sentences a replay gives about letters that it left."""
LETTERS = 500
"""How many letters a replay has in hand at once, read by one reader and published together."""
_LETTERS = """
SELECT dead_letter_id, topic, partition, "offset", stage, attempt, error_type, error_message, first_failed_at, value_bytes,
       dlq_topic, dlq_partition, dlq_offset
FROM dead_letters"""


async def _dlq_list(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    return await node.reader.run(lambda cursor: newest_letters(cursor, int(request.get("limit", 100))))


def newest_letters(cursor: Any, limit: int) -> dict[str, Any]:
    """{`dead_letters`: the newest so many, `total`: how many there are}."""
    letters = _select_letters(cursor, "ORDER BY first_failed_at DESC, dead_letter_id LIMIT ?", [limit])
    [(total,)] = cursor.execute("SELECT count(*) FROM dead_letters").fetchall()
    return {"dead_letters": letters, "total": total}


def _select_letters(cursor: Any, tail: str, parameters: list[Any]) -> list[dict[str, Any]]:
    result = cursor.execute(f"{_LETTERS} {tail}", parameters)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


async def _letters(node: Node, tail: str, parameters: list[Any]) -> list[dict[str, Any]]:
    return await node.reader.run(lambda cursor: _select_letters(cursor, tail, parameters))


async def _dlq_show(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    letter, record = await _find_letter(node, str(request["id"]))
    return {
        "dead_letter": letter,
        "key": (record.key or b"").decode("utf-8", "backslashreplace"),
        "value": (record.value or b"").decode("utf-8", "backslashreplace")[:100_000],
        "headers": {name: value.decode("utf-8", "backslashreplace") for name, value in record.headers},
    }


async def _find_letter(node: Node, letter_id: str) -> tuple[dict[str, Any], Record]:
    letter = await _letter(node, letter_id)
    [record] = await _read_letters(node.log, [letter])
    return letter, record


async def _letter(node: Node, letter_id: str) -> dict[str, Any]:
    letters = await _letters(node, "WHERE dead_letter_id = ?", [letter_id])
    if not letters:
        raise Refused(f"There is no dead letter {letter_id!r}; `thalweg dlq list` names them.")
    return letters[0]


async def _read_letters(log: Log, letters: Sequence[dict[str, Any]]) -> list[Record]:
    """The records of these letters, in their order, by one reader of the log. Raises Unavailable when it does not give one back."""
    places = [Position(letter["dlq_topic"], letter["dlq_partition"], letter["dlq_offset"]) for letter in letters]
    first = {place.at: place.offset for place in sorted(places, reverse=True)}
    last = {place.at: place.offset for place in sorted(places)}
    found: dict[Position, Record] = {}
    reader = await log.reader(first)
    try:
        while last and (records := await reader.read(timeout_s=5.0, max_records=LETTERS)):
            found.update((record.position, record) for record in records)
            for record in records:
                if record.offset >= last.get(record.position.at, record.offset + 1):
                    del last[record.position.at]
    finally:
        await reader.close()
    missing = [place for place in places if place not in found]
    if missing:
        raise Unavailable(f"The log did not give back {missing[0]} in time.")
    return [found[place] for place in places]


async def _dlq_replay(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    """Publish the original records again, to their original topics, each partition's in the order in which they lay there.

    What has since been mended is applied once.
    """
    wanted = request.get("ids")
    if wanted:
        letters = [await _letter(node, str(letter_id)) for letter_id in wanted]
    else:
        letters = await _letters(node, "", [])
    letters.sort(key=lambda letter: (letter["topic"], letter["partition"], letter["offset"], letter["dead_letter_id"]))
    left: list[str] = []
    positions: list[Position] = []
    for start in range(0, len(letters), LETTERS):
        replayable = await _replayable(node.log, letters[start : start + LETTERS], left)
        positions += await node.log.publish(replayable, timeout_s=REQUEST_WAIT_S) if replayable else []
    answer = {"replayed": len(letters) - len(left), "left": len(left), "freshness": Freshness.after(positions).to_json()}
    return {**answer, "reasons": list(dict.fromkeys(left))[:REASONS]}


async def _replayable(log: Log, letters: Sequence[dict[str, Any]], left: list[str]) -> list[Outgoing]:
    """What a replay of these letters publishes; why others are not replayed is added to `left`."""
    originals: list[tuple[dict[str, Any], list[Outgoing]]] = []
    for letter, record in zip(letters, await _read_letters(log, letters), strict=True):
        try:
            originals.append((letter, _original(record)))
        except Poison as error:
            left.append(error.message)
    existing = await _existing(log, [outgoing for _, records in originals for outgoing in records])
    replayable: list[Outgoing] = []
    for letter, records in originals:
        missing = {outgoing.topic for outgoing in records} - existing
        if missing:
            left.append(f"The letter {letter['dead_letter_id']} is of {min(missing)}, which this log does not hold; make the topic first.")
        else:
            replayable.extend(records)
    return replayable


async def _existing(log: Log, records: Sequence[Outgoing]) -> set[str]:
    return {at.topic for at in await log.end_offsets({record.topic for record in records})}


def _original(letter: Record) -> list[Outgoing]:
    """What a replay publishes: the original record, or the events of an imported line, read anew. Raises Poison."""
    if read_letter(letter).position.topic.startswith("import:"):
        return [encode(TELEMETRY.name, event) for event in reread(letter)]
    return [exhume(letter)]


async def _request(node: Node, request: dict[str, Any]) -> dict[str, Any]:
    """Publish an operator's request on the memory topic and answer what was decided about it."""
    identity, namespace = str(uuid7()), str(request["namespace"])
    data = {**request["data"], "request_id": identity}
    event = Event(identity, OPERATOR, str(request["type"]), namespace, node.clock.now(), data)
    token = await node.publish(event, MEMORY.name)
    if not await node.applied.wait(token, timeout_s=REQUEST_WAIT_S):
        raise Unavailable("The request is on the log and not applied yet; `thalweg status` says how far behind the node is.")
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
    "dlq_list": _dlq_list,
    "dlq_show": _dlq_show,
    "dlq_replay": _dlq_replay,
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

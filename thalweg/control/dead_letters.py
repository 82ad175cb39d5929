"""Dead letters for an operator: list, show, replay, drop. The view `dead_letter_states` has their state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from storage.statements import dicts, marks
from streams.clock import parse_time
from streams.codec import encode
from streams.dlq import exhume, read_letter
from streams.errors import Poison, Refused, Unavailable
from streams.event_types.dead_letters import LETTERS_DROPPED, LETTERS_REPLAYED
from streams.event_types.spaces import SYSTEM
from streams.events import Event
from streams.ids import uuid7
from streams.log.base import Log, Outgoing, Record
from streams.positions import Freshness, Position
from streams.topics import DERIVED, TELEMETRY
from thalweg.importing.importer import reread

if TYPE_CHECKING:
    from thalweg.process.running import Running

OPERATOR = "thalweg:operator"
STATES = ("new", "replayed", "solved", "dropped")
"""Nothing done; its record is on the log again (`replayed` also when it failed again); applied; given up."""
OPEN = ("new", "replayed")
PUBLISH_S = 30.0
REASONS = 10
"""How many sentences a replay gives about letters that it left."""
LETTERS = 500
"""How many letters a replay has in hand at once, read by one reader and published together."""
Letter = dict[str, Any]

_COMPARED = {
    "namespace": "namespace = ?",
    "source": "source = ?",
    "type": "event_type = ?",
    "since": "failed_at >= ?",
    "until": "failed_at < ?",
}


async def _dlq_list(running: Running, request: dict[str, Any]) -> dict[str, Any]:
    return await running.store.reader.run(lambda cursor: list_letters(cursor, request))


def list_letters(cursor: Any, request: dict[str, Any]) -> dict[str, Any]:
    """The newest letters that fit the request.

    {`dead_letters`: at most `limit` of them, `total`: how many fit, `states`: how many there are of each state}.
    """
    where, parameters = _conditions(request)
    letters = _select(
        cursor,
        f"WHERE {where} ORDER BY failed_at DESC, dead_letter_id LIMIT ?",
        [*parameters, int(request.get("limit", 100))],
    )
    [(total,)] = cursor.execute(f"SELECT count(*) FROM dead_letter_states WHERE {where}", parameters).fetchall()
    return {"dead_letters": letters, "total": total, "states": count_states(cursor)}


def count_states(cursor: Any) -> dict[str, int]:
    """State -> how many letters are in it, those that occur."""
    rows = cursor.execute("SELECT state, count(*) FROM dead_letter_states GROUP BY state").fetchall()
    counts = dict(rows)
    return {state: counts[state] for state in STATES if state in counts}


def _conditions(request: dict[str, Any]) -> tuple[str, list[Any]]:
    """The request's filters as SQL conditions.

    Filters: `states`, `namespace`, `source`, `type`, `reason` (a part of it), `since`, `until`.
    """
    states = list(request.get("states") or STATES)
    clauses, parameters = [f"state IN ({marks(states)})"], list[Any](states)
    for name, clause in _COMPARED.items():
        value = request.get(name)
        if value is not None:
            clauses.append(clause)
            parameters.append(_moment(name, str(value)) if name in ("since", "until") else str(value))
    if request.get("reason") is not None:
        clauses.append("contains(lower(error_message), lower(?))")
        parameters.append(str(request["reason"]))
    return " AND ".join(clauses), parameters


def _moment(name: str, text: str) -> datetime:
    try:
        return parse_time(text).replace(tzinfo=None)
    except ValueError:
        raise Refused(f"--{name} is {text[:40]!r}; it is a time such as 2026-01-05 or 2026-01-05T12:00:00Z.") from None


def _select(cursor: Any, tail: str, parameters: list[Any]) -> list[Letter]:
    return dicts(cursor.execute(f"SELECT * FROM dead_letter_states {tail}", parameters))


async def _letters(running: Running, tail: str, parameters: list[Any]) -> list[Letter]:
    return await running.store.reader.run(lambda cursor: _select(cursor, tail, parameters))


async def _named(running: Running, ids: Sequence[str]) -> list[Letter]:
    """The letters of these ids, each once; earlier ids of a record name its letter too. Raises Refused."""
    found: dict[str, Letter] = {}
    for letter_id in ids:
        letters = await _letters(
            running,
            "WHERE first_id = (SELECT coalesce(replay_of, dead_letter_id) FROM dead_letters WHERE dead_letter_id = ?)",
            [letter_id],
        )
        if not letters:
            raise Refused(f"There is no dead letter {letter_id[:80]!r}; `thalweg dlq list` names them.")
        found[letters[0]["first_id"]] = letters[0]
    return list(found.values())


async def _chosen(running: Running, request: dict[str, Any], states: Sequence[str]) -> list[Letter]:
    """The letters that the request names by `ids`, else those of these states that fit its filters."""
    if request.get("ids"):
        return await _named(running, [str(letter_id) for letter_id in request["ids"]])
    where, parameters = _conditions({"states": states, **request})
    return await _letters(running, f"WHERE {where}", parameters)


async def _dlq_show(running: Running, request: dict[str, Any]) -> dict[str, Any]:
    [letter] = await _named(running, [str(request["id"])])
    [record] = await _read_letters(running.log, [letter])
    return {
        "dead_letter": letter,
        "key": (record.key or b"").decode("utf-8", "backslashreplace"),
        "value": (record.value or b"").decode("utf-8", "backslashreplace")[:100_000],
        "headers": {name: value.decode("utf-8", "backslashreplace") for name, value in record.headers},
    }


async def _read_letters(log: Log, letters: Sequence[Letter]) -> list[Record]:
    """The records of these letters, in their order, by one reader of the log.

    Raises Unavailable when the log does not give one back.
    """
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


async def _dlq_replay(running: Running, request: dict[str, Any]) -> dict[str, Any]:
    """Publish the original records of letters again, to their original topics.

    Each partition's records keep their order. By default the new letters, so that a second call repeats nothing. What
    has since been mended is applied once.
    """
    letters = await _chosen(running, request, ("new",))
    dropped = [letter for letter in letters if letter["state"] == "dropped"]
    if dropped:
        raise Refused(f"The letter {dropped[0]['dead_letter_id']} was dropped: {dropped[0]['drop_reason']}")
    letters.sort(key=lambda letter: (letter["topic"], letter["partition"], letter["offset"], letter["dead_letter_id"]))
    left: list[str] = []
    token = Freshness()
    for start in range(0, len(letters), LETTERS):
        replayable = await _replayable(running.log, letters[start : start + LETTERS], left)
        if replayable:
            token = token.merged(await _replay(running, replayable))
    answer = {"replayed": len(letters) - len(left), "left": len(left), "freshness": token.to_json()}
    return {**answer, "reasons": list(dict.fromkeys(left))[:REASONS]}


async def _replay(running: Running, replayable: Sequence[tuple[Letter, list[Outgoing]]]) -> Freshness:
    """Publish these records, and then on the log that it was done."""
    outgoing = [record for _, records in replayable for record in records]
    positions = await running.log.publish(outgoing, timeout_s=PUBLISH_S)
    left = iter(positions)
    letters = []
    for letter, records in replayable:
        places = [next(left) for _ in records]
        letters.append({"dead_letter_id": letter["first_id"], "positions": [place._asdict() for place in places]})
    marked = await _publish_mark(running, LETTERS_REPLAYED, {"letters": letters})
    return Freshness.after([*positions, *marked])


async def _publish_mark(running: Running, event_type: str, data: dict[str, Any]) -> list[Position]:
    event = Event(str(uuid7()), OPERATOR, event_type, SYSTEM, running.clock.now(), data)
    return list(await running.log.publish([encode(DERIVED.name, event)], timeout_s=PUBLISH_S))


async def _replayable(log: Log, letters: Sequence[Letter], left: list[str]) -> list[tuple[Letter, list[Outgoing]]]:
    """What a replay of these letters publishes, by letter; why others are not replayed is added to `left`."""
    originals: list[tuple[Letter, list[Outgoing]]] = []
    for letter, record in zip(letters, await _read_letters(log, letters), strict=True):
        try:
            originals.append((letter, _original(record)))
        except Poison as error:
            left.append(error.message)
    existing = await _existing(log, [outgoing for _, records in originals for outgoing in records])
    replayable = []
    for letter, records in originals:
        missing = {outgoing.topic for outgoing in records} - existing
        if missing:
            left.append(
                f"The letter {letter['dead_letter_id']} is of {min(missing)}, which is not on this log; "
                "make the topic first."
            )
        else:
            replayable.append((letter, records))
    return replayable


async def _existing(log: Log, records: Sequence[Outgoing]) -> set[str]:
    return {at.topic for at in await log.end_offsets({record.topic for record in records})}


def _original(letter: Record) -> list[Outgoing]:
    """What a replay publishes: the original record, or the events of an imported line, read anew. Raises Poison."""
    if read_letter(letter).position.topic.startswith("import:"):
        return [encode(TELEMETRY.name, event) for event in reread(letter)]
    return [exhume(letter)]


async def _dlq_drop(running: Running, request: dict[str, Any]) -> dict[str, Any]:
    """Give letters up, with a reason. By default the new ones that fit and those that were replayed in vain."""
    reason = str(request.get("because") or "").strip()
    if not reason:
        raise Refused("Say why with --because: the reason stays with the letters.")
    letters = await _chosen(running, request, OPEN)
    ended = next((letter for letter in letters if letter["state"] not in OPEN), None)
    if ended is not None:
        raise Refused(
            f"The letter {ended['dead_letter_id']} is {ended['state']} already; "
            "only new and replayed letters can be dropped."
        )
    token = Freshness()
    for start in range(0, len(letters), LETTERS):
        ids = [letter["first_id"] for letter in letters[start : start + LETTERS]]
        marked = await _publish_mark(running, LETTERS_DROPPED, {"dead_letter_ids": ids, "reason": reason})
        token = token.merged(Freshness.after(marked))
    return {"dropped": len(letters), "freshness": token.to_json()}


HANDLERS: dict[str, Callable[[Running, dict[str, Any]], Awaitable[dict[str, Any]]]] = {
    "dlq_list": _dlq_list,
    "dlq_show": _dlq_show,
    "dlq_replay": _dlq_replay,
    "dlq_drop": _dlq_drop,
}

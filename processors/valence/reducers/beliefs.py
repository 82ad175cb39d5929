"""Requests about beliefs and tensions decide: stated, superseded, resolved.

Fed by the memory topic only; of two requests the first in the log wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from processors.frame.reducer import Key, Outcome, Reducer, Row, Rows, at
from processors.valence.rules.beliefs import (
    BELIEFS,
    Draft,
    DraftError,
    belief_id_of,
    create,
    draft_reads,
    put_belief,
    read_draft,
    state,
)
from processors.valence.rules.confidence import WEIGHTS, Confidence
from processors.valence.rules.identifiers import as_uuid
from processors.valence.rules.sources import read_source
from processors.valence.rules.tensions import tension_id
from streams.clock import format_time
from streams.event_types.valence import (
    BELIEF_CREATED,
    BELIEF_RETRACTED,
    BELIEF_SUPERSEDED,
    TENSION_INVESTIGATED,
    TENSION_RESOLVED,
)
from streams.events import Event, LoggedEvent

RESOLUTIONS, AGREEMENTS = "tension_resolutions", "agreements"
SESSIONS = "vkb_sessions"
CORRECTIONS, SUPERSESSIONS = "corrections", "supersessions"


def refused(code: str, message: str, **details: Any) -> Outcome:
    """A refusal as the toolset answers it: what names the culprit is in `details`."""
    return Outcome("refused", code, message, {"details": details})


def invalid_draft(error: DraftError) -> Outcome:
    """The refusal of what no belief can be made of."""
    return refused("INVALID_PARAMS", str(error), parameter=error.parameter, allowed=error.allowed)


def _created_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    data = logged.event.data
    yield from draft_reads(logged.event, data["content"], data.get("entities"), data.get("similar"))


def _created(logged: LoggedEvent, rows: Rows) -> Outcome:
    event, data = logged.event, logged.event.data
    try:
        draft = read_draft(data)
    except DraftError as error:
        return invalid_draft(error)

    def is_session(ref: str) -> bool:
        identity = as_uuid(ref)
        return identity is not None and rows.get(SESSIONS, identity) is not None

    source = read_source(data.get("source_type"), data.get("source_ref"), is_session)
    return Outcome(result=state(event, rows, draft, source).as_result() | {"stated_as": belief_id_of(event)})


def _superseded_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    data = logged.event.data
    yield BELIEFS, (data["old_belief_id"],)
    yield from draft_reads(logged.event, data["new_content"])


def _superseded(logged: LoggedEvent, rows: Rows) -> Outcome:
    """The old belief ends where the new one begins; both are in the history."""
    event, data = logged.event, logged.event.data
    try:
        draft = read_draft({"content": data["new_content"], "confidence": data.get("confidence")})
    except DraftError as error:
        parameter = "new_content" if error.parameter == "content" else error.parameter
        return refused(
            "INVALID_PARAMS",
            str(error).replace("`content`", "`new_content`"),
            parameter=parameter,
            allowed=error.allowed,
        )
    if not data["reason"].strip():
        return refused(
            "INVALID_PARAMS", "The argument `reason` is blank; say why the belief is superseded.", parameter="reason"
        )
    old = rows.get(BELIEFS, data["old_belief_id"])
    if old is None:
        return _no_belief(data["old_belief_id"])
    if old["superseded_by_id"] is not None:
        return already_superseded(rows, old)
    return _replace(event, rows, old, draft, data)


def _replace(event: Event, rows: Rows, old: Row, draft: Draft, data: Mapping[str, Any]) -> Outcome:
    moment, reason = at(event.time), data["reason"].strip()
    confidence = draft.confidence if data.get("confidence") is not None else confidence_of(old)
    successor = Draft(
        draft.content,
        confidence,
        old["domain_path"],
        valid_from=max(moment, old["valid_from"] or moment),
        extraction_method=f"supersession: {reason}",
    )
    stated = create(
        event, rows, successor, old["source_id"] or "", old["links"], supersedes_id=old["belief_id"], reason=reason
    )
    close(rows, old, "superseded", event, superseded_by_id=stated.belief_id)
    return Outcome(result={"belief_id": stated.belief_id, "old_belief_id": old["belief_id"], "reason": reason})


def confidence_of(row: Mapping[str, Any]) -> Confidence:
    """The confidence that a belief's row holds, tensions aside."""
    return Confidence(
        row["overall"], row["overall_origin"], {name: row[name] for name in WEIGHTS if row[name] is not None}
    )


def close(rows: Rows, belief: Row, status: str, event: Event, *, superseded_by_id: str | None = None) -> None:
    """A belief is not held any more from now on; a superseded one is not valid any more either."""
    moment = at(event.time)
    ended: dict[str, Any] = {
        "status": status,
        "modified_at": moment,
        "closed_at": moment,
        "superseded_by_id": superseded_by_id,
    }
    if status == "superseded":
        ended["valid_until"] = max(moment, belief["valid_from"] or moment)
    if superseded_by_id is not None:
        pair = {"record_id": belief["belief_id"], "successor_id": superseded_by_id}
        rows.insert(SUPERSESSIONS, pair | {"superseded_at": moment})
    put_belief(rows, belief | ended, status, moment)


def already_superseded(rows: Rows, belief: Mapping[str, Any]) -> Outcome:
    """The refusal that names who won: the belief's successor, and the head of its line."""
    successor = head = belief["superseded_by_id"]
    while (row := rows.get(BELIEFS, head)) is not None and row["superseded_by_id"] is not None:
        head = row["superseded_by_id"]
    message = (
        f"The belief {belief['belief_id']} was superseded by {successor}; its line has now come to {head}: "
        "supersede that one."
    )
    return refused(
        "ALREADY_SUPERSEDED",
        message,
        current_id=head,
        superseded_by_id=successor,
        superseded_at=_time(belief["closed_at"]),
    )


def _no_belief(belief_id: str) -> Outcome:
    return refused(
        "BELIEF_NOT_FOUND",
        f"There is no belief {belief_id[:80]}; belief_query finds beliefs by what they say.",
        belief_id=belief_id,
    )


def _time(moment: Any) -> str | None:
    return None if moment is None else format_time(moment)


def _retracted_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield BELIEFS, (logged.event.data["belief_id"],)


def _retracted(logged: LoggedEvent, rows: Rows) -> Outcome:
    event, data = logged.event, logged.event.data
    belief = rows.get(BELIEFS, data["belief_id"])
    if belief is None:
        return _no_belief(data["belief_id"])
    if belief["superseded_by_id"] is not None:
        return already_superseded(rows, belief)
    if belief["closed_at"] is not None:
        message = f"The belief {belief['belief_id']} was taken back already."
        return refused("ALREADY_ARCHIVED", message, belief_id=belief["belief_id"])
    close(rows, belief, "archived", event)
    reason = (data.get("reason") or "").strip() or None
    ended = {"record_id": belief["belief_id"], "change": "retracted", "successor_id": None, "reason": reason}
    rows.put(CORRECTIONS, ended | {"changed_at": at(event.time)})
    return Outcome(result={"belief_id": belief["belief_id"]})


def _resolved_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    data = logged.event.data
    yield RESOLUTIONS, (data["tension_id"],)
    yield BELIEFS, (data["belief_a_id"],)
    yield BELIEFS, (data["belief_b_id"],)


def _pair(event: Event, rows: Rows) -> tuple[Row, Row] | Outcome:
    """Both beliefs of an open tension, or why there is none."""
    data = event.data
    a, b = (rows.get(BELIEFS, data[name]) for name in ("belief_a_id", "belief_b_id"))
    if (
        a is None
        or b is None
        or a["belief_id"] == b["belief_id"]
        or data["tension_id"] != tension_id(a["belief_id"], b["belief_id"])
    ):
        return refused(
            "TENSION_NOT_FOUND",
            f"There is no tension {data['tension_id'][:80]}; tension_list names those that there are.",
            tension_id=data["tension_id"],
        )
    known = rows.get(RESOLUTIONS, data["tension_id"])
    if known is not None and known["action"] is not None:
        when = _time(known["resolved_at"])
        message = (
            f"The tension {data['tension_id']} was resolved at {when} by {known['action']}: {known['resolution'][:200]}"
        )
        won = {name: known[name] for name in ("action", "resolution", "status")}
        return refused("TENSION_ALREADY_RESOLVED", message, resolved_at=when, **won)
    for belief in (a, b):
        if belief["superseded_by_id"] is not None:
            return already_superseded(rows, belief)
    if a["closed_at"] is not None or b["closed_at"] is not None:
        message = f"The tension {data['tension_id']} is resolved: one of its beliefs is archived."
        return refused("TENSION_ALREADY_RESOLVED", message, resolution="auto: archived")
    return a, b


def _resolved(logged: LoggedEvent, rows: Rows) -> Outcome:
    event, data = logged.event, logged.event.data
    if not data["resolution"].strip():
        return refused(
            "INVALID_PARAMS",
            "The argument `resolution` is blank; say how the tension was resolved.",
            parameter="resolution",
        )
    pair = _pair(event, rows)
    if isinstance(pair, Outcome):
        return pair
    a, b = pair
    action, status = data["action"], "accepted" if data["action"] == "keep_both" else "resolved"
    if action == "supersede_a":
        _give_way(rows, a, b, event)
    elif action == "supersede_b":
        _give_way(rows, b, a, event)
    elif action == "archive_both":
        for belief in pair:
            close(rows, belief, "archived", event)
    elif action == "keep_both":
        both = {"one_id": a["belief_id"], "other_id": b["belief_id"]}
        rows.insert(AGREEMENTS, both | {"agreed_at": at(event.time)})
    ids = {name: data[name] for name in ("tension_id", "belief_a_id", "belief_b_id")}
    rows.put(
        RESOLUTIONS,
        ids | {"status": status, "action": action, "resolution": data["resolution"], "resolved_at": at(event.time)},
    )
    return Outcome(result=ids | {"action": action, "status": status})


def _give_way(rows: Rows, loser: Row, winner: Row, event: Event) -> None:
    """The loser is superseded by the winner as it stands; no third belief is made."""
    close(rows, loser, "superseded", event, superseded_by_id=winner["belief_id"])
    if winner["supersedes_id"] is None:
        put_belief(
            rows,
            winner | {"supersedes_id": loser["belief_id"], "modified_at": at(event.time)},
            "preferred",
            at(event.time),
        )


def _investigated(logged: LoggedEvent, rows: Rows) -> Outcome:
    event, data = logged.event, logged.event.data
    pair = _pair(event, rows)
    if isinstance(pair, Outcome):
        return pair
    ids = {name: data[name] for name in ("tension_id", "belief_a_id", "belief_b_id")}
    rows.put(RESOLUTIONS, ids | {"status": "investigating", "action": None, "resolution": None, "resolved_at": None})
    return Outcome(result=ids | {"status": "investigating"})


REDUCERS = {
    BELIEF_CREATED: Reducer(_created, _created_reads),
    BELIEF_SUPERSEDED: Reducer(_superseded, _superseded_reads),
    BELIEF_RETRACTED: Reducer(_retracted, _retracted_reads),
    TENSION_RESOLVED: Reducer(_resolved, _resolved_reads),
    TENSION_INVESTIGATED: Reducer(_investigated, _resolved_reads),
}

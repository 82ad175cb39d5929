"""Requests about conversations decide: sessions, the numbers of their exchanges, patterns, insights.

Fed by the memory topic; only the steps of ageing come from the derived one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC

from processors.frame.reducer import DOCUMENTS, Key, Outcome, Reducer, Row, Rows, at
from processors.valence.reducers.beliefs import invalid_draft, refused
from processors.valence.rules import patterns
from processors.valence.rules.beliefs import (
    SOURCES,
    DraftError,
    belief_id_of,
    draft_reads,
    put_source,
    read_draft,
    state,
)
from processors.valence.rules.capture import AUTO, MAX_PER_SESSION
from processors.valence.rules.conversations import (
    INSIGHT_CONFIDENCE,
    INSIGHT_EXTRACTION,
    INSIGHT_LINK,
    new_session,
    next_sequence,
    tokens_approx,
)
from processors.valence.rules.identifiers import EXCHANGE, INSIGHT, PATTERN, SESSION, object_id
from processors.valence.rules.sources import session_source
from streams.clock import format_time, parse_time
from streams.event_types.valence_kb import (
    EXCHANGE_ADDED,
    INSIGHT_EXTRACTED,
    PATTERN_RECORDED,
    PATTERN_REINFORCED,
    PATTERN_STATUS_CHANGED,
    SESSION_ENDED,
    SESSION_STARTED,
)
from streams.events import Event, LoggedEvent
from streams.ids import document_label

SESSIONS, EXCHANGES, INSIGHTS = "vkb_sessions", "vkb_exchanges", "vkb_session_insights"
PATTERNS, PATTERN_CHANGES = "vkb_patterns", "vkb_pattern_changes"
TOOLSET = "valence"


def _session_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield SESSIONS, (_session_id(logged.event),)


def _session_id(event: Event) -> str:
    return str(event.data["session_id"])


def session_not_found(session_id: str) -> Outcome:
    """The refusal of a session that no tool has begun."""
    message = (
        f"There is no session {session_id[:80]}; session_start begins one "
        "(a transcript's session can be read, not added to)."
    )
    return refused("SESSION_NOT_FOUND", message, session_id=session_id)


def _blank(name: str) -> Outcome:
    return refused(
        "INVALID_PARAMS", f"The argument `{name}` is blank; it needs some text.", parameter=name, allowed="some text"
    )


def _started(logged: LoggedEvent, rows: Rows) -> Outcome:
    event, data = logged.event, logged.event.data
    session_id = object_id(event, SESSION)
    own = {
        "session_id": session_id,
        "started_at": at(event.time),
        "source_id": put_source(event, rows, session_source(session_id)),
        "last_exchange_id": None,
        "capture_count": 0,
    }
    rows.put(SESSIONS, own | new_session(data))
    return Outcome(result={"session_id": session_id, "started_at": format_time(event.time)})


def _started_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    session_id = object_id(logged.event, SESSION)
    yield SESSIONS, (session_id,)
    yield SOURCES, (session_source(session_id).id_in(logged.event.namespace),)


def _ended(logged: LoggedEvent, rows: Rows) -> Outcome:
    """The first end sets the time; a later one replaces what it names."""
    event, data = logged.event, logged.event.data
    session = rows.get(SESSIONS, _session_id(event))
    if session is None:
        return session_not_found(_session_id(event))
    already_ended = session["ended_at"] is not None
    status = data.get("status") or (session["status"] if already_ended else "completed")
    ended_at = session["ended_at"] or max(session["started_at"], at(event.time))
    stated = {name: data[name] for name in ("summary", "themes") if data.get(name) is not None}
    rows.change(SESSIONS, session, **stated, status=status, ended_at=ended_at)
    return Outcome(result={"session_id": session["session_id"], "already_ended": already_ended})


def _added_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield from _session_reads(logged)
    yield DOCUMENTS, (document_label(logged.event.namespace, object_id(logged.event, EXCHANGE)),)


def _added(logged: LoggedEvent, rows: Rows) -> Outcome:
    """The exchange gets the session's next number: the first in the log is the first in the session."""
    event, data = logged.event, logged.event.data
    if not data["content"].strip():
        return _blank("content")
    session = rows.get(SESSIONS, _session_id(event))
    if session is None:
        return session_not_found(_session_id(event))
    exchange_id, moment = object_id(event, EXCHANGE), at(event.time)
    sequence = next_sequence(session["exchange_count"])
    rows.change(SESSIONS, session, exchange_count=sequence, last_exchange_id=exchange_id)
    rows.insert(
        EXCHANGES,
        {
            "exchange_id": exchange_id,
            "session_id": session["session_id"],
            "sequence": sequence,
            "role": data["role"],
            "content": data["content"],
            "tokens_approx": tokens_approx(data["content"]),
            "tool_uses": data.get("tool_uses"),
            "created_at": moment,
        },
    )
    about = {"session_id": session["session_id"], "role": data["role"]}
    rows.document(exchange_id, TOOLSET, "Exchange", data["content"], created_at=moment, **about)
    return Outcome(result={"exchange_id": exchange_id, "sequence": sequence, "created_at": format_time(event.time)})


def _recorded_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    identity = object_id(logged.event, PATTERN)
    yield PATTERNS, (identity,)
    yield DOCUMENTS, (document_label(logged.event.namespace, identity),)


def _recorded(logged: LoggedEvent, rows: Rows) -> Outcome:
    event, data = logged.event, logged.event.data
    for name in ("type", "description"):
        if not data[name].strip():
            return _blank(name)
    pattern_id, moment = object_id(event, PATTERN), at(event.time)
    pattern = patterns.recorded(data.get("evidence") or (), data.get("confidence"), moment)
    stated = {
        "pattern_id": pattern_id,
        "type": data["type"],
        "description": data["description"],
        "first_observed_at": moment,
    }
    rows.put(PATTERNS, stated | _pattern_row(pattern))
    rows.document(pattern_id, TOOLSET, "Pattern", data["description"], created_at=moment)
    return Outcome(result={"pattern_id": pattern_id})


def _pattern_row(pattern: patterns.Pattern) -> Row:
    return {
        "evidence": list(pattern.evidence),
        "occurrence_count": pattern.occurrence_count,
        "confidence": pattern.confidence,
        "status": pattern.status,
        "last_observed_at": pattern.last_observed,
    }


def _reinforced_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield PATTERNS, (str(logged.event.data["pattern_id"]),)
    if logged.event.data.get("session_id") is not None:
        yield from _session_reads(logged)


def _reinforced(logged: LoggedEvent, rows: Rows) -> Outcome:
    """One occurrence more, once for each session; the result is the pattern right after this event."""
    data = logged.event.data
    row = rows.get(PATTERNS, str(data["pattern_id"]))
    if row is None:
        message = f"There is no pattern {str(data['pattern_id'])[:80]}; pattern_list says which there are."
        return refused("PATTERN_NOT_FOUND", message, pattern_id=data["pattern_id"])
    session_id = data.get("session_id")
    if session_id is not None and rows.get(SESSIONS, session_id) is None:
        return session_not_found(session_id)
    before = patterns.Pattern(
        tuple(row["evidence"]), row["occurrence_count"], row["confidence"], row["status"], row["last_observed_at"]
    )
    after = patterns.reinforced(before, session_id, at(logged.event.time))
    if after is not None:
        rows.change(PATTERNS, row, **_pattern_row(after))
    now = after or before
    result = {
        "pattern_id": row["pattern_id"],
        "already_counted": after is None,
        "occurrence_count": now.occurrence_count,
        "confidence": now.confidence,
        "status": now.status,
        "last_observed": format_time(now.last_observed.replace(tzinfo=UTC)),
        "evidence_count": len(now.evidence),
    }
    return Outcome(result=result)


def _extracted_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    event, data, session_id = logged.event, logged.event.data, _session_id(logged.event)
    yield SESSIONS, (session_id,)
    yield SOURCES, (session_source(session_id).id_in(event.namespace),)
    yield INSIGHTS, (session_id, belief_id_of(event))
    yield DOCUMENTS, (document_label(event.namespace, object_id(event, INSIGHT)),)
    yield from draft_reads(event, data["content"], data.get("entities"), data.get("similar"))


def _extracted(logged: LoggedEvent, rows: Rows) -> Outcome:
    """A belief whose source is the session, linked to it once; the same insight again changes nothing."""
    event, data = logged.event, logged.event.data
    session = rows.get(SESSIONS, _session_id(event))
    if session is None:
        return session_not_found(_session_id(event))
    if data.get("signal") is not None and (session["capture_count"] or 0) >= MAX_PER_SESSION:
        return Outcome(result={"captured": False, "session_id": session["session_id"]})  # nobody has asked for it
    confidence = INSIGHT_CONFIDENCE if data.get("confidence") is None else data["confidence"]
    try:
        draft = read_draft({**data, "confidence": confidence}, extraction_method=INSIGHT_EXTRACTION)
    except DraftError as error:
        return invalid_draft(error)
    session_id = session["session_id"]
    stated = state(event, rows, draft, session_source(session_id))
    known = rows.get(INSIGHTS, session_id, stated.belief_id)
    insight_id = known["insight_id"] if known else _insight(event, rows, session, stated.belief_id)
    result = {
        "insight_id": insight_id,
        "session_id": session_id,
        "already_linked": known is not None,
        "stated_as": belief_id_of(event),
    }
    return Outcome(result=result | stated.as_result())


def _insight(event: Event, rows: Rows, session: Row, belief_id: str) -> str:
    """Link the belief to the session, at the exchange that was the latest. The insight's own words can be found."""
    insight_id, moment, session_id = object_id(event, INSIGHT), at(event.time), session["session_id"]
    signal = event.data.get("signal")
    row = {
        "insight_id": insight_id,
        "session_id": session_id,
        "belief_id": belief_id,
        "exchange_id": session["last_exchange_id"],
    }
    rows.put(
        INSIGHTS,
        row | {"extraction_method": INSIGHT_LINK if signal is None else AUTO, "extracted_at": moment, "signal": signal},
    )
    counted = {"capture_count": (session["capture_count"] or 0) + (signal is not None)}
    rows.change(SESSIONS, session, insight_count=session["insight_count"] + 1, **counted)
    rows.document(insight_id, TOOLSET, "Insight", event.data["content"], created_at=moment, session_id=session_id)
    return insight_id


def _aged_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield PATTERN_CHANGES, _aged_key(logged)


def _aged_key(logged: LoggedEvent) -> Key:
    data = logged.event.data
    return data["pattern_id"], at(parse_time(data["last_observed"])), data["to_status"]


def _aged(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    """A step of ageing, once for each last observation. Patterns themselves are another topic's: a view joins them."""
    key = _aged_key(logged)
    if rows.get(PATTERN_CHANGES, *key) is None:
        row = dict(zip(("pattern_id", "last_observed_at", "to_status"), key, strict=True))
        rows.put(
            PATTERN_CHANGES,
            row | {"from_status": logged.event.data["from_status"], "changed_at": at(logged.event.time)},
        )
    return None


REDUCERS = {
    SESSION_STARTED: Reducer(_started, _started_reads),
    SESSION_ENDED: Reducer(_ended, _session_reads),
    EXCHANGE_ADDED: Reducer(_added, _added_reads),
    INSIGHT_EXTRACTED: Reducer(_extracted, _extracted_reads),
    PATTERN_RECORDED: Reducer(_recorded, _recorded_reads),
    PATTERN_REINFORCED: Reducer(_reinforced, _reinforced_reads),
    PATTERN_STATUS_CHANGED: Reducer(_aged, _aged_reads),
}

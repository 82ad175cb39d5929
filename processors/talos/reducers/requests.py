"""Talos requests decide: sessions open once and close once, journal entries are kept. Fed by the memory topic only."""

from __future__ import annotations

from collections.abc import Iterable

from processors.frame.reducer import DOCUMENT_TAGS, DOCUMENTS, Key, Outcome, Reducer, Rows, at
from processors.talos.rules.extraction import (
    FRICTION_LOGGED,
    JOURNAL_WRITTEN,
    KNOWLEDGE_IMPORTED,
    REFLECTION_WRITTEN,
    extract,
)
from processors.talos.rules.identifiers import (
    SESSION_ID_FORMAT,
    entry_id,
    first_suggestions,
    free_session_id,
    goal_id,
    is_session_id,
    named_id,
    session_names,
)
from processors.talos.rules.ontology import JOURNAL_ENTRY
from streams.clock import format_time
from streams.events import LoggedEvent, wire_type
from streams.ids import document_label

SESSIONS = "talos_sessions"
NAMES = "talos_names"
JOURNAL = "talos_journal"


def _opened_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    session_id = logged.event.data["session_id"]
    yield from ((SESSIONS, (candidate,)) for candidate in (session_id, *first_suggestions(session_id)))
    yield DOCUMENTS, (document_label(logged.event.namespace, goal_id(logged.event.data["goal"])),)
    for label, name in session_names(logged.event):
        yield NAMES, (label, name)
        yield DOCUMENTS, (document_label(logged.event.namespace, named_id(label.lower(), name)),)


def _opened(logged: LoggedEvent, rows: Rows) -> Outcome:
    data, moment = logged.event.data, at(logged.event.time)
    session_id, goal = data["session_id"], data["goal"].strip()
    if not is_session_id(session_id):
        return _bad_session_id(session_id)
    if not goal:
        return Outcome("refused", "invalid_argument", "The goal is blank; say what the session is for.")
    if rows.get(SESSIONS, session_id) is not None:
        taken = {candidate for candidate in first_suggestions(session_id) if rows.get(SESSIONS, candidate) is not None}
        suggestion = free_session_id(session_id, taken, str(logged.key))
        message = f"The session {session_id} exists already; open {suggestion} instead."
        return Outcome(
            "refused", "session_exists", message, {"session_id": session_id, "suggested_session_id": suggestion}
        )
    identity = goal_id(goal)
    stated = {name: data.get(name) for name in ("persona", "protocol", "human")}
    rows.put(
        SESSIONS,
        {
            "session_id": session_id,
            "goal": goal,
            "goal_id": identity,
            **stated,
            "defaulted": data.get("defaulted"),
            "status": "open",
            "started_at": moment,
            "ended_at": None,
            "duration_seconds": None,
            "goal_achieved": None,
            "summary": None,
        },
    )
    for label, name in session_names(logged.event):
        node_id = named_id(label.lower(), name)
        if rows.get(NAMES, label, name) is None:
            rows.put(NAMES, {"label": label, "name": name, "node_id": node_id, "created_at": moment})
        rows.document(node_id, "talos", label, name, created_at=moment)
    rows.document(identity, "talos", "Goal", goal, created_at=moment, session_id=session_id)
    return Outcome(result={"session_id": session_id, "goal_id": identity, "started_at": format_time(logged.event.time)})


def _closed_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield SESSIONS, (logged.event.data["session_id"],)


def _closed(logged: LoggedEvent, rows: Rows) -> Outcome:
    data, moment = logged.event.data, at(logged.event.time)
    session_id = data["session_id"]
    if not is_session_id(session_id):
        return _bad_session_id(session_id)
    session = rows.get(SESSIONS, session_id)
    if session is None:
        return Outcome("refused", "session_not_found", f"There is no session {session_id}; session_open starts one.")
    if session["status"] != "open":
        return Outcome("refused", "session_already_closed", f"The session {session_id} is closed already.")
    duration_seconds = max(0, int((moment - session["started_at"]).total_seconds()))
    stated = {name: data.get(name) for name in ("goal_achieved", "summary")}
    rows.change(SESSIONS, session, status="closed", ended_at=moment, duration_seconds=duration_seconds, **stated)
    return Outcome(
        result={"session_id": session_id, "goal_id": session["goal_id"], "duration_seconds": duration_seconds}
    )


def _written_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    identity = entry_id(logged.event)
    yield DOCUMENTS, (document_label(logged.event.namespace, identity),)
    for tag in logged.event.data.get("tags") or ():
        yield DOCUMENT_TAGS, (identity, tag)


def _written(logged: LoggedEvent, rows: Rows) -> Outcome:
    data, moment = logged.event.data, at(logged.event.time)
    identity = entry_id(logged.event)
    if not data["content"].strip():
        return Outcome("refused", "invalid_argument", "The content is blank; write what is to be remembered.")
    optional = {name: data.get(name) for name in ("session_id", "domain")}
    confidence = data.get("confidence")
    rows.insert(
        JOURNAL,
        {
            "entry_id": identity,
            "content": data["content"],
            "category": data["category"],
            **optional,
            "confidence": None if confidence is None else float(confidence),
            "created_at": moment,
        },
    )
    tags = data.get("tags")
    rows.document(identity, "talos", JOURNAL_ENTRY, data["content"], created_at=moment, tags=tags, **optional)
    return Outcome(result={"entry_id": identity})


def _logged(logged: LoggedEvent, rows: Rows) -> Outcome:
    """A friction is a fact that the extract stage derives; here it only gets its answer."""
    extraction = extract(logged.event)
    if not extraction.entities:
        return Outcome("refused", "invalid_argument", "The description is blank; say what made the work difficult.")
    return Outcome(result={"friction_id": extraction.entities[0].id})


def _reflected(logged: LoggedEvent, rows: Rows) -> Outcome:
    """A reflection is a fact that the extract stage derives; here it only gets its answer."""
    extraction = extract(logged.event)
    if not extraction.entities:
        return Outcome("refused", "invalid_argument", "The content is blank; write what was noticed.")
    return Outcome(result={"reflection_id": extraction.entities[0].id})


def _imported(logged: LoggedEvent, rows: Rows) -> Outcome:
    """An import becomes entities in the extract stage. What the ontology does not have is counted, not kept."""
    extraction, data = extract(logged.event), logged.event.data
    if not extraction.entities:
        return Outcome("refused", "invalid_argument", "No entity of the import has a label of the ontology and a text.")
    left_out = len(data.get("relations") or ()) - len(extraction.relations)
    return Outcome(
        result={
            "entities": len(extraction.entities),
            "relations": len(extraction.relations),
            "relations_left_out": left_out,
        }
    )


def _bad_session_id(session_id: str) -> Outcome:
    message = f"The session_id {session_id[:160]!r} is not of the form {SESSION_ID_FORMAT}."
    return Outcome("refused", "invalid_session_id", message, {"expected_format": SESSION_ID_FORMAT})


REDUCERS = {
    wire_type("talos.session.opened"): Reducer(_opened, _opened_reads),
    wire_type("talos.session.closed"): Reducer(_closed, _closed_reads),
    JOURNAL_WRITTEN: Reducer(_written, _written_reads),
    FRICTION_LOGGED: Reducer(_logged),
    REFLECTION_WRITTEN: Reducer(_reflected),
    KNOWLEDGE_IMPORTED: Reducer(_imported),
}

"""A journal entry is corrected or retracted: the old text ends, a new entry may take its place.

Fed by the memory topic only; of two corrections of one entry the first in the log wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from processors.frame.reducer import DOCUMENTS, Key, Outcome, Reducer, Row, Rows, at
from processors.talos.rules.identifiers import entry_id
from processors.talos.rules.ontology import JOURNAL_ENTRY
from streams.event_types.talos import JOURNAL_CORRECTED, JOURNAL_RETRACTED
from streams.events import LoggedEvent
from streams.ids import document_label

CORRECTIONS, VERSIONS = "corrections", "journal_versions"
TOOLSET = "talos"
SHOWN = 80
"""Characters of an id that a refusal says again."""


def _reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    asked, new = logged.event.data["entry_id"], entry_id(logged.event)
    yield CORRECTIONS, (asked,)
    yield VERSIONS, (asked,)
    for identity in (asked, new):
        yield DOCUMENTS, (document_label(logged.event.namespace, identity),)


def _current(logged: LoggedEvent, rows: Rows) -> Row | Outcome:
    """The document of the entry that is named, or why it cannot be changed."""
    asked = logged.event.data["entry_id"]
    document = rows.shared(DOCUMENTS, document_label(logged.event.namespace, asked))
    if document is None or (document["toolset"], document["kind"]) != (TOOLSET, JOURNAL_ENTRY):
        return _refused(
            "entry_not_found",
            f"There is no journal entry {asked[:SHOWN]}; journal_query and `thalweg search` find them.",
        )
    ended = rows.get(CORRECTIONS, asked)
    if ended is None:
        return document
    if ended["change"] == "retracted":
        return _refused("already_retracted", f"The journal entry {asked} was retracted; write a new one instead.")
    successor = ended["successor_id"]
    message = f"The journal entry {asked} was corrected to {successor} already; name that one."
    return _refused("already_corrected", message, successor_id=successor)


def _corrected(logged: LoggedEvent, rows: Rows) -> Outcome:
    data, moment = logged.event.data, at(logged.event.time)
    content = data["content"]
    if not content.strip():
        return _refused("invalid_argument", "The content is blank; say how the entry should read, or retract it.")
    document = _current(logged, rows)
    if isinstance(document, Outcome):
        return document
    if content.strip() == document["text"].strip():
        return _refused("unchanged", f"The journal entry {data['entry_id']} says this already; nothing was corrected.")
    old, new = data["entry_id"], entry_id(logged.event)
    before = rows.get(VERSIONS, old)
    place = {"session_id": document["session_id"], "domain": document["domain"]}
    version = {"entry_id": new, "root_id": before["root_id"] if before else old, "corrects_id": old, "content": content}
    rows.put(VERSIONS, version | place | {"created_at": moment})
    rows.document(new, TOOLSET, JOURNAL_ENTRY, content, created_at=moment, **place)
    _end(logged, rows, "corrected", successor_id=new)
    return Outcome(result={"entry_id": new, "corrects_id": old})


def _retracted(logged: LoggedEvent, rows: Rows) -> Outcome:
    document = _current(logged, rows)
    if isinstance(document, Outcome):
        return document
    _end(logged, rows, "retracted", successor_id=None)
    return Outcome(result={"entry_id": logged.event.data["entry_id"]})


def _end(logged: LoggedEvent, rows: Rows, change: str, *, successor_id: str | None) -> None:
    data = logged.event.data
    reason = (data.get("reason") or "").strip() or None
    ended = {"record_id": data["entry_id"], "change": change, "successor_id": successor_id, "reason": reason}
    rows.put(CORRECTIONS, ended | {"changed_at": at(logged.event.time)})


def _refused(code: str, message: str, **details: Any) -> Outcome:
    return Outcome("refused", code, message, details)


REDUCERS = {
    JOURNAL_CORRECTED: Reducer(_corrected, _reads),
    JOURNAL_RETRACTED: Reducer(_retracted, _reads),
}

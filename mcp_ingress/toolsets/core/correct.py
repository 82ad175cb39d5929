"""correct: replace what was remembered, or take it back; the history keeps both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import MEMORY_URI
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.core.page import MAX_NAMED
from mcp_ingress.toolsets.core.records import one_line, others, read_records
from processors.inner_voice.rules.provenance import ID_PREFIXES
from processors.memory.read.earlier import known_ended
from processors.memory.vector_facts import VECTOR_STAGE
from processors.talos.rules.identifiers import entry_id
from processors.talos.rules.ontology import JOURNAL_ENTRY
from processors.valence.rules.beliefs import KIND as BELIEF
from processors.valence.rules.beliefs import belief_id_of
from storage.search.ranked_list import MAX_OTHERS
from storage.search.records.filter import Filter
from storage.search.records.records import Records
from streams.errors import Refused
from streams.events import Event
from streams.ids import document_label

CORRECTED = "It was corrected."
"""The reason of a belief's successor where none is given."""
_STANDS = {
    "turn": "What was said in a session stands as it was said; `remember` what is right, and later searches name both.",
    "exchange": "What was said in a conversation stands as it was said; `remember` what is right.",
    "goal": "A session's goal stands as it was opened; open a session with the right one.",
    "pattern": "Patterns follow from what happened; correct the entries that they are made of.",
}
_OTHERWISE = "Journal entries and beliefs can be corrected; of this, `remember` what is right."


_FIND = " UNION ALL ".join(
    f"SELECT toolset, kind FROM {table} WHERE label = $label AND namespace = $namespace"
    for table in ("documents", "captured.documents")
)


@dataclass(frozen=True)
class CorrectionTarget:
    """What is corrected: a journal entry, or a belief."""

    id: str
    is_belief: bool


async def correct(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Find what the id names, and have its reducer decide."""
    text, reason = _checked_change(arguments), (arguments.get("reason") or "").strip() or None
    await call.fresh()
    stored, given = call.services.indexes.records, arguments["id"]
    target = await call.find(lambda cursor: find_target(cursor, stored, call.namespace, given))
    if target is None:
        message = f"Nothing is remembered under {given[:80]!r}; `recall` shows the ids."
        raise Refused(message, code="not_found", details={"parameter": "id", "allowed": "an id of `recall`"})
    also = await call.read(lambda cursor: read_alike(cursor, stored, call.namespace, target.id))
    request, new_id = _request(call, target, text, reason)
    published = await writes.publish(call, request)
    result, problem = await writes.decision(call, published)
    is_done = result is not None and await writes.caught_up(call, published, "prune")
    is_found = text is None or await writes.caught_up(call, published, VECTOR_STAGE)
    change = ({"retracted": True} if text is None else {"corrects": target.id}) | ({"also": also} if also else {})
    return writes.written(published, {"id": new_id, **change}, pending=not (is_done and is_found), problem=problem)


def _checked_change(arguments: Mapping[str, Any]) -> str | None:
    """The text that is right; None where it is to be taken back. Refused where that is not clear."""
    if arguments.get("retract"):
        if arguments.get("text") is not None:
            message = "Pass `text` to replace it or `retract: true` to take it back, not both."
            raise writes.invalid(message, "retract", False)
        return None
    if arguments.get("text") is None:
        raise writes.invalid("Pass `text`, as it should read, or `retract: true` to take it back.", "text", "some text")
    return writes.checked_text(arguments, "text")


def find_target(
    cursor: duckdb.DuckDBPyConnection, stored: Records, namespace: str, given: str
) -> CorrectionTarget | None:
    """What an id names, as any tool shows it; None: nothing. Raises Refused where it is nothing to correct."""
    identity = unquote(given.strip().removeprefix(f"{MEMORY_URI}/"))
    for prefix in ("", *ID_PREFIXES.values()):
        bare = identity.removeprefix(prefix)
        rows = cursor.execute(_FIND, {"label": document_label(namespace, bare), "namespace": namespace}).fetchall()
        if rows:
            return _target(cursor, stored, namespace, bare, *rows[0])
    return None


def read_alike(cursor: duckdb.DuckDBPyConnection, stored: Records, namespace: str, identity: str) -> list[str]:
    """Other memories that say the same as this one and hold, as core names them."""
    allowed = stored.allowed(cursor, Filter(namespace)).labels
    [stated] = stored.statements([document_label(namespace, identity)], [allowed], MAX_OTHERS)
    [named] = stored.documents.names_of(cursor, [stated.others])
    ended = known_ended(cursor, stored, namespace, [record_id for _, record_id in named])
    known = {record_id: kind for kind, record_id in named if record_id not in ended}
    return others(named, read_records(cursor, stored, namespace, known), identity)[:MAX_NAMED]


def _target(
    cursor: duckdb.DuckDBPyConnection, stored: Records, namespace: str, identity: str, toolset: str, kind: str
) -> CorrectionTarget:
    if (toolset, kind) in (("talos", JOURNAL_ENTRY), ("valence", BELIEF)):
        return CorrectionTarget(identity, kind == BELIEF and toolset == "valence")
    record = read_records(cursor, stored, namespace, {identity: kind})[identity]
    if record.id != identity:
        return CorrectionTarget(record.id, is_belief=False)
    found_in = cursor.execute(
        "SELECT j.entry_id, j.content FROM entities e "
        "JOIN talos_journal j ON j.namespace = e.namespace AND j.event_id = e.source_event_id "
        "WHERE e.namespace = ? AND e.entity_id = ?",
        [namespace, identity],
    ).fetchall()
    if found_in:
        entry, content = found_in[0]
        said = f"It was found in {entry}, which says: {one_line(content)!r}. Correct that one, with its whole text."
        raise Refused(said, code="not_correctable", details={"parameter": "id", "allowed": entry})
    raise Refused(
        f"{identity[:80]} is a {record.kind.replace('_', ' ')}. {_STANDS.get(record.kind, _OTHERWISE)}",
        code="not_correctable",
        details={"parameter": "id", "allowed": "a journal entry or a belief"},
    )


def _request(call: Call, target: CorrectionTarget, text: str | None, reason: str | None) -> tuple[Event, str]:
    """The event that asks for it, and the id of what holds then."""
    if target.is_belief and text is not None:
        fields = {"old_belief_id": target.id, "new_content": text, "reason": reason or CORRECTED}
        request = writes.request(call, "valence.belief.superseded", fields)
        return request, belief_id_of(request)
    if target.is_belief:
        return writes.request(call, "valence.belief.retracted", {"belief_id": target.id, "reason": reason}), target.id
    entry: dict[str, Any] = {"entry_id": target.id, "reason": reason}
    if text is None:
        return writes.request(call, "talos.journal.retracted", entry), target.id
    request = writes.request(call, "talos.journal.corrected", {**entry, "content": text})
    return request, entry_id(request)


TOOL = Tool(
    name="correct",
    toolset="core",
    title="Correct",
    description="Replace a memory that is wrong or has changed by what is right, or take it back. Searches find the "
    "newest text only; the history keeps what it said, and why it changed.",
    kind="write",
    handler=correct,
    memory_operation="update_memory",
    input_schema={
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "Id that `recall` or `remember` gave"},
            "text": {"type": "string", "description": "The whole statement as it should read"},
            "retract": {"type": "boolean", "description": "Take it back instead"},
            "reason": {"type": "string", "description": "Why"},
        },
        "required": ["id"],
    },
    output_schema=writes.output_schema(
        {
            "id": {"type": "string", "description": "What holds now, or was taken back"},
            "corrects": {"type": "string", "description": "What it replaces"},
            "retracted": {"type": "boolean"},
            "also": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Other memories that say what it said, and still hold",
            },
        }
    ),
)

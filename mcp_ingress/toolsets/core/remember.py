"""remember: keep one thing, where the other toolsets find it too.

What holds until it changes (facts, preferences) is a belief; what was decided, learned, wanted or asked is a journal
entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.core.records import one_line, read_records
from mcp_ingress.toolsets.talos.journal_write import write_entry
from mcp_ingress.toolsets.valence.belief_create import create_belief
from processors.memory.rules.plain_kind import (
    DECISION,
    FACT,
    GOAL,
    LESSON,
    PLAIN_KINDS,
    PREFERENCE,
    QUESTION,
    plain_kind,
)
from streams.errors import Unavailable

MAX_ABOUT = 200
_CATEGORIES = {DECISION: "decision", LESSON: "insight", GOAL: "reflection", QUESTION: "reflection"}
"""Kind -> the category of its journal entry; a reflection has its kind as a tag. All others are beliefs."""
_NOTES = ("pending", "degraded", "spooled", "message", "warnings", "freshness")


async def remember(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Write it with the tool whose kind of record it is."""
    text, about = writes.checked_text(arguments, "text"), _checked_about(arguments)
    named = arguments.get("kind")
    kind = named or plain_kind(text)
    answer = await (_keep_belief if kind in (FACT, PREFERENCE) else _keep_entry)(call, kind, text, about)
    guessed = {} if named else {"guessed": True}
    notes = {name: answer[name] for name in _NOTES if name in answer}
    kept = {"success": answer["success"], "id": answer["id"], "kind": kind, **guessed}
    return kept | _known(answer) | await _contradicts(call, answer) | notes


async def _keep_entry(call: Call, kind: str, text: str, about: str | None) -> dict[str, Any]:
    entry = {"content": text, "category": _CATEGORIES[kind], "domain": about}
    tags = [kind] if _CATEGORIES[kind] == "reflection" else None
    answer = await write_entry(call, {**entry, "tags": tags}, open_session_id=call.connection.open_session_id)
    return answer | {"id": answer["entry_id"]}


async def _keep_belief(call: Call, kind: str, text: str, about: str | None) -> dict[str, Any]:
    path = [*([about] if about else []), *([kind] if kind == PREFERENCE else [])]
    answer = await create_belief(call, {"content": text, "domain_path": path})
    return answer | {"id": answer["belief"]["id"]}


def _known(answer: Mapping[str, Any]) -> dict[str, Any]:
    """That the same was said before: then the id is that of what is known."""
    return {"known": True} if answer.get("deduplicated") else {}


async def _contradicts(call: Call, answer: Mapping[str, Any]) -> dict[str, Any]:
    """What the write contradicts, under the ids and kinds that core shows."""
    found = answer.get("contradicts")
    if not found:
        return {}
    try:
        kinds = {row["id"]: row["kind"] for row in found}
        stored = call.services.indexes.records
        records = await call.read(lambda cursor: read_records(cursor, stored, call.namespace, kinds))
    except Unavailable:
        return {"contradicts": [{name: row[name] for name in ("kind", "id", "text")} for row in found]}
    rows = {records[row["id"]].id: (records[row["id"]], row["text"]) for row in found}
    return {"contradicts": [{**record._asdict(), "text": one_line(text)} for record, text in rows.values()]}


def _checked_about(arguments: Mapping[str, Any]) -> str | None:
    about = (arguments.get("about") or "").strip() or None
    if about is not None and len(about) > MAX_ABOUT:
        raise writes.invalid(
            f"The argument `about` has {len(about)} characters; a name of at most {MAX_ABOUT} is accepted.",
            "about",
            MAX_ABOUT,
        )
    return about


_CONTRADICTED = {name: {"type": "string"} for name in ("id", "kind", "text")}

TOOL = Tool(
    name="remember",
    toolset="core",
    title="Remember",
    description="Keep one statement for later sessions: what holds, was decided, is preferred, wanted, learned or "
    "open. One statement a call, understandable by itself. `contradicts` lists earlier memories that it changes: use "
    "`correct` on those that were wrong.",
    kind="write",
    handler=remember,
    memory_operation="create_memory",
    input_schema={
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The statement"},
            "kind": {"type": "string", "enum": list(PLAIN_KINDS), "description": "Guessed where it is left out"},
            "about": {"type": "string", "description": "Whom or what it is about: user, agent, a project"},
        },
        "required": ["text"],
    },
    output_schema=writes.output_schema(
        {
            "id": {"type": "string"},
            "kind": {"type": "string"},
            "guessed": {"type": "boolean", "description": "The kind was guessed."},
            "known": {"type": "boolean", "description": "The same is remembered already, under this id."},
            "contradicts": {
                "type": "array",
                "description": "Earlier memories that this one changes or disputes",
                "items": {"type": "object", "properties": _CONTRADICTED, "required": list(_CONTRADICTED)},
            },
        }
    ),
)

"""thalweg://memory/{id}: a memory of any kind, whole, in pages where it is long."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb
import orjson

from mcp_ingress.call import Call
from mcp_ingress.fitting.passage import end_of_page
from mcp_ingress.fitting.truncation import MEMORY_URI, uri_of
from mcp_ingress.inventory import find_tools
from mcp_ingress.resource import SHARED, Items, Resource
from processors.context_graph.read.ends import followed
from streams.clock import format_time
from streams.errors import Refused
from streams.ids import document_label

CONTENT = "content"
FIELDS = (CONTENT, "description", "query", "rationale", "reflection", "resolution", "summary")
"""The texts that the toolsets declare."""
PAGE = 20_000
"""Characters of a page as JSON; a page and what stands around it fit into one answer."""


async def read(call: Call, arguments: dict[str, Any]) -> Items:
    """The page that begins at `offset`. Raises Refused for an id that this namespace does not have."""
    identity, field, offset = arguments["id"], arguments["field"], arguments["offset"]
    if offset < 0:
        raise Refused(f"The parameter `offset` is {offset}; it must be 0 or more.")
    is_fresh = await call.fresh()
    found = await call.find(lambda cursor: find_text(cursor, call.namespace, identity, field))
    if found is None:
        what = "memory" if field == CONTENT else f"memory with a {field}"
        raise Refused(f"This namespace has no {what} {identity[:80]!r}.", code="resource_not_found")
    text = found.pop(CONTENT)
    if offset and offset >= len(text):
        raise Refused(
            f"The parameter `offset` is {offset}; it must be below {len(text)}, the number of characters of the text."
        )
    return [found | _page(identity, field, text, offset)], is_fresh


def find_text(cursor: duckdb.DuckDBPyConnection, namespace: str, identity: str, field: str) -> dict[str, Any] | None:
    """The text and what is known of its memory; None where nothing has this id.

    A document's text may have words beside the memory's own, as tags: what its toolset reads comes first.
    """
    rows = cursor.execute(
        " UNION ALL ".join(
            f"SELECT kind, toolset, session_id, created_at, text FROM {table} "
            "WHERE label = $label AND namespace = $namespace"
            for table in ("documents", "captured.documents")
        ),
        {"label": document_label(namespace, identity), "namespace": namespace},
    ).fetchall()
    known: dict[str, Any] = {"id": identity, "field": field}
    for kind, toolset, session_id, created_at, _ in rows[:1]:
        known |= {"kind": kind, "toolset": toolset, "session_id": session_id, "created_at": _time(created_at)}
    if (living := followed(cursor, namespace, identity)) != identity:
        known["merged_into"] = living
    for statement in _texts().get(field, ()):
        for (text,) in cursor.execute(statement, {"namespace": namespace, "id": identity}).fetchall():
            if text is not None:
                return known | {CONTENT: text}
    return known | {CONTENT: rows[0][-1]} if rows and field == CONTENT else None


def _texts() -> Mapping[str, list[str]]:
    """Field -> how the toolsets read it where it is not a document's text."""
    found: dict[str, list[str]] = {CONTENT: []}
    for toolset in find_tools().toolsets.values():
        for field, statements in toolset.texts.items():
            found.setdefault(field, []).extend(statements)
    return found


def _time(moment: datetime) -> str:
    return format_time(moment.replace(tzinfo=UTC))


def _page(identity: str, field: str, text: str, offset: int) -> dict[str, Any]:
    """As many characters as fit, up to the end of a line or sentence, and where the next page is."""
    end = end_of_page(text, offset, offset + PAGE)
    while (size := len(orjson.dumps(text[offset:end]).decode())) > PAGE:
        end = end_of_page(text, offset, offset + max(1, (end - offset) * PAGE // size - 1))
    page: dict[str, Any] = {
        CONTENT: text[offset:end],
        "passage": {"start": offset, "end": end},
        "characters": len(text),
    }
    if end < len(text):
        selector = "" if field == CONTENT else f"field={field}&"
        page |= {"more": True, "next": f"{uri_of('{id}', {'id': identity})}?{selector}offset={end}"}
    return page


RESOURCE = Resource(
    uri=MEMORY_URI,
    toolset=SHARED,
    title="A memory, whole",
    description="The whole text of a memory of any kind, by the id that searches and lists give. "
    "A long one comes in pages: `next` is the URI of the next page.",
    parameters={
        "id": {"type": "string", "description": "Id of the memory"},
        "offset": {"type": "integer", "default": 0, "description": "The first character of the page, from 0"},
        "field": {
            "type": "string",
            "enum": list(FIELDS),
            "default": CONTENT,
            "description": "Another text than the memory's own",
        },
    },
    required=("id",),
    handler=read,
    path="id",
    truncation=None,
)

"""sessions: what was worked on before, and the course of one session."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mcp_ingress import writes
from mcp_ingress.arguments import moment
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import GAP_FIELDS, Tool
from mcp_ingress.toolsets.core.session_queries import list_sessions, read_lines, read_sessions, read_tools
from processors.embedding.query import encoded_query
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.sessions import search_sessions
from streams.errors import Refused

LISTED, LINES, MOST = 10, 30, 100
"""Sessions and lines of a page where none is asked for, and at most."""


async def sessions(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """One session's course by its id, else sessions, the newest or the best first."""
    page = _checked_page(arguments)
    is_fresh = await call.fresh(vectors=arguments.get("query") is not None)
    notes: dict[str, Any] = {} if is_fresh else {"stale": True}
    if arguments.get("id") is not None:
        return {"success": True, **await _course(call, arguments["id"].strip(), page)} | notes
    if arguments.get("query") is not None:
        return {"success": True, **await _best(call, arguments, page)} | notes
    project, since = (arguments.get("project") or "").strip() or None, arguments.get("since")
    begun = None if since is None else moment("since", since)
    query = functools.partial(list_sessions, namespace=call.namespace, project=project, since=begun)
    found, total = await call.read(functools.partial(query, limit=page["limit"], offset=page["offset"]))
    return {"success": True, "sessions": found, "total": total, **_onward(page, len(found), total)} | notes


async def _course(call: Call, session_id: str, page: Mapping[str, int]) -> dict[str, Any]:
    """The session, the tools that it called, and a page of what was said and written down in it."""

    def read(cursor: Any) -> dict[str, Any] | None:
        known = read_sessions(cursor, call.namespace, [session_id])
        if not known:
            return None
        lines, total = read_lines(cursor, call.namespace, session_id, page["limit"], page["offset"])
        tools = read_tools(cursor, call.namespace, session_id)
        return {"session": known[0], "tools": tools, "lines": lines, "total": total}

    found = await call.find(read)
    if found is None:
        message = f"There is no session {session_id[:80]!r}; without `id` this lists them."
        raise Refused(message, code="not_found", details={"parameter": "id", "allowed": "an id of this list"})
    return found | _onward(page, len(found["lines"]), found["total"])


async def _best(call: Call, arguments: Mapping[str, Any], page: Mapping[str, int]) -> dict[str, Any]:
    """The sessions in which the query is answered, the best first."""
    text, since = writes.checked_text(arguments, "query"), arguments.get("since")
    if arguments.get("project"):
        raise writes.invalid("Pass `query` or `project`, not both.", "project", None)
    chosen = Filter(call.namespace, created_from=None if since is None else moment("since", since))
    vector, tokens, space = await encoded_query(call.services.embedder, text)
    query = Query(text, vector, chosen, page["limit"] + page["offset"], tokens, space, with_turns=True)

    def search(cursor: Any) -> tuple[list[dict[str, Any]], int]:
        found = search_sessions(cursor, call.services.indexes, query)
        ids = [hit.session_id for hit in found.sessions[page["offset"] :]]
        return read_sessions(cursor, call.namespace, ids), found.total

    rows, total = await call.read(search)
    return {"sessions": rows, "total": total, **_onward(page, len(rows), total)}


def _checked_page(arguments: Mapping[str, Any]) -> dict[str, int]:
    limit, offset = arguments.get("limit"), arguments.get("offset", 0)
    if limit is not None and limit < 1:
        raise writes.invalid(f"The argument `limit` is {limit}; it must be from 1 to {MOST}.", "limit", MOST)
    if offset < 0:
        raise writes.invalid(f"The argument `offset` is {offset}; it must be 0 or more.", "offset", 0)
    usual = LISTED if arguments.get("id") is None else LINES
    return {"limit": min(limit or usual, MOST), "offset": offset}


def _onward(page: Mapping[str, int], shown: int, total: int) -> dict[str, Any]:
    """How to ask for what comes next."""
    until = page["offset"] + shown
    return {"more": True, "next": f"Pass `offset`: {until}."} if shown and until < total else {}


_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_SESSION = {
    "type": "object",
    "properties": {
        **{name: _TEXT for name in ("id", "source", "project", "agent", "goal", "summary", "parent", "started_at")},
        "ended_at": _TEXT,
        "asked": {**_TEXT, "description": "What was asked first, where no goal is known"},
        **{name: _COUNT for name in ("turns", "tool_calls", "entries", "tokens")},
    },
    "required": ["id", "started_at"],
}

TOOL = Tool(
    name="sessions",
    toolset="core",
    title="Sessions",
    description="What was worked on before: sessions of every client, newest first, or with `query` those that tell "
    "of it. With `id` the course of one: what was asked, answered, decided, and which tools were called.",
    kind="read",
    handler=sessions,
    timeout_s=10.0,
    memory_operation="search_memory",
    truncation=Truncation({"sessions": {}, "lines": {}}, onward="{shown} fit: pass `offset`: {next}."),
    input_schema={
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "One session"},
            "query": {"type": "string", "description": "What they tell of"},
            "project": {"type": "string", "description": "Part of the project's name or path"},
            "since": {"type": "string", "description": "Day or time"},
            "limit": {"type": "integer", "description": f"{LISTED} sessions or {LINES} lines by default"},
            "offset": {"type": "integer", "default": 0, "description": "Where the page begins"},
        },
    },
    output_schema=writes.output_schema(
        {
            "sessions": {"type": "array", "items": _SESSION},
            "session": _SESSION,
            "tools": {
                "type": "array",
                "items": {"type": "object", "properties": {"name": _TEXT, "calls": _COUNT, "errors": _COUNT}},
            },
            "lines": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "at": _TEXT,
                        "who": {**_TEXT, "description": "user, assistant, or the kind of what was written down"},
                        "text": _TEXT,
                        "id": _TEXT,
                    },
                    "required": ["at", "who", "text"],
                },
            },
            "total": {**_COUNT, "description": "Of all sessions, or lines, shown or not"},
            **GAP_FIELDS,
        }
    ),
)

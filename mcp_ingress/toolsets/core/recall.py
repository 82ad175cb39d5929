"""recall: one search over everything, in as many tokens as its caller can spare."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.arguments import moment
from mcp_ingress.call import Call
from mcp_ingress.tool import GAP_FIELDS, Tool
from mcp_ingress.toolsets.core.page import DETAILS, Page
from mcp_ingress.toolsets.core.records import KIND, TURN
from processors.context_graph.read.calibration import known_calibration
from processors.memory.read.live_search import LiveList
from processors.memory.registry import KINDS
from processors.memory.rules.plain_kind import PLAIN_KINDS
from storage.search.index_set import IndexSet
from storage.search.query import MIN_POOL, Query
from storage.search.records.filter import Filter, TagFilter
from storage.search.search import Keywords
from streams.errors import Refused

TOOLSETS = sorted({toolset for toolset, _ in KINDS})
MAX_TOKENS, LEAST_TOKENS, MOST_TOKENS = 1_500, 100, 5_500
CANDIDATES = 1.75
"""Of each side, for each row that may fit. Three find 92.2 instead of 92.1 % of LoCoMo's gold turns in twenty rows."""
_DAY = len("2026-01-31")


async def recall(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Wait for what the caller has written, search what still holds, and show as many hits as fit."""
    query, chosen = writes.checked_text(arguments, "query"), _filter(call.namespace, arguments)
    page = Page(query, arguments["detail"], _checked_tokens(arguments["max_tokens"]))
    is_fresh = await call.fresh("extract", vectors=True)
    pool = max(MIN_POOL, int(CANDIDATES * page.most_rows))
    has_turns = chosen.tags is None  # which a kind asks for, and no turn has
    run = functools.partial(_shown, call, page)
    found, degraded = await call.search(query, chosen, page.most_rows, run, pool=pool, with_turns=has_turns)
    notes: dict[str, Any] = {} if is_fresh else {"stale": True}
    return {"success": True, **found, **notes, **({} if degraded is None else {"degraded": True, "message": degraded})}


def _shown(
    call: Call,
    page: Page,
    cursor: duckdb.DuckDBPyConnection,
    indexes: IndexSet,
    query: Query,
    prefetched: Keywords | None,
) -> tuple[dict[str, Any], str | None]:
    """What the answer shows of a search, and what this lacks: one turn on a reader thread."""
    found = LiveList(cursor, indexes, query, prefetched)
    calibration = known_calibration(cursor, call.namespace, call.services.may_hold)
    shown = page.fitted(cursor, indexes.records, call.namespace, found.read, calibration)
    nothing = {"nothing_relevant": True} if shown.nothing else {}
    return {"results": shown.rows, "total": found.total - shown.merged, **nothing}, found.degraded


def _filter(namespace: str, arguments: Mapping[str, Any]) -> Filter:
    toolset, kind, about, session = (arguments.get(name) for name in ("toolset", "kind", "about", "session"))
    if toolset is not None and toolset not in TOOLSETS:
        raise writes.invalid(
            f"The argument `toolset` is {toolset[:60]!r}; it must be one of {', '.join(TOOLSETS)}.", "toolset", TOOLSETS
        )
    since, until, as_of = (arguments.get(name) for name in ("since", "until", "as_of"))
    at = None if as_of is None else _end("as_of", as_of)
    return Filter(
        namespace,
        toolsets=(toolset,) if toolset else (),
        session_ids=(session,) if session else (),
        domains=(about.strip(),) if about and about.strip() else (),
        kinds=("Turn",) if kind == TURN else (),
        tags=TagFilter((kind,), (KIND,)) if kind and kind != TURN else None,
        created_from=None if since is None else moment("since", since),
        created_before=None if until is None else _end("until", until),
        valid_at=at,
        known_at=at,
    )


def _end(name: str, text: str) -> Any:
    """The moment that is meant, of a day its end."""
    found = moment(name, text)
    try:
        return found + timedelta(days=1) if len(text.strip()) == _DAY else found
    except OverflowError:
        raise Refused(f"`{name}` is {text!r}, the last day that there is; leave it out.") from None


def _checked_tokens(tokens: int) -> int:
    """What fits one answer. Refused where no row would fit."""
    if tokens < LEAST_TOKENS:
        raise writes.invalid(
            f"The argument `max_tokens` is {tokens}; at least {LEAST_TOKENS} are needed to show a memory.",
            "max_tokens",
            {"minimum": LEAST_TOKENS, "maximum": MOST_TOKENS},
        )
    return min(tokens, MOST_TOKENS)


_TEXT = {"type": "string"}
_IDS = {"type": "array", "items": _TEXT}
_MOMENT = {"type": "string"}

TOOL = Tool(
    name="recall",
    toolset="core",
    title="Recall",
    description="Search everything that is known: what was remembered with any tool, and what was said in earlier "
    "sessions. Ask in plain words before you assume or ask again. `disputed_by` names later memories that say "
    "otherwise: trust those. The resource thalweg://memory/{id} has a memory whole.",
    kind="read",
    handler=recall,
    timeout_s=10.0,
    memory_operation="search_memory",
    truncation=None,
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for"},
            "max_tokens": {"type": "integer", "default": MAX_TOKENS, "description": "How long the answer may be"},
            "detail": {
                "type": "string",
                "enum": list(DETAILS),
                "default": "index",
                "description": "index: a line each; text: passages",
            },
            "kind": {"type": "string", "enum": [*PLAIN_KINDS, TURN], "description": "turn: what was said in a session"},
            "about": {"type": "string", "description": "As `remember` was told; or a domain"},
            "toolset": {"type": "string", "description": "Only what this toolset holds"},
            "session": {"type": "string", "description": "Only of this session"},
            "since": {**_MOMENT, "description": "Day or time"},
            "until": {**_MOMENT, "description": "Day (included) or time"},
            "as_of": {**_MOMENT, "description": "What was known then"},
        },
        "required": ["query"],
    },
    output_schema=writes.output_schema(
        {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": _TEXT,
                        "kind": _TEXT,
                        "text": _TEXT,
                        "at": _TEXT,
                        "score": {"type": "number", "minimum": 0, "maximum": 1},
                        "relevance": {"type": "number", "description": "How probably it is what was asked for"},
                        "why": {**_TEXT, "description": "How it was found: words, meaning, related, date"},
                        "about": _TEXT,
                        "session": {**_TEXT, "description": "Where it was said"},
                        "role": {**_TEXT, "description": "Who said it: user, assistant"},
                        "truncated": {"type": "boolean", "description": "The text is longer; the resource has it"},
                        "earlier": {**_IDS, "description": "Memories that this one changes"},
                        "disputed_by": {**_IDS, "description": "Memories that change this one or contradict it"},
                        "superseded_by": {**_IDS, "description": "With `as_of`: what holds now in its place"},
                        "also": {**_IDS, "description": "Memories that state the same"},
                        "times": {"type": "integer", "minimum": 2},
                    },
                    "required": ["id", "kind", "text", "at", "score", "why"],
                },
            },
            "total": {"type": "integer", "minimum": 0, "description": "Of all that was found, shown or not"},
            "nothing_relevant": {"type": "boolean", "description": "Probably none of it is what was asked for"},
            **GAP_FIELDS,
        }
    ),
)

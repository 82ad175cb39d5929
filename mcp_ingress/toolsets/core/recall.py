"""recall: one search over everything, in as many tokens as its caller can spare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import duckdb
import orjson

from mcp_ingress import writes
from mcp_ingress.arguments import moment
from mcp_ingress.call import Call
from mcp_ingress.fitting.passage import best_passage
from mcp_ingress.fitting.truncation import uri_of
from mcp_ingress.tool import GAP_FIELDS, Tool
from mcp_ingress.toolsets.core.records import KIND, LINE, Record, one_line, others, read_records
from processors.memory.live_search import search_live
from processors.memory.registry import KINDS
from processors.memory.rules.plain_kind import PLAIN_KINDS
from storage.search.records.filter import Filter, TagFilter
from storage.search.records.hits import SearchHit
from storage.search.search import MAX_OTHERS
from streams.errors import Refused

TURN = "turn"
TOOLSETS = sorted({toolset for toolset, _ in KINDS})
MAX_TOKENS, LEAST_TOKENS, MOST_TOKENS = 1_500, 100, 5_500
CHARACTERS = 4
"""Of a token, as answers are measured."""
FRAME = 160
"""Characters around the rows: flags, totals, what is lacking."""
ROW = {"index": 35, "text": 60}
"""Tokens that a row takes at least."""
MAX_PASSAGE, LEAST_PASSAGE = 1_200, LINE
PASSAGES = 4
"""A row's passage may take this part of what there is."""
MAX_NAMED = 3
"""This many other records are named in a row, of each sort."""
_SIDES = {"keyword": "words", "vector": "meaning", "late": "meaning", "graph": "related", "date": "date"}
_NAMES = frozenset({"Domain", "Human", "Persona", "Protocol", "Entity"})
_DAY = len("2026-01-31")


async def recall(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Wait for what the caller has written, search what still holds, and show as many hits as fit."""
    query, chosen = writes.checked_text(arguments, "query"), _filter(call.namespace, arguments)
    most, detail = _checked_tokens(arguments["max_tokens"]), arguments["detail"]
    is_fresh = await call.fresh("extract", vectors=True)
    found = await call.search(query, chosen, most // ROW[detail] + 1, search_live)
    records = await call.read(lambda cursor: _records(cursor, call.namespace, found.hits))
    room = CHARACTERS * most - FRAME
    hits = [hit for hit in found.hits if not _is_name(hit)]
    rows = {row["id"]: row for row in (_row(hit, records, query, detail, room) for hit in reversed(hits))}
    shown = _within(list(rows.values())[::-1], room)
    notes: dict[str, Any] = {} if is_fresh else {"stale": True}
    if found.degraded is not None:
        notes |= {"degraded": True, "message": found.degraded}
    return {"success": True, "results": shown, "total": found.total - len(found.hits) + len(rows), **notes}


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
        tags=TagFilter((kind,), (KIND,)) if kind else None,
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


def _records(cursor: duckdb.DuckDBPyConnection, namespace: str, hits: Sequence[SearchHit]) -> dict[str, Record]:
    named = [name for hit in hits for name in (*hit.also, *hit.earlier, *hit.disputed_by)]
    named += [hit.superseded_by for hit in hits if hit.superseded_by is not None]
    return read_records(cursor, namespace, [*(hit.record_id for hit in hits), *(identity for _, identity in named)])


def _is_name(hit: SearchHit) -> bool:
    """Whether it is a name alone, which says nothing of what it names."""
    return hit.kind in _NAMES and ": " not in hit.text


def _row(hit: SearchHit, records: Mapping[str, Record], query: str, detail: str, room: int) -> dict[str, Any]:
    """A hit as its caller reads it: what it says first, then where it is from and how it stands to others."""
    record = records[hit.record_id]
    superseded_by = [] if hit.superseded_by is None else [hit.superseded_by]
    related = {
        "earlier": hit.earlier,
        "disputed_by": hit.disputed_by,
        "superseded_by": superseded_by,
        "also": hit.also,
    }
    named = {name: others(some, records, record.id) for name, some in related.items()}
    times = hit.times if len(hit.also) == MAX_OTHERS else 1 + len(named["also"])
    return {
        "id": record.id,
        "kind": record.kind,
        **_text(hit, record.id, query, detail, room),
        "at": hit.created_at.date().isoformat(),
        "score": round(hit.score, 2),
        "why": "+".join(dict.fromkeys(_SIDES[side] for side in hit.sides if side in _SIDES)) or "related",
        **({"about": hit.domain} if hit.domain else {}),
        **({"session": hit.session_id} if hit.session_id and record.kind in (TURN, "exchange") else {}),
        **{name: ids[:MAX_NAMED] for name, ids in named.items() if ids},
        **({"times": times} if times > 1 else {}),
    }


def _text(hit: SearchHit, identity: str, query: str, detail: str, room: int) -> dict[str, Any]:
    near = None if hit.passage is None else (hit.passage.start, hit.passage.end)
    if detail == "index":
        return {"text": one_line(hit.text, query, near)}
    longest = max(LEAST_PASSAGE, min(MAX_PASSAGE, room // PASSAGES))
    if len(hit.text) <= longest:
        return {"text": hit.text}
    start, end = best_passage(hit.text, longest, query, near)
    return {"text": hit.text[start:end], "whole": uri_of("{id}", {"id": identity})}


def _within(rows: Sequence[Mapping[str, Any]], room: int) -> list[Mapping[str, Any]]:
    """The first rows that fit; one that is too large is passed over, unless there is no other."""
    shown, left = [], room
    for row in rows:
        size = len(orjson.dumps(row).decode()) + 1
        if size <= left:
            shown.append(row)
            left -= size
    return shown or [{**rows[0], "text": one_line(rows[0]["text"])}] if rows else []


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
                "enum": list(ROW),
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
                        "why": {**_TEXT, "description": "How it was found: words, meaning, related, date"},
                        "about": _TEXT,
                        "session": _TEXT,
                        "whole": {**_TEXT, "description": "The resource that has the whole text"},
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
            **GAP_FIELDS,
        }
    ),
)

"""How core names records: one id under which to correct them, one plain word for their kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import duckdb

from mcp_ingress.fitting.passage import Span, best_passage

LINE = 120
"""Characters of a text that is shown in one line."""
ELLIPSIS = "…"
TURN = "turn"
"""What core calls what was said in a captured session."""
KIND = "SELECT namespace, record_id, kind AS tag FROM plain_kinds"
"""(namespace, record_id, tag), as a filter by tags takes it."""
_ENTRIES = """
SELECT e.entity_id, j.entry_id
FROM entities e
JOIN talos_journal j ON j.namespace = e.namespace AND j.event_id = e.source_event_id AND trim(j.content) = e.text
WHERE e.namespace = $namespace AND e.entity_id IN (SELECT unnest($ids::VARCHAR[]))"""
_KINDS = """
SELECT record_id, kind FROM plain_kinds
WHERE namespace = $namespace AND record_id IN (SELECT unnest($ids::VARCHAR[]))"""


class RecordName(NamedTuple):
    """The id that core shows of a record, and its plain kind."""

    id: str
    kind: str


def read_records(cursor: duckdb.DuckDBPyConnection, namespace: str, known: Mapping[str, str]) -> dict[str, RecordName]:
    """By record id what core calls the records, given with their own kinds.

    What was found in an entry and says the same is the entry.
    """
    asked = list(known)
    if not asked:
        return {}
    entries = dict(cursor.execute(_ENTRIES, {"namespace": namespace, "ids": asked}).fetchall())
    named = {identity: entries.get(identity, identity) for identity in asked}
    kinds = dict(cursor.execute(_KINDS, {"namespace": namespace, "ids": list(set(named.values()))}).fetchall())
    return {identity: RecordName(shown, kinds.get(shown, known[identity].lower())) for identity, shown in named.items()}


def others(named: Sequence[tuple[str, str]], records: Mapping[str, RecordName], own: str) -> list[str]:
    """The ids that core shows of other records, given as (kind, id); without the record's own."""
    shown = (records[identity].id for _, identity in named if identity in records)
    return [identity for identity in dict.fromkeys(shown) if identity != own]


def one_line(text: str, query: str | None = None, near: Span | None = None, most: int = LINE) -> str:
    """The text in one line of at most `most` characters: of a longer one what fits the query best."""
    start, end = (0, len(text)) if len(text) <= most else best_passage(text, most - 2, query, near)
    line = " ".join(text[start:end].split())
    return f"{ELLIPSIS if start else ''}{line}{ELLIPSIS if end < len(text) else ''}"

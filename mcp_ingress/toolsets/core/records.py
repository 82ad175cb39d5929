"""How core names records: one id under which to correct them, one plain word for their kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import duckdb

from mcp_ingress.fitting.passage import Span, best_passage
from processors.memory.read.earlier import known_ended
from processors.telemetry.kinds import TURN as TURN_KIND
from storage.search.records.hits import DocumentRows
from storage.search.records.label_map import ABSENT
from storage.search.records.records import Records
from storage.statements import execute, marks
from streams.ids import document_label

LINE = 120
"""Characters of a text that is shown in one line."""
ELLIPSIS = "…"
TURN = "turn"
"""What core calls what was said in a captured session."""
KIND = "SELECT namespace, record_id, kind AS tag FROM plain_kinds"
"""(namespace, record_id, tag), as a filter by tags takes it."""
_ENTRY, _BELIEF = ("talos", "JournalEntry"), ("valence", "Belief")
_PLAIN = {"insight": "lesson", "belief": "fact"}
"""Other names have the kind that they say."""
_CATEGORIES = "SELECT entry_id, category FROM talos_journal WHERE namespace = ? AND entry_id IN ({marks})"
_ROOTS = "SELECT entry_id, root_id FROM journal_versions WHERE namespace = ? AND entry_id IN ({marks})"
_TAGS = """
SELECT record_id, tag FROM document_tags
WHERE namespace = ? AND tag IN ('goal', 'question') AND record_id IN ({marks})"""
_BELIEF_KINDS = """
SELECT belief_id, CASE WHEN list_contains(domain_path, 'preference') THEN 'preference' ELSE 'fact' END
FROM valence_beliefs WHERE label IN ({marks})"""


class RecordName(NamedTuple):
    """The id that core shows of a record, and its plain kind."""

    id: str
    kind: str


def read_records(
    cursor: duckdb.DuckDBPyConnection, stored: Records, namespace: str, known: Mapping[str, str]
) -> dict[str, RecordName]:
    """By record id what core calls the records, given with their own kinds.

    What was found in an entry and says the same is the entry; of one that was taken back or corrected, another one that
    says the same.
    """
    turns = {identity: RecordName(identity, TURN) for identity, kind in known.items() if kind == TURN_KIND}
    asked = {document_label(namespace, identity): identity for identity in known if identity not in turns}
    if not asked:
        return turns
    sources = stored.clusters.sources_of(list(asked))
    rows = stored.documents.rows(cursor, sources.values())
    entries = {label: row.record_id for label, row in rows.items() if (row.toolset, row.kind) == _ENTRY}
    entries |= _in_place_of_ended(cursor, stored, namespace, entries)
    named = {identity: entries.get(sources.get(label, ABSENT), identity) for label, identity in asked.items()}
    kinds = read_kinds(cursor, stored.documents, namespace, set(named.values()))
    return turns | {
        identity: RecordName(shown, kinds.get(shown, known[identity].lower())) for identity, shown in named.items()
    }


def _in_place_of_ended(
    cursor: duckdb.DuckDBPyConnection, stored: Records, namespace: str, entries: Mapping[int, str]
) -> dict[int, str]:
    """By label, for these entries that have ended, the latest that says the same and holds."""
    ended = known_ended(cursor, stored, namespace, entries.values()) if entries else ()
    beside = {label: stored.clusters.beside(label) for label, entry in entries.items() if entry in ended}
    if not beside:
        return {}
    rows = stored.documents.rows(cursor, {other for others in beside.values() for other in others})
    alike = {label: row for label, row in rows.items() if (row.toolset, row.kind) == _ENTRY}
    ended = known_ended(cursor, stored, namespace, [row.record_id for row in alike.values()])
    living = {label: row for label, row in alike.items() if row.record_id not in ended}
    return {
        label: max((living[other] for other in others if other in living), key=lambda row: row.created_at).record_id
        for label, others in beside.items()
        if not living.keys().isdisjoint(others)
    }


def read_kinds(
    cursor: duckdb.DuckDBPyConnection, documents: DocumentRows, namespace: str, record_ids: Collection[str]
) -> dict[str, str]:
    """record id -> kind, as `plain_kinds` has it, of those that are memories.

    Each is looked up by an index: the view reads every memory, 14 ms of 100,000.
    """
    rows = documents.rows(cursor, [document_label(namespace, record_id) for record_id in record_ids])
    kinds = {row.record_id: _PLAIN.get(row.kind.lower(), row.kind.lower()) for row in rows.values()}
    entries = [row.record_id for row in rows.values() if (row.toolset, row.kind) == _ENTRY]
    if entries:
        kinds |= _entry_kinds(cursor, namespace, entries)
    beliefs = [label for label, row in rows.items() if (row.toolset, row.kind) == _BELIEF]
    if beliefs:
        kinds |= dict(execute(cursor, _BELIEF_KINDS.format(marks=marks(beliefs)), beliefs).fetchall())
    return kinds


def _entry_kinds(cursor: duckdb.DuckDBPyConnection, namespace: str, entries: Sequence[str]) -> dict[str, str]:
    """What `remember` tagged the entries, or the first of their versions, or else their categories.

    Apart, for joined DuckDB uses no index.
    """

    def found(sql: str, asked: Sequence[str]) -> dict[str, str]:
        return dict(execute(cursor, sql.format(marks=marks(asked)), [namespace, *asked]).fetchall())

    roots = {entry: entry for entry in entries} | found(_ROOTS, entries)
    tags = found(_TAGS, list(roots.values()))
    kinds = {entry: _PLAIN.get(category, category) for entry, category in found(_CATEGORIES, entries).items()}
    return kinds | {entry: tags[root] for entry, root in roots.items() if root in tags}


def others(named: Sequence[tuple[str, str]], records: Mapping[str, RecordName], own: str) -> list[str]:
    """The ids that core shows of other records, given as (kind, id); without the record's own."""
    shown = (records[identity].id for _, identity in named if identity in records)
    return [identity for identity in dict.fromkeys(shown) if identity != own]


def one_line(text: str, query: str | None = None, near: Span | None = None, most: int = LINE) -> str:
    """The text in one line of at most `most` characters: of a longer one what fits the query best."""
    start, end = (0, len(text)) if len(text) <= most else best_passage(text, most - 2, query, near)
    line = " ".join(text[start:end].split())
    return f"{ELLIPSIS if start else ''}{line}{ELLIPSIS if end < len(text) else ''}"

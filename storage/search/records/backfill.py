"""Reading the timelines, questions, speakers and passages of every record from the tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

import duckdb

from storage.search.entries import DocumentEntry
from storage.search.records.passages import FIRST_PASSAGES, MIN_LONG_CHARS, Passage, split_passages
from storage.search.records.speakers import MAX_LABEL, USERS, USERS_LABEL

FETCH_ROWS = 8_192
SURELY_LONG_CHARS = 2_000


def holds_records(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Whether there is any document or passage: on a first start the others need not be asked."""
    row = cursor.execute("SELECT EXISTS (FROM documents) OR EXISTS (FROM passages)").fetchone()
    return row is not None and bool(row[0])


def read_timelines(cursor: duckdb.DuckDBPyConnection) -> Iterator[DocumentEntry]:
    """Every document that belongs to a session or a connection, without its text."""
    cursor.execute(
        "SELECT label, namespace, session_id, created_at, connection FROM documents "
        "WHERE session_id IS NOT NULL OR connection IS NOT NULL"
    )
    while rows := cursor.fetchmany(FETCH_ROWS):
        for label, namespace, session_id, created_at, connection in rows:
            yield DocumentEntry(label, namespace, "", session_id, created_at, connection=connection)


def read_texts(cursor: duckdb.DuckDBPyConnection) -> Iterator[DocumentEntry]:
    """Every document with its text, time, kind and event, but not its session; those of an event together."""
    cursor.execute("SELECT label, namespace, text, created_at, toolset, kind, event_id FROM documents")
    while rows := cursor.fetchmany(FETCH_ROWS):
        for label, namespace, text, created_at, *kind, event_id in rows:
            yield DocumentEntry(label, namespace, text, None, created_at, (kind[0], kind[1]), event_id=event_id)


def read_questions(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, str]]:
    """(label, text) of every document with a question mark."""
    cursor.execute("SELECT label, text FROM documents WHERE regexp_matches(text, '[?？؟]')")
    while rows := cursor.fetchmany(FETCH_ROWS):
        yield from rows


def read_speaker_texts(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, str]]:
    """(label, beginning) of every document that may begin with the name of a speaker."""
    cursor.execute(
        f"SELECT label, left(text, {MAX_LABEL}) AS beginning FROM documents "
        "WHERE regexp_matches(beginning, '^[^\\n]*(:\\s|：)')"
    )
    while rows := cursor.fetchmany(FETCH_ROWS):
        yield from rows


def read_user_labels(cursor: duckdb.DuckDBPyConnection, roles: str) -> Iterator[int]:
    """The label of every document that a user said. `roles` SELECTs (namespace, record_id, role), or is empty."""
    named = f"SELECT d.label, r.role FROM documents d LEFT JOIN ({roles}) r USING (namespace, record_id)"
    cursor.execute(
        f"SELECT label FROM ({named if roles else 'SELECT label, NULL AS role FROM documents'}) "
        "JOIN documents USING (label) "
        "WHERE list_contains(?, lower(trim(role))) OR role IS NULL AND regexp_matches(text, ?, 'i')",
        [list(USERS), USERS_LABEL],
    )
    while rows := cursor.fetchmany(FETCH_ROWS):
        yield from (label for (label,) in rows)


def read_passages(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, list[Passage]]]:
    """(document, passages): as embedded, and of long texts that no model has read whole, as they are cut."""
    rows = cursor.execute(
        "SELECT DISTINCT owner_label, number, char_start, char_end FROM passages ORDER BY ALL"
    ).fetchall()
    for owner, places in groupby(rows, key=itemgetter(0)):
        yield owner, [Passage(*place) for _, *place in places]
    cursor.execute(
        "SELECT label, text FROM documents WHERE length(text) > ? "
        "AND (label IN (SELECT label FROM embeddings WHERE passages > ?) "
        "OR label NOT IN (SELECT owner_label FROM passages) "
        "AND (length(text) > ? OR label NOT IN (SELECT label FROM embeddings)))",
        [MIN_LONG_CHARS, FIRST_PASSAGES, SURELY_LONG_CHARS],
    )
    while rows := cursor.fetchmany(FETCH_ROWS):
        for label, text in rows:
            yield label, split_passages(text)

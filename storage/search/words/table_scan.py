"""Texts with words of a query, from the table.

It answers in the seconds in which the keyword index is being rebuilt.
"""

from __future__ import annotations

import duckdb

from storage.search.records.filter import Filter, predicate
from storage.search.words.analyzer import fold, query_terms, query_words
from storage.search.words.keyword_index import MAX_QUERY_TERMS
from storage.search.words.tantivy_schema import TERMS

MAX_CANDIDATES = 400
FEW_CANDIDATES = 200
"""Texts that one search beside other sides analyses: some 9 ms."""
SCANNED_ROWS = 5_000
"""Rows that one search beside other sides scans: some 6 ms."""


def scan_documents(
    cursor: duckdb.DuckDBPyConnection,
    text: str,
    filter: Filter,
    below: int,
    rows: int | None = SCANNED_ROWS,
    *,
    field: str = TERMS,
) -> list[tuple[int, str]]:
    """(label, text) of documents with the beginning of a word; most words first, then the newest.

    Only the `rows` before the rowid `below` are scanned, for FEW_CANDIDATES (None: all before it, for MAX_CANDIDATES).
    """
    terms = (query_terms if field == TERMS else query_words)(text)[:MAX_QUERY_TERMS]
    if not terms:
        return []
    condition = predicate(filter)
    # the stem's last letter may differ from the text's (happi, happy); scoring analyses properly
    likely = " + ".join(["contains(folded, ?)::INTEGER"] * len(terms))
    found = cursor.execute(
        f"SELECT label, text FROM (SELECT label, text, created_at, {likely} AS matched "
        "FROM (SELECT label, text, created_at, "
        "CASE WHEN strlen(text) = length(text) THEN lower(text) "
        "ELSE strip_accents(lower(nfc_normalize(text))) END AS folded "
        f"FROM documents d WHERE d.rowid < ? AND d.rowid >= ? AND {condition.sql})) WHERE matched > 0 "
        f"ORDER BY matched DESC, created_at DESC LIMIT {MAX_CANDIDATES if rows is None else FEW_CANDIDATES}",
        [
            *(term[:-1] if len(term) > 3 else term for term in map(fold, terms)),
            below,
            0 if rows is None else below - rows,
            *condition.parameters,
        ],
    ).fetchall()
    return found

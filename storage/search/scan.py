"""Keyword search without an index: a scan of the table, for the seconds in which the index is being rebuilt."""

from __future__ import annotations

import math
from collections import Counter

import duckdb

from storage.search.keyword import MAX_QUERY_TERMS, TERMS, WORDS, Scores
from storage.search.planner import Filter, predicate
from storage.search.terms import document_terms, document_words, fold, query_terms, query_words

MAX_CANDIDATES = 2_000


_ANALYSES = {TERMS: (query_terms, document_terms), WORDS: (query_words, document_words)}


def scan_documents(cursor: duckdb.DuckDBPyConnection, text: str, filter: Filter, k: int, *, field: str = TERMS) -> Scores:
    """The k best as (label, score). Candidates share a term's beginning with the text; the newest are scored, so that
    the time is bounded (milliseconds per 10,000 documents)."""
    asked, held = _ANALYSES[field]
    terms = asked(text)[:MAX_QUERY_TERMS]
    if not terms:
        return []
    condition = predicate(filter)
    # the stem's last letter may differ from the text's (happi, happy); scoring below analyses properly
    likely = " OR ".join(["contains(folded, ?)"] * len(terms))
    rows = cursor.execute(
        f"SELECT label, text FROM (SELECT label, text, created_at, strip_accents(lower(nfc_normalize(text))) AS folded "
        f"FROM documents d WHERE {condition.sql}) WHERE {likely} ORDER BY created_at DESC LIMIT {MAX_CANDIDATES}",
        [*condition.parameters, *(term[:-1] if len(term) > 3 else term for term in map(fold, terms))],
    ).fetchall()
    counted = [(label, Counter(held(text))) for label, text in rows]
    holding = Counter(term for _, counts in counted for term in set(counts).intersection(terms))
    rarity = {term: math.log(1 + (len(counted) - count + 0.5) / (count + 0.5)) for term, count in holding.items()}
    scores = [(label, sum(weight * math.log1p(counts[term]) for term, weight in rarity.items())) for label, counts in counted]
    return sorted((match for match in scores if match[1] > 0), key=lambda match: (-match[1], match[0]))[:k]

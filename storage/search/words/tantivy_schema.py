"""The schema, documents and queries that the keyword index gives to tantivy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.search.records.matches import Matches

if TYPE_CHECKING:
    import tantivy

TERMS, WORDS = "text", "words"
"""The two fields of a document."""


def schema_of_documents() -> tantivy.Schema:
    """The schema of documents. tantivy only cuts terms at spaces, so that overlay and index agree exactly."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("label", indexed=True, fast=True)
    for field in (TERMS, WORDS):
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    return builder.build()


def document_of(label: int, texts: Mapping[str, str]) -> tantivy.Document:
    import tantivy

    document = tantivy.Document()
    document.add_integer("label", label)
    for field, text in texts.items():
        document.add_text(field, text)
    return document


def query_of(
    schema: tantivy.Schema, terms: Sequence[str], labels: list[int] | None, field: str = TERMS
) -> tantivy.Query:
    """Any of the terms, and one of the labels where these are given; only the terms score."""
    from tantivy import Occur, Query

    words = Query.boolean_query([(Occur.Should, Query.term_query(schema, field, term, "freq")) for term in terms])
    if labels is None:
        return words
    chosen = Query.const_score_query(Query.term_set_query(schema, "label", labels), 0.0)
    return Query.boolean_query([(Occur.Must, words), (Occur.Must, chosen)])


def hits_of(searcher: tantivy.Searcher, query: tantivy.Query, limit: int) -> Matches:
    hits = searcher.search(query, max(1, limit), count=False).hits
    labels: list[Any] = searcher.fast_field_values("label", [address for _, address in hits])
    return [(int(label), float(score)) for label, (score, _) in zip(labels, hits, strict=True)]


def labels_of(searcher: tantivy.Searcher) -> np.ndarray:
    from tantivy import Query

    return np.array([label for label, _ in hits_of(searcher, Query.all_query(), searcher.num_docs)], np.int64)

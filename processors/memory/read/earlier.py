"""Reads the earlier memories that a new one may change: those near to it, and those without a vector.

The stage `changes` and the answers of writes use it, so that both compare the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import duckdb
import numpy as np

from processors.memory.registry import ENDED, NOT_EMBEDDED, texts_to_embed
from processors.memory.rules.change import changes
from processors.memory.rules.sentences import statements_of
from processors.memory.rules.translation import in_known_words
from storage.reader import documents_since
from storage.search.index_set import IndexSet
from storage.search.records.filter import Filter, resolve
from storage.search.records.hits import SearchHit
from storage.search.records.matches import Matches
from storage.search.records.passages import is_long
from storage.search.records.records import Records
from storage.search.vectors.space import Space
from storage.statements import execute
from streams.events import Event
from streams.positions import Partition

CHANGES_STAGE = "changes"
"""The stage that says on the log which memory changes which."""
LEAST_COSINE = 0.4
"""Statements about the same thing that say it in other words are not nearer than this."""
NEAREST, MOST = 40, 10
"""Of this many nearest memories of a namespace, whatever their kind, at most MOST earlier ones are named."""
MOST_IN_COMMON = 12
"""Of the nearest, this many that share the most words with a text are compared with it.

Taking apart sentences is most of a comparison's work, and what changes a statement has its words (docs/search.md).
"""
MOST_ENDED = 5_000
"""Reading this many takes as long as asking for those of one search."""
UNEMBEDDED = 100
"""Of the memories without a vector this many newest are compared."""
_WORD = re.compile(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+")
"""A word, or a Chinese character."""
_COLUMNS = "label, record_id, kind, text, created_at"


class Memory(NamedTuple):
    """A memory as it is compared. `created_at` is UTC without a zone, `cosine` None where it has no vector."""

    label: int
    record_id: str
    kind: str
    text: str
    created_at: datetime
    cosine: float | None = None


def texts_to_compare(event: Event) -> dict[str, str]:
    """Record id -> text of an event's memories that say something which can change, each text once."""
    texts = {text: identity for identity, text in reversed(list(texts_to_embed(event)))}
    return {identity: text for text, identity in texts.items() if statements_of(in_known_words(text))}


def changed_by(text: str, moment: datetime, others: Sequence[Memory], own: Collection[str]) -> list[Memory]:
    """Those of these memories that are earlier, and of which the text changes what they say, in order.

    `moment`: when the text was written, UTC without a zone; `own`: ids of the memories that it makes. A text of several
    passages changes nothing and is not changed: of its many sentences some pair looks like a change by chance.
    """
    if is_long(text):
        return []
    earlier = [
        other
        for other in others
        if other.created_at < moment and other.record_id not in own and other.text != text and not is_long(other.text)
    ]
    return [other for other in _most_in_common(text, earlier) if changes(other.text, text)][:MOST]


def _most_in_common(text: str, others: Sequence[Memory]) -> Sequence[Memory]:
    """Those MOST_IN_COMMON that share the most words with the text, in the order in which they come."""
    if len(others) <= MOST_IN_COMMON:
        return others
    words = _words(text)
    shared = [len(words & _words(other.text)) for other in others]
    best = sorted(range(len(others)), key=lambda place: (-shared[place], place))[:MOST_IN_COMMON]
    return [others[place] for place in sorted(best)]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def nearest_memories(
    cursor: duckdb.DuckDBPyConnection,
    indexes: IndexSet,
    space: Space,
    texts: Sequence[tuple[str, np.ndarray]],
    toolset: str | None = None,
) -> list[list[Memory]]:
    """For each (namespace, unit vector) the `NEAREST` memories of the namespace, nearest first.

    `toolset`: only memories of this one.
    The index is read once for all; where records of other namespaces, or passages, take the places of a namespace's
    own, it is read again for this one alone. Several texts are background work, which gives way after each.
    """
    if not texts:
        return []
    near = space.nearest_to_each(np.stack([vector for _, vector in texts]), NEAREST, LEAST_COSINE)
    labels: dict[str, np.ndarray] = {}
    asked = () if toolset is None else (toolset,)
    found: list[list[Memory]] = []
    rows = _Rows(cursor, indexes)
    for (namespace, vector), matches in zip(texts, near, strict=True):
        own = rows.memories(namespace, matches, toolset)
        if len(own) < len(matches) == NEAREST:
            if namespace not in labels:
                labels[namespace] = resolve(cursor, Filter(namespace, toolsets=asked, exclude_merged=False))
            [matches] = space.nearest_of_each(vector, NEAREST, [labels[namespace]])
            close = [match for match in matches if match[1] >= LEAST_COSINE]
            own = rows.memories(namespace, close, toolset)
        found.append(own)
        if len(texts) > 1:
            indexes.yield_to_callers()
    return found


def read_unembedded(cursor: duckdb.DuckDBPyConnection, namespace: str, since: Mapping[Partition, int]) -> list[Memory]:
    """The newest memories of a namespace at or behind these offsets, that are to get vectors."""
    if not since:
        return []
    behind = documents_since(since)
    kinds = ", ".join(["(?, ?)"] * len(NOT_EMBEDDED))
    rows = cursor.execute(
        f"SELECT {_COLUMNS} FROM documents WHERE namespace = ? AND ({behind.sql}) AND (toolset, kind) NOT IN ({kinds}) "
        f"ORDER BY created_at DESC, record_id LIMIT {UNEMBEDDED}",
        [namespace, *behind.parameters, *(name for pair in NOT_EMBEDDED for name in pair)],
    ).fetchall()
    return [Memory(*row) for row in rows]


def read_ended(cursor: duckdb.DuckDBPyConnection, namespace: str, record_ids: Sequence[str]) -> set[str]:
    """Those of these memories that do not hold any more."""
    rows = cursor.execute(
        f"SELECT DISTINCT record_id FROM ({ENDED}) WHERE namespace = $namespace "
        "AND record_id IN (SELECT unnest($record_ids::VARCHAR[]))",
        {"namespace": namespace, "record_ids": list(record_ids)},
    ).fetchall()
    return {record_id for (record_id,) in rows}


def known_ended(
    cursor: duckdb.DuckDBPyConnection, stored: Records, namespace: str, record_ids: Collection[str]
) -> Collection[str]:
    """What has ended of these memories; all of the namespace, read once a commit, where it is not much."""
    known = stored.cached(cursor, ("ended", namespace), lambda last, rows: read_all_ended(cursor, namespace))
    return read_ended(cursor, namespace, sorted(record_ids)) if known is None else known


def read_all_ended(cursor: duckdb.DuckDBPyConnection, namespace: str) -> frozenset[str] | None:
    """All memories of a namespace that do not hold any more; None where there are more than MOST_ENDED."""
    rows = execute(
        cursor, f"SELECT DISTINCT record_id FROM ({ENDED}) WHERE namespace = ? LIMIT {MOST_ENDED + 1}", [namespace]
    ).fetchall()
    return None if len(rows) > MOST_ENDED else frozenset(record_id for (record_id,) in rows)


class _Rows:
    """Rows of memories, each read once.

    Texts that are written one after the other have neighbours in common.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, indexes: IndexSet) -> None:
        self._cursor, self._documents = cursor, indexes.records.documents
        self._hits: dict[tuple[str, int], SearchHit] = {}

    def memories(self, namespace: str, matches: Matches, toolset: str | None) -> list[Memory]:
        """Those of the matches that are the namespace's own, and of this toolset where it is named."""
        unread = [label for label, _ in matches if (namespace, label) not in self._hits]
        read = self._documents.hits(self._cursor, namespace, unread)
        self._hits |= {(namespace, label): hit for label, hit in read.items()}
        return [
            Memory(label, hit.record_id, hit.kind, hit.text, hit.created_at, cosine)
            for label, cosine in matches
            if (hit := self._hits.get((namespace, label))) is not None and toolset in (None, hit.toolset)
        ]

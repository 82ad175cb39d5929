"""What a space of vectors lacks, and the facts that fill it. The texts are the log's, as the tables keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np

from processors.embedding.model import ModelInfo
from processors.memory.registry import NOT_EMBEDDED, STORED_TEXTS
from processors.memory.vector_facts import embedded_by, items_of, passages_of, split_fact
from storage.reader import documents_since
from storage.search.records.passages import EMBEDDED_PASSAGES, Passage
from streams.event_types.memory import EMBEDDED, EMBEDDING_FAILED
from streams.events import Event
from streams.ids import derived_id, document_label
from streams.positions import Partition

SOURCE = "thalweg:reembed"
_WANTED = """
SELECT DISTINCT d.label FROM documents d JOIN embeddings e ON e.label = d.label WHERE e.space <> ?"""
_WANTED_OF_ALL = """
SELECT label FROM documents d WHERE NOT EXISTS (FROM embeddings WHERE space <> ?) AND NOT EXISTS (
    FROM (SELECT unnest(?::VARCHAR[]) AS toolset, unnest(?::VARCHAR[]) AS kind) k
    WHERE k.toolset = d.toolset AND k.kind = d.kind)"""

_FAILED = """
SELECT f.namespace, f.record_id FROM embedding_failures f WHERE f.space = ? AND NOT EXISTS (
    FROM embeddings e WHERE e.namespace = f.namespace AND e.record_id = f.record_id AND e.space = f.space
    AND e.partition = f.partition AND e."offset" > f."offset")"""
"""A vector that came later (a dead letter that was replayed) puts an end to a failure."""
_PARTIAL = """
SELECT label FROM embeddings e WHERE space = ?
AND passages > (SELECT count(*) FROM passages p WHERE p.owner_label = e.label AND p.space = e.space)
ORDER BY "offset" DESC, label"""
_LACKING_TURNS = """
SELECT label, count(*) OVER () FROM turns t WHERE NOT list_contains(?::VARCHAR[], namespace)
AND NOT EXISTS (FROM turn_embeddings e WHERE e.label = t.label AND e.space = ?)
AND NOT EXISTS (
    FROM embedding_failures f WHERE f.namespace = t.namespace AND f.record_id = t.record_id AND f.space = ?)
ORDER BY created_at DESC, label LIMIT ?"""
SLICE_TURNS = 32
"""Turns that are embedded before it is looked again which are the newest: a second of one core."""
SLICE_TEXTS, SLICE_CHARS = 64, 256 * 1024
_TEXTS = f"""
SELECT d.namespace, d.record_id, coalesce(t.text, d.text), d.created_at
FROM documents d LEFT JOIN ({STORED_TEXTS}) t ON t.namespace = d.namespace AND t.record_id = d.record_id
WHERE d.label IN (SELECT unnest(?::BIGINT[])) ORDER BY d."offset", d.label"""


@dataclass(frozen=True, slots=True)
class Missing:
    """A text that has no vector in the space yet."""

    namespace: str
    record_id: str
    text: str
    created_at: datetime


def missing_labels(cursor: duckdb.DuckDBPyConnection, space: str) -> tuple[np.ndarray, int]:
    """Labels that need a vector in this space and have none, sorted; and how many have one.

    A document needs one when it has one in any other space; where there is no other, when its kind is embedded. Those
    on which the model or the log has failed are left out.
    """
    toolsets, kinds = ([pair[at] for pair in NOT_EMBEDDED] for at in range(2))
    wanted = _labels(cursor, f"{_WANTED} UNION {_WANTED_OF_ALL}", [space, space, toolsets, kinds])
    present = _labels(cursor, "SELECT label FROM embeddings WHERE space = ?", [space])
    return np.setdiff1d(np.setdiff1d(wanted, present), failed_labels(cursor, space)), len(present)


def partial_labels(cursor: duckdb.DuckDBPyConnection, space: str) -> list[int]:
    """Labels of long texts that lack vectors of passages in this space, the newest first."""
    failed = set(failed_labels(cursor, space).tolist())
    return [label for (label,) in cursor.execute(_PARTIAL, [space]).fetchall() if label not in failed]


def failed_labels(cursor: duckdb.DuckDBPyConnection, space: str) -> np.ndarray:
    """Labels of the texts that the model or the log refused in this space, wholly or in part."""
    rows = cursor.execute(_FAILED, [space]).fetchall()
    return np.array([document_label(namespace, record_id) for namespace, record_id in rows], np.int64)


def missing_passages(
    cursor: duckdb.DuckDBPyConnection, label: int, space: str, passages: Sequence[Passage]
) -> list[Passage]:
    """Those of a text's passages that should have a vector in this space and have none."""
    rows = cursor.execute("SELECT number FROM passages WHERE owner_label = ? AND space = ?", [label, space]).fetchall()
    present = {number for (number,) in rows}
    return [passage for passage in passages[:EMBEDDED_PASSAGES] if passage.number not in present]


def slices(cursor: duckdb.DuckDBPyConnection, labels: np.ndarray) -> list[np.ndarray]:
    """The labels in slices of at most SLICE_TEXTS texts and SLICE_CHARS characters. A longer text stands alone."""
    rows = cursor.execute(
        "SELECT label, length(text) FROM documents WHERE label IN (SELECT unnest(?::BIGINT[]))", [labels.tolist()]
    )
    cut: list[list[int]] = []
    chars = SLICE_CHARS
    for label, length in rows.fetchall():
        if chars + length > SLICE_CHARS or len(cut[-1]) == SLICE_TEXTS:
            cut.append([])
            chars = 0
        cut[-1].append(label)
        chars += length
    return [np.array(some, np.int64) for some in cut]


def lacking_before(cursor: duckdb.DuckDBPyConnection, space: str, reached: Mapping[Partition, int]) -> np.ndarray:
    """As the labels of `missing_labels`, of texts before these offsets of the log."""
    since = documents_since(reached)
    later = f"SELECT label FROM documents WHERE {since.sql}"
    behind = np.asarray(cursor.execute(later, since.parameters).fetchnumpy()["label"], np.int64)
    return np.setdiff1d(missing_labels(cursor, space)[0], behind)


def lacking_turns(cursor: duckdb.DuckDBPyConnection, space: str, unsearched: Sequence[str]) -> tuple[np.ndarray, int]:
    """Labels of the SLICE_TURNS newest turns that have no vector in this space, and how many have none.

    Turns of `unsearched` namespaces need none; those on which the model or the log has failed are left out.
    """
    rows = cursor.execute(_LACKING_TURNS, [list(unsearched), space, space, SLICE_TURNS]).fetchall()
    return np.array([label for label, _ in rows], np.int64), rows[0][1] if rows else 0


def _labels(cursor: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[str | list[str]]) -> np.ndarray:
    return np.asarray(cursor.execute(query, parameters).fetchnumpy()["label"], np.int64)


def read_texts(cursor: duckdb.DuckDBPyConnection, labels: np.ndarray) -> list[Missing]:
    """The texts of these labels as the stage `embed` embeds them, in the order of the log."""
    rows = cursor.execute(_TEXTS, [labels.tolist()]).fetchall()
    return [Missing(*row) for row in rows]


def facts_of(
    info: ModelInfo,
    building: str,
    texts: Sequence[Missing],
    encoded: Mapping[str, Mapping[str, Any]],
    largest: int,
    *,
    of_turns: bool = False,
) -> list[list[Event]]:
    """The vectors of texts, or turns, as facts of at most `largest` bytes, a list for each namespace.

    `encoded` is what `encode_texts` gave. `building` names this building of the space: a space that was dropped and is
    built again gets new facts; one that goes on after a crash gets the same.
    """
    groups: dict[str, list[Event]] = {}
    made_by = embedded_by(info) | ({"of_turns": True} if of_turns else {})
    for missing in texts:
        fact = _fact(info, building, missing, EMBEDDED, made_by)
        groups.setdefault(missing.namespace, []).extend(
            split_fact(fact, items_of(missing.record_id, encoded[missing.text]), largest)
        )
    return list(groups.values())


def facts_of_passages(
    info: ModelInfo, building: str, missing: Missing, encoded: Sequence[Mapping[str, Any]], largest: int
) -> list[Event]:
    """The vectors of some passages of a text (`encode_passages`) as facts of at most `largest` bytes."""
    numbers = [str(one["passage"]["number"]) for one in encoded]
    fact = _fact(info, building, missing, EMBEDDED, embedded_by(info), numbers[0], numbers[-1])
    return split_fact(fact, passages_of(missing.record_id, encoded), largest)


def fact_of_failure(info: ModelInfo, building: str, missing: Missing, reason: str) -> Event:
    """That the text gets no vector, or no more of them, in this building of the space."""
    data = {"space": info.space, "record_ids": [missing.record_id], "reason": reason}
    return _fact(info, building, missing, EMBEDDING_FAILED, data, "failed")


def _fact(
    info: ModelInfo, building: str, missing: Missing, event_type: str, data: Mapping[str, Any], *names: str
) -> Event:
    identity = derived_id(SOURCE, info.space, building, missing.namespace, missing.record_id, *names)
    return Event(identity, SOURCE, event_type, missing.namespace, missing.created_at.replace(tzinfo=UTC), data)

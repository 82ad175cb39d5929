"""What a space of vectors lacks, and the facts that fill it. The texts are the log's, as the tables keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np

from processors.embedding.model import ModelInfo
from processors.reducers.derived import embedded_by
from streams.event_types.derived import EMBEDDED
from streams.events import Event
from streams.ids import derived_id

SOURCE = "thalweg:reembed"
_NOT_EMBEDDED = "Domain"
_WANTED = """
SELECT DISTINCT d.label FROM documents d JOIN embeddings e ON e.label = d.label WHERE e.space <> ?"""
_WANTED_OF_ALL = "SELECT label FROM documents WHERE kind <> ? AND NOT EXISTS (FROM embeddings WHERE space <> ?)"

_TEXTS = """
SELECT d.namespace, d.record_id, coalesce(e.query, d.text), d.created_at
FROM documents d LEFT JOIN episode_memory e ON d.kind = 'episode' AND e.namespace = d.namespace AND d.record_id = 'episode-' || e.id
WHERE d.label IN (SELECT unnest(?::BIGINT[])) ORDER BY d."offset", d.label"""
"""Of an episode its query alone, as when it came; its keywords are those of the reflection too."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A text that has no vector in the space yet."""

    namespace: str
    record_id: str
    text: str
    created_at: datetime


def missing_labels(cursor: duckdb.DuckDBPyConnection, space: str) -> tuple[np.ndarray, int]:
    """Labels that should have a vector in this space and have none, sorted, and the number of those that have one.

    Those should that have one in any other space; where there is no other, every document but names of domains.
    """
    wanted = _labels(cursor, f"{_WANTED} UNION {_WANTED_OF_ALL}", [space, _NOT_EMBEDDED, space])
    held = _labels(cursor, "SELECT label FROM embeddings WHERE space = ?", [space])
    return np.setdiff1d(wanted, held), len(held)


def _labels(cursor: duckdb.DuckDBPyConnection, query: str, parameters: list[str]) -> np.ndarray:
    return np.asarray(cursor.execute(query, parameters).fetchnumpy()["label"], np.int64)


def read_texts(cursor: duckdb.DuckDBPyConnection, labels: np.ndarray) -> list[Missing]:
    """The texts of these labels that are embedded, in the order of their records' places on the log: what the stage `embed` embeds."""
    rows = cursor.execute(_TEXTS, [labels.tolist()]).fetchall()
    return [Missing(*row) for row in rows]


def facts_of(info: ModelInfo, building: str, texts: Sequence[Missing], encoded: Mapping[str, Mapping[str, Any]]) -> list[list[Event]]:
    """What the model made of the texts (`encode_texts`) as facts, a list for each namespace. `building` names this building of the space: a space that was
    dropped and is built again gets new facts; one that goes on after a crash the same."""
    groups: dict[str, list[Event]] = {}
    for missing in texts:
        identity = derived_id(SOURCE, info.space, building, missing.namespace, missing.record_id)
        data = embedded_by(info) | {"vectors": [{"record_id": missing.record_id, **encoded[missing.text]}]}
        event = Event(identity, SOURCE, EMBEDDED, missing.namespace, missing.created_at.replace(tzinfo=UTC), data)
        groups.setdefault(missing.namespace, []).append(event)
    return list(groups.values())

"""A real DuckDB in memory with the real schema, and rows as the materialiser writes them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np

from processors.embedding.hashing import HashingEmbedder
from storage.search.entries import VectorEntry
from storage.search.index_set import IndexSet
from storage.vector_codec import stored_vector
from streams.ids import record_label
from tests.schema import copy_into

EMBEDDER = HashingEmbedder()
MODEL = EMBEDDER.info
START = datetime(2026, 1, 1)
MEMORY, DERIVED = "thalweg.memory.v1", "thalweg.derived.v1"


def label_of(record_id: str, namespace: str = "a") -> int:
    return record_label(f"{namespace}\0{record_id}")


class Store:
    """Tables, and the positions that they have reached."""

    def __init__(self, saved: Path | None = None, *, offset: int = 0) -> None:
        self.connection = duckdb.connect()
        copy_into(self.connection, saved)
        self.offset = offset

    def save(self, file: Path) -> None:
        """What `Store(file, offset=…)` opens as a store of its own."""
        self.connection.execute(f"ATTACH '{file}' AS saved")
        self.connection.execute("COPY FROM DATABASE memory TO saved")
        self.connection.execute("DETACH saved")

    @property
    def positions(self) -> dict[str, int]:
        return {f"{MEMORY}/0": self.offset, f"{DERIVED}/0": self.offset}

    def open(self, directory: Path, model: object = MODEL) -> IndexSet:
        indexes = IndexSet(directory, self.connection.cursor, model)  # type: ignore[arg-type]
        indexes.open(self.positions)
        return indexes

    def write(
        self,
        record_id: str,
        text: str,
        *,
        namespace: str = "a",
        kind: str = "Insight",
        toolset: str = "talos",
        session_id: str | None = None,
        domain: str | None = None,
        created_at: datetime | None = None,
        connection: str | None = None,
        event_id: str | None = None,
        vector: np.ndarray | None = None,
        model_id: str = MODEL.model_id,
        to: IndexSet | None = None,
    ) -> int:
        """A document and its vector; `to` is told as the materialiser would tell it."""
        label, offset = label_of(record_id, namespace), self.offset
        row = EMBEDDER.encode([text])[0] if vector is None else vector
        moment = created_at or START + timedelta(minutes=offset)
        self.connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?)",
            [
                label,
                record_id,
                toolset,
                kind,
                session_id,
                domain,
                text,
                moment,
                namespace,
                MEMORY,
                offset,
                event_id or f"e{offset}",
                connection,
            ],
        )
        self.connection.execute(
            "INSERT INTO embeddings VALUES (?, ?, ?, ?, 'float32', ?, false, ?, ?, ?, 0, ?, ?, NULL, NULL)",
            [
                label,
                MODEL.space,
                record_id,
                model_id,
                len(row),
                stored_vector(row),
                namespace,
                DERIVED,
                offset,
                f"e{offset}",
            ],
        )
        self.offset += 1
        if to is not None:
            to.apply([(label, namespace, text)], [VectorEntry(label, row, MODEL.space, model_id)], self.positions)
        return label

    def relate(self, first: str, second: str, *, namespace: str = "a") -> None:
        self.connection.execute(
            "INSERT INTO relations VALUES (?, 'LED_TO', ?, ?, NULL, ?, '', ?, ?, 0, 0, '')",
            [f"{first}-{second}", first, second, START, namespace, DERIVED],
        )

    def merge(self, record_id: str, into: str, *, namespace: str = "a") -> None:
        self.connection.execute(
            "INSERT INTO merges VALUES (?, ?, 'Insight', NULL, 'cosine', .9, 2, ?, ?, ?, 0, 0, '')",
            [record_id, into, START, namespace, DERIVED],
        )


def unit_rows(count: int, dim: int = MODEL.dim, *, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def exact(rows: np.ndarray, labels: Sequence[int] | np.ndarray, query: np.ndarray, k: int) -> list[int]:
    """The definition of nearest."""
    return [int(labels[row]) for row in np.argsort(-(rows @ query), kind="stable")[:k]]

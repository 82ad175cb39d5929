"""Vectors are kept as bytes, and an analyst still gets the numbers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from storage.database import Database
from storage.migrate import migrate
from storage.vector_codec import read_vector, stored_vector
from storage.writer import Changes, Writer

NOW = datetime(2026, 3, 1, tzinfo=UTC)
VECTOR = np.array([0.0, 1.5, -2.25e-39, 1e-45, 3.4e38, 0.1, -0.333], np.float32)
ABOUT = {
    "model_id": "m",
    "dtype": "float32",
    "dim": len(VECTOR),
    "is_trained": True,
    "namespace": "ns",
    "topic": "t",
    "partition": 0,
}


def test_a_stored_vector_can_be_read_as_numbers() -> None:
    cursor = Database(None).cursor()
    migrate(cursor, NOW)
    [(numbers,)] = cursor.execute("SELECT vector_floats(?)", [stored_vector(VECTOR)]).fetchall()
    assert np.array_equal(np.array(numbers, np.float32), VECTOR)
    assert np.array_equal(read_vector(stored_vector(VECTOR)), VECTOR)


def embedding(number: int, vector: np.ndarray = VECTOR) -> dict[str, Any]:
    named = {"label": number, "space": "s", "record_id": f"r{number}", "offset": number, "event_id": f"e{number}"}
    return {**named, "vector": vector, **ABOUT}


def test_a_row_costs_the_write_ahead_log_its_own_vector_only(tmp_path: Path) -> None:
    database = Database(tmp_path)
    migrate(database.cursor(), NOW)
    writer, log = Writer(database), tmp_path / "thalweg.duckdb.wal"
    vector = np.ones(384, np.float32)
    sizes = []
    for number in range(100):
        before = log.stat().st_size
        writer.commit(Changes(appended={"embeddings": [embedding(number, vector)]}))
        sizes.append(log.stat().st_size - before)
    assert max(sizes) < 2 * len(stored_vector(vector))


def test_the_writer_keeps_no_vectors_in_memory_and_finds_their_rows() -> None:
    database = Database(None)
    migrate(database.cursor(), NOW)
    writer, row = Writer(database), embedding(1)
    key = writer.key_of("embeddings", row)
    writer.commit(Changes(state={"embeddings": {key: row}}, fresh={("embeddings", key)}))
    assert writer.recent("embeddings", key) is None
    [found] = writer.find("embeddings", [key]).values()
    assert found["record_id"] == "r1" and np.array_equal(read_vector(found["vector"]), VECTOR)

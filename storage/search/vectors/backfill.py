"""Opening the indexes of a space from disk, and reading what they lack from the tables."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from storage.search.files.sealed import is_ahead
from storage.search.vectors.vector_index import VectorIndex
from storage.search.vectors.vector_model import VectorModel
from storage.statements import marks
from storage.vector_codec import read_vectors

FETCH_ROWS = 8_192
TOKEN_ROWS = 512
"""Token vectors are some kilobytes a row."""
_TABLES = ("embeddings", "passages")
_OF_MODEL = "WHERE space = ? AND model_id = ? AND dim = ?"


def load_vectors(
    cursor: duckdb.DuckDBPyConnection, directory: Path, model: VectorModel, positions: Mapping[str, int]
) -> VectorIndex:
    """The tables' vectors of this model, with the saved graph when it is whole and not ahead of the table."""
    parameters = _parameters(model)
    cursor.execute("BEGIN")  # labels and rows of one snapshot
    try:
        labels = {
            table: cursor.execute(f"SELECT label FROM {table} {_OF_MODEL}", parameters).fetchnumpy()["label"]
            for table in _TABLES
        }
        filled = [table for table in _TABLES if len(labels[table])]
        chunks = chain.from_iterable(_read_vectors(cursor, table, parameters) for table in filled)
        usable = None if is_ahead(directory, positions) else directory
        found = np.concatenate(list(labels.values())).astype(np.int64)
        return VectorIndex.load(usable, model, found, chunks, directory)
    finally:
        cursor.execute("ROLLBACK")


def catch_up_vectors(cursor: duckdb.DuckDBPyConnection, index: VectorIndex) -> None:
    """Add every vector of the index's space and model that the tables have."""
    for table in _TABLES:
        for labels, vectors in _read_vectors(cursor, table, _parameters(index.model)):
            index.add(labels, vectors)


def _read_vectors(
    cursor: duckdb.DuckDBPyConnection, table: str, parameters: list[Any]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(labels, rows) a chunk: the whole table as NumPy arrays would need its memory twice."""
    for chunk in _in_chunks(cursor, table, "vector", parameters):
        yield np.asarray(chunk["label"], np.int64), read_vectors(chunk["vector"].tolist())


def token_labels(cursor: duckdb.DuckDBPyConnection, model: VectorModel) -> np.ndarray:
    """Every text and passage of which the tables have this model's token vectors, sorted."""
    select = f"SELECT label FROM {{}} {_OF_MODEL} AND tokens IS NOT NULL"
    found = [cursor.execute(select.format(table), _parameters(model)).fetchnumpy()["label"] for table in _TABLES]
    return np.sort(np.concatenate(found).astype(np.int64))


def read_tokens(
    cursor: duckdb.DuckDBPyConnection, model: VectorModel, labels: np.ndarray
) -> Iterator[list[tuple[int, str]]]:
    """(label, packed token vectors) of (n,) sorted labels, by chunks from the first of their rows on."""
    for table in _TABLES:
        first = cursor.execute(
            f"SELECT min(rowid) FROM {table} WHERE label IN (SELECT unnest(?::BIGINT[]))", [labels.tolist()]
        ).fetchone()
        if first is None or first[0] is None:
            continue
        for chunk in _in_chunks(cursor, table, "tokens", _parameters(model), int(first[0]), TOKEN_ROWS):
            present = np.asarray(chunk["label"], np.int64)
            chosen = np.flatnonzero(np.isin(present, labels))
            if len(chosen):
                yield list(zip(present[chosen].tolist(), chunk["tokens"][chosen].tolist(), strict=True))


def read_token_samples(
    cursor: duckdb.DuckDBPyConnection, model: VectorModel, labels: np.ndarray
) -> list[tuple[int, bytes]]:
    """(label, token vectors as they are stored) of a few labels."""
    rows = [
        row
        for table in _TABLES
        if len(labels)
        for row in cursor.execute(
            f"SELECT label, tokens FROM {table} {_OF_MODEL} AND label IN ({marks(labels)})",
            [*_parameters(model), *labels.tolist()],
        ).fetchall()
    ]
    return [(label, base64.b64decode(packed)) for label, packed in rows if packed is not None]


def _parameters(model: VectorModel) -> list[Any]:
    return [model.space, model.model_id, model.dim]


def _in_chunks(
    cursor: duckdb.DuckDBPyConnection,
    table: str,
    column: str,
    parameters: list[Any],
    first: int = 0,
    rows: int = FETCH_ROWS,
) -> Iterator[dict[str, np.ndarray]]:
    """`label` and one column of a model's rows from the rowid `first` on, where the column has a value."""
    condition = f"{_OF_MODEL} AND {column} IS NOT NULL AND rowid >= ? AND rowid < ?"
    last = cursor.execute(f"SELECT coalesce(max(rowid), -1) FROM {table}").fetchone()
    for start in range(first, int(last[0]) + 1 if last else 0, rows):
        chunk = cursor.execute(
            f"SELECT label, {column} FROM {table} {condition}", [*parameters, start, start + rows]
        ).fetchnumpy()
        if len(chunk["label"]):
            yield chunk

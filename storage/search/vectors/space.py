"""What the engine holds of one model: its vectors and its token vectors, from the tables and from what is applied."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from storage.search.backfill import read_token_samples, read_tokens, token_labels
from storage.search.entries import VectorEntry
from storage.search.vectors.token_store import TokenStore
from storage.search.vectors.vector_index import VectorIndex
from streams.failpoints import hit

_SAMPLE = 16
_AT_ONCE = 32
"""So many are added before a writer that waits has its turn."""


@dataclass(frozen=True, slots=True)
class Space:
    """One model's vectors and token vectors. One thread applies; any number search."""

    vectors: VectorIndex
    tokens: TokenStore

    @classmethod
    def of(cls, vectors: VectorIndex, directory: Path) -> Space:
        """`directory` holds the token vectors of each model in a file of its own."""
        model = vectors.model
        name = hashlib.blake2b(f"{model.space}\0{model.model_id}".encode(), digest_size=8).hexdigest()
        return cls(vectors, TokenStore(directory / f"{name}.tokens", model.space, model.model_id))

    def apply(self, entries: Sequence[VectorEntry]) -> None:
        """Make vectors of this model findable."""
        self.tokens.add((entry.label, entry.tokens) for entry in entries if entry.tokens)
        self.vectors.add([entry.label for entry in entries], np.stack([entry.vector for entry in entries]))

    def remove(self, labels: Sequence[int]) -> None:
        self.vectors.remove(labels)
        self.tokens.remove(labels)

    def missing_tokens(self, cursor: duckdb.DuckDBPyConnection) -> np.ndarray:
        """Labels whose token vectors the table has and the file lacks. What the table does not have leaves the file."""
        stored, held = token_labels(cursor, self.vectors.model), self.tokens.labels()
        sample = np.intersect1d(stored, held, assume_unique=True)
        sample = sample[:: max(1, len(sample) // _SAMPLE)][:_SAMPLE]
        kept = read_token_samples(cursor, self.vectors.model, sample)
        if any(self.tokens.packed_body(label) != body for label, body in kept):
            self.tokens.clear()  # the same labels, other texts: the file belongs to another log
        elif len(foreign := np.setdiff1d(held, stored, assume_unique=True)):
            self.tokens.remove(foreign.tolist())
        return np.setdiff1d(stored, self.tokens.labels(), assume_unique=True)

    def fill_tokens(
        self,
        cursor: duckdb.DuckDBPyConnection,
        missing: np.ndarray,
        stopped: Callable[[], bool] = lambda: False,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        """Add the token vectors of these labels from the table; returns early when `stopped` says so. `pause` is called after every
        millisecond of work."""
        for chunk in read_tokens(cursor, self.vectors.model, missing):
            for start in range(0, len(chunk), _AT_ONCE):
                if stopped():
                    return
                self.tokens.add(chunk[start : start + _AT_ONCE])
                pause()
            hit("mid_index_rebuild")

    def close(self) -> None:
        self.tokens.close()


def delete_others(directory: Path, spaces: Sequence[Space]) -> None:
    """Delete the files of models that are not held any more."""
    kept = {space.tokens.path for space in spaces}
    for path in directory.glob("*.tokens"):
        if path not in kept:
            path.unlink(missing_ok=True)

"""The stored form of vectors: the bytes of little-endian float32.

With `FLOAT[]` each new row wrote the vectors of all rows since the last checkpoint to the write-ahead log again
(docs/adr/0006).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def stored_vector(vector: np.ndarray | Sequence[float]) -> bytes:
    """Encode a vector for its column."""
    return np.ascontiguousarray(vector, "<f4").tobytes()


def read_vector(stored: bytes) -> np.ndarray:
    """(dim,) float32, the inverse of `stored_vector`; read-only."""
    return np.frombuffer(stored, "<f4")


def read_vectors(stored: Sequence[bytes]) -> np.ndarray:
    """(n, dim) float32 of n vectors of one dimension, n at least 1; read-only."""
    return np.frombuffer(b"".join(stored), "<f4").reshape(len(stored), -1)

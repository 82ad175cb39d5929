"""Vectors as the store keeps them: the bytes of little-endian float32, so that a row costs the bytes of its own vector.

As `FLOAT[]` the write-ahead log took the vectors of all rows since the last checkpoint with each new one (docs/adr/0006).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def stored_vector(vector: np.ndarray | Sequence[float]) -> bytes:
    """A vector as its column takes it."""
    return np.ascontiguousarray(vector, "<f4").tobytes()


def read_vector(stored: bytes) -> np.ndarray:
    """(dim,) float32 of what `stored_vector` made; read-only."""
    return np.frombuffer(stored, "<f4")


def read_vectors(stored: Sequence[bytes]) -> np.ndarray:
    """(n, dim) float32 of n vectors of one dimension, n at least 1; read-only."""
    return np.frombuffer(b"".join(stored), "<f4").reshape(len(stored), -1)

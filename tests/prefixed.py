"""A model that reads queries and what is stored with words of its own before them, and keeps what it was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from processors.embedding.hashing import HashingEmbedder


class Prefixed(HashingEmbedder):
    """`read` holds every text as the model got it."""

    def __init__(self) -> None:
        super().__init__()
        self.info = replace(self.info, query_prefix="query: ", document_prefix="passage: ")
        self.read: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.read += texts
        return super().encode(texts)

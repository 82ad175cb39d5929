"""A deterministic embedder without a model: texts with common words or letters get near vectors.

Feature hashing (Weinberger et al. 2009): each word, word pair and letter trigram adds ±weight to one of 384 numbers
(`hashing-N`: of N). It carries no learned meaning (`trained=False`) and serves tests and `--embedder hashing`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from processors.embedding.model import ModelInfo

DIM = 384
_WORD = re.compile(r"\w+")
_WORD_WEIGHT, _PAIR_WEIGHT, _TRIGRAM_WEIGHT = 1.0, 0.5, 0.35


class HashingEmbedder:
    """See the module's docstring. Its state never changes, so that it may be shared by threads."""

    def __init__(self, dim: int = DIM) -> None:
        self.info = ModelInfo(
            space=f"text/hashing-{dim}",
            model_id=f"hashing-{dim}",
            revision="1",
            dim=dim,
            dtype="float32",
            max_tokens=1_000_000,
            pooling="sum",
            provider="numpy",
            trained=False,
        )

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        dim = self.info.dim
        rows = np.zeros((len(texts), dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature, weight in _features(text):
                number = zlib.crc32(feature.encode(errors="replace"))
                row[number % dim] += weight if zlib.adler32(feature.encode(errors="replace")) & 1 else -weight
            length = float(np.linalg.norm(row))
            if length == 0.0:  # nothing to hash, or everything cancelled
                row[zlib.crc32(text.encode(errors="replace")) % dim] = length = 1.0
            row /= length
        return rows


def _features(text: str) -> Iterator[tuple[str, float]]:
    words = _WORD.findall(text.casefold())
    for word in words:
        yield f"w {word}", _WORD_WEIGHT
        padded = f"<{word}>"
        for start in range(len(padded) - 2):
            yield f"t {padded[start : start + 3]}", _TRIGRAM_WEIGHT
    for first, second in pairwise(words):
        yield f"p {first} {second}", _PAIR_WEIGHT

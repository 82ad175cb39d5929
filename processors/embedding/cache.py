"""An embedder that keeps what it said last: a text that is compared before it is stored is read by the model once, not twice."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from processors.embedding.model import Embedder, Encoded, ModelInfo, TokenEmbedder
from storage.search.vectors.token_vectors import Tokens

MAX_TEXTS = 64
"""Texts that somebody asked for alone. What comes in a batch is read for the log, and asked for once."""


class _CachedText(NamedTuple):
    vector: np.ndarray
    tokens: Tokens


class CachingEmbedder:
    """The embedder, which is not asked again for a text that it was lately asked for alone. Thread-safe."""

    def __init__(self, inner: TokenEmbedder) -> None:
        self._inner = inner
        self._said: dict[str, _CachedText] = {}
        self._lock = threading.Lock()

    @property
    def info(self) -> ModelInfo:
        return self._inner.info

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """As the embedder's; of a single text the tokens are kept too, for whoever stores it."""
        return self.encode_tokens(texts).vectors if len(texts) == 1 else self._inner.encode(texts)

    def encode_tokens(self, texts: Sequence[str]) -> Encoded:
        """As the embedder's."""
        with self._lock:
            said = {text: self._said[text] for text in texts if text in self._said}
        unknown = [text for text in texts if text not in said]
        if unknown:
            new = self._inner.encode_tokens(unknown)
            said |= {
                text: _CachedText(vector, tokens)
                for text, vector, tokens in zip(unknown, new.vectors, new.tokens, strict=True)
            }
        if unknown and len(texts) == 1:
            self._keep(texts[0], said[texts[0]])
        vectors = np.stack([said[text].vector for text in texts]) if texts else np.empty((0, self.info.dim), np.float32)
        return Encoded(vectors, [said[text].tokens for text in texts])

    def _keep(self, text: str, said: _CachedText) -> None:
        with self._lock:
            self._said[text] = said
            for oldest in list(self._said)[:-MAX_TEXTS]:
                del self._said[oldest]


def with_cache(embedder: Embedder | None) -> Embedder | None:
    """The embedder with a memory where it gives tokens, as a model that runs here does; any other as it is."""
    return CachingEmbedder(embedder) if isinstance(embedder, TokenEmbedder) else embedder

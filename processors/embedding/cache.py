"""A cache of recent vectors: a text that is compared before it is stored goes through the model once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from processors.embedding.model import Embedder, Encoded, ModelInfo, Pieces, TokenEmbedder
from storage.search.vectors.token_vectors import Tokens

MAX_TEXTS = 64
"""Texts in the cache. Only texts encoded alone enter it: those of a batch are encoded for the log, once."""


class _CachedText(NamedTuple):
    vector: np.ndarray
    tokens: Tokens


class CachingEmbedder:
    """An embedder with a cache of the texts that it encoded alone. Thread-safe."""

    def __init__(self, inner: TokenEmbedder) -> None:
        self._inner = inner
        self._entries: dict[str, _CachedText] = {}
        self._lock = threading.Lock()

    @property
    def info(self) -> ModelInfo:
        return self._inner.info

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """As the embedder's; of a single text the tokens are cached too, for the stage that stores it."""
        return self.encode_tokens(texts).vectors if len(texts) == 1 else self._inner.encode(texts)

    def encode_tokens(self, texts: Sequence[str]) -> Encoded:
        """As the embedder's."""
        with self._lock:
            known = {text: self._entries[text] for text in texts if text in self._entries}
        unknown = [text for text in texts if text not in known]
        if unknown:
            new = self._inner.encode_tokens(unknown)
            known |= {
                text: _CachedText(vector, tokens)
                for text, vector, tokens in zip(unknown, new.vectors, new.tokens, strict=True)
            }
        if unknown and len(texts) == 1:
            self._keep(texts[0], known[texts[0]])
        rows = [known[text].vector for text in texts]
        vectors = np.stack(rows) if rows else np.empty((0, self.info.dim), np.float32)
        return Encoded(vectors, [known[text].tokens for text in texts])

    def piece_starts(self, texts: Sequence[str]) -> list[Pieces]:
        """As the embedder's."""
        return self._inner.piece_starts(texts)

    def _keep(self, text: str, entry: _CachedText) -> None:
        with self._lock:
            self._entries[text] = entry
            for oldest in list(self._entries)[:-MAX_TEXTS]:
                del self._entries[oldest]


def with_cache(embedder: Embedder | None) -> Embedder | None:
    """The embedder with a cache where it gives tokens, as a model that runs here does; any other as it is."""
    return CachingEmbedder(embedder) if isinstance(embedder, TokenEmbedder) else embedder

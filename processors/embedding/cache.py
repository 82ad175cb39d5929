"""A cache of recent vectors: a text that is compared before it is stored goes through the model once.

The stage often asks for a text while the door has it encoded: it waits for that.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
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
        self._encoding: dict[str, Future[_CachedText]] = {}
        """The texts that are being encoded alone."""
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
            awaited = {text: self._encoding[text] for text in texts if text not in known and text in self._encoding}
            unknown = [text for text in texts if text not in known and text not in awaited]
            is_alone = len(texts) == len(unknown) == 1
            if is_alone:
                self._encoding[texts[0]] = Future()
        if is_alone:
            known[texts[0]] = self._encoded_alone(texts[0])
        elif unknown:
            known |= self._encoded(unknown)
        known |= {text: self._result(text, future) for text, future in awaited.items()}
        rows = [known[text].vector for text in texts]
        vectors = np.stack(rows) if rows else np.empty((0, self.info.dim), np.float32)
        return Encoded(vectors, [known[text].tokens for text in texts])

    def _encoded(self, texts: Sequence[str]) -> dict[str, _CachedText]:
        new = self._inner.encode_tokens(texts)
        return {
            text: _CachedText(vector, tokens)
            for text, vector, tokens in zip(texts, new.vectors, new.tokens, strict=True)
        }

    def _encoded_alone(self, text: str) -> _CachedText:
        """Encode a text that is named in `_encoding`, for all that wait for it."""
        try:
            entry = self._encoded([text])[text]
        except BaseException as error:
            with self._lock:
                self._encoding.pop(text).set_exception(error)
            raise
        with self._lock:
            self._entries[text] = entry
            for oldest in list(self._entries)[:-MAX_TEXTS]:
                del self._entries[oldest]
            self._encoding.pop(text).set_result(entry)
        return entry

    def _result(self, text: str, encoding: Future[_CachedText]) -> _CachedText:
        """What another thread has made of a text; where that failed, this one tries."""
        return encoding.result() if encoding.exception() is None else self._encoded([text])[text]

    def piece_starts(self, texts: Sequence[str]) -> list[Pieces]:
        """As the embedder's."""
        return self._inner.piece_starts(texts)


def with_cache(embedder: Embedder | None) -> Embedder | None:
    """The embedder with a cache where it gives tokens, as a model that runs here does; any other as it is."""
    return CachingEmbedder(embedder) if isinstance(embedder, TokenEmbedder) else embedder

"""Embeddings by a provider (`openai:MODEL`), when the settings name one.

Three requests a second, tried again when the provider is busy.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from processors.embedding.model import REMOTE, ModelInfo
from processors.embedding.providers import ProviderClient
from streams.errors import EmbedderUnavailable, KeyMissing

PER_SECOND = 3.0
MAX_TEXTS = 256
"""Texts in one request."""
MAX_CHARS = 24_000
"""Characters of a text that are sent: the models read 8,191 tokens and refuse more."""
DIMENSIONS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}


def load_api_embedder(name: str, environ: Mapping[str, str]) -> ApiEmbedder:
    """`openai:text-embedding-3-small` and its like. Raises EmbedderUnavailable for a model that is not known."""
    provider, _, model = name.partition(":")
    if provider != "openai" or model not in DIMENSIONS:
        raise EmbedderUnavailable(
            f"There is no embedder {name!r}; "
            f"accepted of providers: {', '.join(f'openai:{each}' for each in DIMENSIONS)}."
        )
    return ApiEmbedder(model, ProviderClient.configured(provider, PER_SECOND, environ))


class ApiEmbedder:
    """An Embedder over a provider's model.

    Without a key each call raises KeyMissing; what is stored meanwhile is embedded once there is one.
    """

    def __init__(self, model: str, client: ProviderClient) -> None:
        self._model, self._client = model, client
        self._last = threading.local()
        self.info = ModelInfo(
            space=f"text/openai:{model}",
            model_id=f"openai:{model}",
            revision="1",
            dim=DIMENSIONS[model],
            dtype="float32",
            max_tokens=8191,
            pooling="provider",
            provider=REMOTE,
            trained=True,
        )

    @property
    def missing_key(self) -> str | None:
        """A sentence, when nothing can be embedded for want of a key."""
        return (
            None
            if self._client.key
            else f"The embedder {self.info.model_id} needs a key in {self._client.provider.key_variable}."
        )

    @property
    def tries(self) -> int:
        """The most attempts that one request of this thread's last call took."""
        return int(getattr(self._last, "tries", 1))

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(len(texts), dim) float32 rows of length 1, in the order given. Raises EmbedderUnavailable."""
        if self.missing_key is not None:
            raise KeyMissing(self.missing_key)
        self._last.tries = 1
        rows = [self._rows(texts[start : start + MAX_TEXTS]) for start in range(0, len(texts), MAX_TEXTS)]
        return np.concatenate(rows) if rows else np.empty((0, self.info.dim), np.float32)

    def _rows(self, texts: Sequence[str]) -> np.ndarray:
        asked = self._client.ask("/embeddings", {"model": self._model, "input": [text[:MAX_CHARS] for text in texts]})
        self._last.tries = max(self.tries, asked.tries)
        made = _vectors(asked.answer)
        if made is None or made.shape != (len(texts), self.info.dim) or not np.isfinite(made).all():
            raise EmbedderUnavailable(f"The provider of {self.info.model_id} gave no embedding in {asked.tries} tries.")
        rows: np.ndarray = (made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)).astype(np.float32)
        return rows


def _vectors(answer: Any) -> np.ndarray | None:
    """The vectors in the order of the texts; None when the answer has none."""
    try:
        return np.array(
            [each["embedding"] for each in sorted(answer["data"], key=lambda each: int(each["index"]))], np.float64
        )
    except (KeyError, TypeError, ValueError):
        return None

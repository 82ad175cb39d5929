"""What an embedder is: texts in, unit vectors out, and the name of the model under which they may be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

MAX_DIM = 8192
"""What the log takes of a vector."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Identity of a model. Vectors are comparable only within one `space`, which names the model.

    `revision` is the start of the weights' sha256; `trained` is False for vectors that carry no learned meaning.
    The prefixes are what the model was trained to read before a query and before a text that is stored.
    """

    space: str
    model_id: str
    revision: str
    dim: int
    dtype: str
    max_tokens: int
    pooling: str
    provider: str
    trained: bool
    query_prefix: str = ""
    document_prefix: str = ""


class Embedder(Protocol):
    """Synchronous and thread-safe; call it off the event loop."""

    @property
    def info(self) -> ModelInfo: ...

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(len(texts), dim) float32 rows of length 1, in the order given. Raises EmbedderUnavailable."""
        ...


def encode_query(embedder: Embedder, text: str) -> np.ndarray:
    """(dim,) unit vector of what somebody asks for."""
    vector: np.ndarray = embedder.encode([embedder.info.query_prefix + text])[0]
    return vector


def encode_documents(embedder: Embedder, texts: Sequence[str]) -> np.ndarray:
    """(len(texts), dim) unit rows of what is stored."""
    return embedder.encode([embedder.info.document_prefix + text for text in texts])

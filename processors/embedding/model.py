"""What an embedder is: it makes unit vectors of texts, comparable within the space of its model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from storage.search.question import matter_of
from storage.search.vectors.token_vectors import Tokens

REMOTE = "openai"
"""The provider of models that are asked over the network."""
MAX_DIM = 8192
"""The longest vector that the log takes."""


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

    @property
    def is_remote(self) -> bool:
        """Whether it is asked over the network, which takes long and may cost money."""
        return self.provider == REMOTE


class Embedder(Protocol):
    """Synchronous and thread-safe; call it off the event loop."""

    @property
    def info(self) -> ModelInfo: ...

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(len(texts), dim) float32 rows of length 1, in the order given. Raises EmbedderUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """One forward pass: `vectors` as from `encode`, and the reduced token vectors of each text."""

    vectors: np.ndarray
    tokens: list[Tokens]


@dataclass(frozen=True, slots=True)
class Pieces:
    """The word pieces of a text: (n,) `ids` uint16, and the (n,) characters at which they start."""

    ids: np.ndarray
    starts: np.ndarray


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder that also gives its token vectors, for late interaction."""

    def encode_tokens(self, texts: Sequence[str]) -> Encoded:
        """Vectors and tokens in the order given. A text longer than the window is read in windows, whole.

        Raises EmbedderUnavailable.
        """
        ...

    def piece_starts(self, texts: Sequence[str]) -> list[Pieces]:
        """Of each text the pieces whose vectors `pack` keeps. The model does not run: 0.05 ms a sentence."""
        ...


@runtime_checkable
class RetryingEmbedder(Embedder, Protocol):
    """An embedder that asks a provider, again when there is no answer."""

    @property
    def tries(self) -> int:
        """How often it asked for what this thread's last call gave."""
        ...


def encode_query(embedder: Embedder, text: str) -> tuple[np.ndarray, Tokens | None]:
    """The unit vector of a query's matter, and its tokens when the embedder gives them. Raises EmbedderUnavailable."""
    asked = embedder.info.query_prefix + matter_of(text)
    if not isinstance(embedder, TokenEmbedder):
        return embedder.encode([asked])[0], None
    encoded = embedder.encode_tokens([asked])
    return encoded.vectors[0], encoded.tokens[0] if len(encoded.tokens[0].ids) else None


def encode_documents(embedder: Embedder, texts: Sequence[str]) -> np.ndarray:
    """(len(texts), dim) unit rows of what is stored."""
    return embedder.encode([embedder.info.document_prefix + text for text in texts])

"""The models of single views: dense, sparse, multi-vector or CLIP, each in its own form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from processors.embedding.checkpoint import Kind
from processors.embedding.model import Embedder, ModelInfo, encode_documents
from storage.search.question import matter_of
from storage.search.records.passages import EMBEDDED_PASSAGES, TOKEN_PASSAGES, WINDOW, split_passages
from storage.search.vectors.model_vector import ModelVector, join_passages, rows_vector
from streams.errors import EmbedderUnavailable

KINDS: Mapping[int, Kind] = MappingProxyType(
    {
        1: "dense",
        5: "dense",
        6: "sparse",
        7: "dense",
        8: "dense",
        10: "clip",
        11: "dense",
        12: "multi-vector",
        13: "sparse",
    }
)
"""The views that a model can make, and of which kind it must be."""
FULL_WINDOW, LEAST_WINDOW = 256, 16
"""A window of FULL_WINDOW word pieces holds a passage of WINDOW estimated ones, others in proportion."""
SLICE = 16
"""Passages that are encoded at once."""


@runtime_checkable
class FormEncoder(Embedder, Protocol):
    """An embedder of a checkpoint, which also gives what it makes in its own form."""

    @property
    def kind(self) -> Kind: ...
    @property
    def form_dim(self) -> int:
        """How many numbers a row has, or how many terms there are."""
        ...

    def encode_forms(self, texts: Sequence[str], *, are_queries: bool) -> list[ModelVector]:
        """Of each text its vectors. Raises EmbedderUnavailable."""
        ...

    def encode_picture(self, data: bytes) -> ModelVector:
        """Of an image file its vector, by a CLIP model. Raises ValueError of an unreadable one, EmbedderUnavailable."""
        ...


class ViewEncoder:
    """The model of one view. Thread-safe, as its embedder is."""

    def __init__(self, view: int, embedder: Embedder) -> None:
        """Raises EmbedderUnavailable for a model that cannot make this view, or that nobody trained."""
        self._embedder = embedder
        dim = embedder.form_dim if isinstance(embedder, FormEncoder) else embedder.info.dim
        self.info: ModelInfo = replace(embedder.info, dim=dim)
        self.kind: Kind = KINDS[view]
        self._window = max(LEAST_WINDOW, self.info.max_tokens * WINDOW // FULL_WINDOW or WINDOW)
        name, wanted = self.info.model_id, self.kind
        kind = embedder.kind if isinstance(embedder, FormEncoder) else "dense"
        if not self.info.trained:
            raise EmbedderUnavailable(f"{name!r} is untrained, so E{view} would say nothing; choose a trained model.")
        if self.info.is_remote:
            raise EmbedderUnavailable(f"{name!r} is asked over the network; a view needs a model of this machine.")
        if kind != wanted:
            raise EmbedderUnavailable(f"E{view} needs a {wanted} model; {name!r} is a {kind} one.")

    def encode_query(self, text: str) -> ModelVector:
        """What is asked. Raises EmbedderUnavailable."""
        asked = matter_of(text)
        if isinstance(self._embedder, FormEncoder):
            return self._embedder.encode_forms([asked], are_queries=True)[0]
        return rows_vector(self._embedder.encode([self.info.query_prefix + asked]))

    def encode_stored(self, texts: Sequence[str]) -> list[ModelVector]:
        """What is stored, a text each, of one longer than the window its passages. Raises EmbedderUnavailable."""
        passages = [self._passages(text) for text in texts]
        parts = [part for some in passages for part in some]
        made: list[ModelVector] = []
        for start in range(0, len(parts), SLICE):
            made += self._encode(parts[start : start + SLICE])
        vectors = iter(made)
        return [join_passages(list(islice(vectors, len(some)))) for some in passages]

    def _passages(self, text: str) -> list[str]:
        most = TOKEN_PASSAGES if self.kind == "multi-vector" else EMBEDDED_PASSAGES
        cut = split_passages(text, self._window)[:most]
        return [text[each.start : each.end] for each in cut] or [text]

    def _encode(self, texts: Sequence[str]) -> list[ModelVector]:
        if isinstance(self._embedder, FormEncoder):
            return self._embedder.encode_forms(texts, are_queries=False)
        return [rows_vector(row) for row in encode_documents(self._embedder, texts)]

    @property
    def reads_images(self) -> bool:
        """Whether images are encoded by their pixels."""
        return self.kind == "clip"

    def encode_picture(self, data: bytes) -> ModelVector | None:
        """Of an image file the vector of its pixels; None of an unreadable one. Raises EmbedderUnavailable."""
        assert isinstance(self._embedder, FormEncoder)
        try:
            return self._embedder.encode_picture(data)
        except ValueError:
            return None

"""The models of single views: dense, sparse, multi-vector or CLIP, each in its own form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from processors.embedding.checkpoint import Kind
from processors.embedding.model import Embedder, ModelInfo, encode_documents
from storage.search.question import matter_of
from storage.search.vectors.model_vector import ModelVector, rows_vector
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


class ViewEncoder:
    """The model of one view. Thread-safe, as its embedder is."""

    def __init__(self, view: int, embedder: Embedder) -> None:
        """Raises EmbedderUnavailable for a model that cannot make this view, or that nobody trained."""
        self._embedder = embedder
        dim = embedder.form_dim if isinstance(embedder, FormEncoder) else embedder.info.dim
        self.info: ModelInfo = replace(embedder.info, dim=dim)
        name, wanted = self.info.model_id, KINDS[view]
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
        """What is stored, a text each. A model reads of a long text what its window holds.

        Raises EmbedderUnavailable.
        """
        if isinstance(self._embedder, FormEncoder):
            return self._embedder.encode_forms(texts, are_queries=False)
        return [rows_vector(row) for row in encode_documents(self._embedder, texts)]

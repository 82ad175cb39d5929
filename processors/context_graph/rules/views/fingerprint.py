"""A fingerprint: all that the thirteen views compare of one text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from processors.context_graph.rules.views.characters import character_bits
from processors.context_graph.rules.views.code import code_features
from processors.context_graph.rules.views.lexical import EVEN, Rarity, Terms, pieces_of, stems_as_pieces, terms_of
from processors.context_graph.rules.views.multimodal import kind_features
from processors.context_graph.rules.views.pools import Pools, pools_of
from processors.context_graph.rules.views.spans import NO_SPANS, MarkedSpans, flags_of, spans_of
from processors.context_graph.rules.views.sparse import Sparse
from processors.context_graph.rules.views.times import Moment
from storage.search.vectors.model_vector import ModelVector
from storage.search.vectors.token_vectors import unit

MAX_CHARS = 32_768
"""What of a text the views without a model read; the model's vector is of the whole text."""
MAX_TOKENS = 2048
"""This many token vectors of a text are compared at most: its first passages."""
NO_MODELS: Mapping[int, ModelVector] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """What follows from the text and its modality alone: E7, E9, E13, half of E10, and the marked spans."""

    terms: Terms
    code: Sparse
    bits: np.ndarray
    kind: np.ndarray
    spans: MarkedSpans


@dataclass(frozen=True, slots=True)
class TokenFeatures:
    """(n,) word-piece ids, their (n, WIDTH) int8 rows, and the pools of E5 and E11."""

    ids: np.ndarray
    codes: np.ndarray
    pools: Pools | None


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One text as the views compare it. `vector`: (dim,) float32 of length 1, None where no model made one.

    `neighbours`: the unit mean of the vectors of the nearest memories, None for one that stands alone. `tokens`: None
    where the model gives none. `rarity`: how rare words are; the query's counts. `memory_id`: None for a text
    that is not stored. `of_models`: what models of their own make of it, by view.
    """

    moment: Moment
    features: TextFeatures
    pieces: Sparse
    vector: np.ndarray | None = None
    neighbours: np.ndarray | None = None
    tokens: TokenFeatures | None = None
    rarity: Rarity = EVEN
    memory_id: str | None = None
    of_models: Mapping[int, ModelVector] = field(default_factory=lambda: NO_MODELS)

    @property
    def codes(self) -> np.ndarray | None:
        """(n, WIDTH) int8 token vectors, None where the model gives none."""
        return None if self.tokens is None else self.tokens.codes

    @property
    def pools(self) -> Pools | None:
        """The token pools of E5 and E11, None without tokens."""
        return None if self.tokens is None else self.tokens.pools

    @property
    def graph_vector(self) -> np.ndarray | None:
        """E8: half the text's vector and half its neighbours'; the vector of one that stands alone."""
        if self.vector is None or self.neighbours is None:
            return self.vector
        vector: np.ndarray = unit(0.5 * self.vector + 0.5 * self.neighbours)
        return vector


def text_features(text: str, modality: str = "text") -> TextFeatures:
    """What follows from the first MAX_CHARS characters of a text; 0.3 ms for 24 words."""
    read = text[:MAX_CHARS].encode(errors="replace").decode()  # half a character has no bytes
    return TextFeatures(
        terms_of(read), code_features(read), character_bits(read), kind_features(read, modality), spans_of(read)
    )


def token_features(
    ids: np.ndarray, codes: np.ndarray, starts: np.ndarray | None, spans: MarkedSpans = NO_SPANS
) -> TokenFeatures:
    """What follows from (n,) word-piece ids and their (n, WIDTH) int8 rows.

    `starts`: (n,) the character of the text at which each token begins, or None: then no spans are marked.
    """
    ids, codes = ids[:MAX_TOKENS], codes[:MAX_TOKENS]
    flags = None if starts is None else flags_of(spans, starts[: len(ids)])
    rows = unit(codes.astype(np.float32))
    return TokenFeatures(ids, codes, pools_of(rows, flags, spans.asked))


def fingerprint(
    features: TextFeatures,
    moment: Moment,
    *,
    vector: np.ndarray | None = None,
    neighbours: np.ndarray | None = None,
    tokens: TokenFeatures | None = None,
    rarity: Rarity = EVEN,
    memory_id: str | None = None,
    of_models: Mapping[int, ModelVector] = NO_MODELS,
    pieces: Sparse | None = None,
) -> Fingerprint:
    """The fingerprint of one text of its parts. `pieces`: of its tokens, from a caller that has them."""
    if pieces is None:
        pieces = pieces_of(tokens.ids) if tokens is not None else stems_as_pieces(features.terms)
    return Fingerprint(moment, features, pieces, vector, neighbours, tokens, rarity, memory_id, of_models)

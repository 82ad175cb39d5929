"""The alignments of a text with memories: how near each of thirteen views finds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from processors.context_graph.rules.views.catalogue import COUNT
from processors.context_graph.rules.views.characters import character_alignments
from processors.context_graph.rules.views.code import code_alignments
from processors.context_graph.rules.views.fingerprint import Fingerprint
from processors.context_graph.rules.views.late import token_alignments
from processors.context_graph.rules.views.lexical import keyword_alignments, piece_alignments
from processors.context_graph.rules.views.multimodal import multimodal_alignments
from processors.context_graph.rules.views.pools import causal_alignments, entity_alignments
from processors.context_graph.rules.views.times import periodic_alignments, positional_alignments, recent_alignments
from storage.search.vectors.model_vector import similarities

Memories = Sequence[Fingerprint]
_Align = Callable[[Fingerprint, Memories], np.ndarray]


def alignments(query: Fingerprint, memories: Memories) -> np.ndarray:
    """(n, 13) float32 in [-1, 1], E1 to E13; NaN where a view is not available for the pair.

    A memory's row does not depend on the others: several at once give what each gives alone.
    """
    found = np.full((len(memories), COUNT), np.nan, np.float32)
    if not memories:
        return found
    for number in range(COUNT):
        found[:, number] = _align(number + 1, query, memories)
    return np.clip(found, -1, 1)


def view_alignments(embedder: int, query: Fingerprint, memories: Memories) -> np.ndarray:
    """(n,) float32: the column of one view, 1 to 13."""
    found: np.ndarray = np.clip(_align(embedder, query, memories), -1, 1).astype(np.float32)
    return found


def _align(embedder: int, query: Fingerprint, memories: Memories) -> np.ndarray:
    """By the view's own model where the query has what it makes, else by what stands in for one."""
    if (asked := query.of_models.get(embedder)) is not None:
        return similarities(asked, [one.of_models.get(embedder) for one in memories])
    return _ALIGN[embedder - 1](query, memories)


def _cosines(query: np.ndarray | None, rows: Sequence[np.ndarray | None]) -> np.ndarray:
    """(n,) products of unit vectors; NaN where either is missing, or of another dimension."""
    found = np.full(len(rows), np.nan, np.float32)
    if query is not None:
        places = [place for place, row in enumerate(rows) if row is not None and row.shape == query.shape]
        if places:
            stored = np.stack([row for row in rows if row is not None and row.shape == query.shape])
            found[places] = np.einsum("nd,d->n", stored, query)  # unlike BLAS the same for one row as for many
    return found


def _semantic(query: Fingerprint, memories: Memories) -> np.ndarray:
    return _cosines(query.vector, [one.vector for one in memories])


def _recent(query: Fingerprint, memories: Memories) -> np.ndarray:
    return recent_alignments(query.moment, np.array([one.moment.at for one in memories]))


def _periodic(query: Fingerprint, memories: Memories) -> np.ndarray:
    return periodic_alignments(query.moment, np.array([one.moment.at for one in memories]))


def _positional(query: Fingerprint, memories: Memories) -> np.ndarray:
    return positional_alignments(query.moment, [one.moment for one in memories])


def _causal(query: Fingerprint, memories: Memories) -> np.ndarray:
    return causal_alignments(query.pools, [one.pools for one in memories])


def _sparse(query: Fingerprint, memories: Memories) -> np.ndarray:
    """E6. A memory that has no tokens yet has stems: they are not compared with word pieces."""
    found = piece_alignments(query.pieces, [one.pieces for one in memories], query.rarity)
    alike = np.array([(one.tokens is None) == (query.tokens is None) for one in memories], bool)
    return np.where(alike, found, np.nan)


def _code(query: Fingerprint, memories: Memories) -> np.ndarray:
    return code_alignments(query.features.code, [one.features.code for one in memories])


def _graph(query: Fingerprint, memories: Memories) -> np.ndarray:
    return _cosines(query.graph_vector, [one.graph_vector for one in memories])


def _characters(query: Fingerprint, memories: Memories) -> np.ndarray:
    return character_alignments(query.features.bits, np.stack([one.features.bits for one in memories]))


def _multimodal(query: Fingerprint, memories: Memories) -> np.ndarray:
    kinds = np.stack([one.features.kind for one in memories])
    return multimodal_alignments(_semantic(query, memories), query.features.kind, kinds)


def _entity(query: Fingerprint, memories: Memories) -> np.ndarray:
    return entity_alignments(query.pools, [one.pools for one in memories])


def _late(query: Fingerprint, memories: Memories) -> np.ndarray:
    asked = query.codes
    return token_alignments(asked, [one.codes for one in memories])


def _keyword(query: Fingerprint, memories: Memories) -> np.ndarray:
    return keyword_alignments(query.features.terms, [one.features.terms for one in memories], query.rarity)


_ALIGN: tuple[_Align, ...] = (
    _semantic,
    _recent,
    _periodic,
    _positional,
    _causal,
    _sparse,
    _code,
    _graph,
    _characters,
    _multimodal,
    _entity,
    _late,
    _keyword,
)

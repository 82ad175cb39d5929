"""The centre of several memories, view by view: what they have in common, as a fingerprint of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from processors.context_graph.rules.views.fingerprint import Fingerprint, TextFeatures, TokenFeatures
from processors.context_graph.rules.views.lexical import MOST_PIECES, Terms
from processors.context_graph.rules.views.pools import Pools
from processors.context_graph.rules.views.spans import NO_SPANS
from processors.context_graph.rules.views.sparse import EMPTY, Sparse, joined, sums
from processors.context_graph.rules.views.times import Moment
from storage.search.vectors.model_vector import ModelVector, mean_vector
from storage.search.vectors.token_vectors import unit

MOST_TERMS = 256


def centre(memories: Sequence[Fingerprint]) -> Fingerprint:
    """The centre of at least one memory.

    Means at length 1 of vectors, pools and sparse weights (the heaviest of these), the majority of bits, the tokens of
    the memory nearest to the mean vector, the mean time and position.
    """
    positions = [one.moment.position for one in memories if one.moment.position is not None]
    moment = Moment(
        float(np.mean([one.moment.at for one in memories])),
        position=round(float(np.mean(positions))) if positions else None,
    )
    bits = np.unpackbits(np.stack([one.features.bits for one in memories]), axis=1)
    lengths = [one.features.terms.length for one in memories]
    features = TextFeatures(
        Terms(_mean([one.features.terms.counts for one in memories], MOST_TERMS), round(float(np.mean(lengths)))),
        _mean([one.features.code for one in memories]),
        np.packbits(bits.sum(0) * 2 > len(memories)),
        _unit_mean([one.features.kind for one in memories]),
        NO_SPANS,
    )
    vectors = [one.vector for one in memories if one.vector is not None]
    vector = _unit_mean(vectors) if vectors else None
    tokens = None if vector is None else _tokens(vector, memories)
    alike = [one.pieces for one in memories if (one.tokens is None) == (tokens is None)]
    pieces = _mean(alike, MOST_PIECES)
    return Fingerprint(moment, features, pieces, vector, None, tokens, of_models=_of_models(memories))


def _of_models(memories: Sequence[Fingerprint]) -> dict[int, ModelVector]:
    """Of each view that a model of its own makes the mean of those that have it."""
    views = sorted({view for one in memories for view in one.of_models})
    means = {view: mean_vector([one.of_models[view] for one in memories if view in one.of_models]) for view in views}
    return {view: mean for view, mean in means.items() if mean is not None}


def _tokens(vector: np.ndarray, memories: Sequence[Fingerprint]) -> TokenFeatures | None:
    """The tokens of the memory nearest to the mean vector, with the mean pools of all."""
    known = [one for one in memories if one.tokens is not None and one.vector is not None]
    if not known:
        return None
    nearest = max(known, key=lambda one: float(_product(one.vector, vector)))
    pools = [one.pools.rows for one in known if one.pools is not None]
    mean = Pools(_unit_mean(pools).astype(np.float32), is_causal=False) if pools else None
    return None if nearest.tokens is None else TokenFeatures(nearest.tokens.ids, nearest.tokens.codes, mean)


def _product(one: np.ndarray | None, other: np.ndarray) -> Any:
    return -1.0 if one is None else one @ other


def _unit_mean(rows: Sequence[np.ndarray]) -> np.ndarray:
    mean: np.ndarray = unit(np.mean(rows, axis=0))
    return mean


def _mean(rows: Sequence[Sparse], most: int | None = None) -> Sparse:
    """The mean of sparse rows; only the `most` heaviest of its numbers."""
    numbers, weights, _ = joined(rows)
    if not len(numbers):
        return EMPTY
    distinct, places = np.unique(numbers, return_inverse=True)
    means = sums(weights, places, len(distinct)) / len(rows)
    if most is not None and len(distinct) > most:
        kept = np.sort(np.argsort(-means, kind="stable")[:most])
        distinct, means = distinct[kept], means[kept]
    return Sparse(distinct, means.astype(np.float32))

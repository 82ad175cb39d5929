"""What each view makes of a text: thirteen vectors, each in its own space and in a common one."""

from __future__ import annotations

import math

import numpy as np

from processors.context_graph.rules.views.fingerprint import Fingerprint
from processors.context_graph.rules.views.lexical import BUCKETS, Rarity, Terms
from processors.context_graph.rules.views.multimodal import TEXT_SHARE
from processors.context_graph.rules.views.pools import Pools
from processors.context_graph.rules.views.spans import CAUSE, EFFECT, HEAD, TAIL
from processors.context_graph.rules.views.sparse import Sparse, sums
from processors.context_graph.rules.views.times import Moment, decay, log_place, order, periodic
from storage.search.vectors.model_vector import ModelVector
from storage.search.vectors.token_vectors import unit

COMMON_DIM = 256
_MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def outputs(one: Fingerprint, at: float) -> tuple[Sparse | None, ...]:
    """E1 to E13 as unit vectors, None where unavailable. E2 is as seen at `at` (seconds since 1970).

    E12 is the mean of its token vectors. Of a stored memory words count alike, unless it was made a query.
    """
    made = _derived(one, at)
    return tuple(_of_model(one.of_models[view]) if view in one.of_models else row for view, row in enumerate(made, 1))


def _of_model(vector: ModelVector) -> Sparse | None:
    """What a model of its own makes; of rows by token their mean."""
    if vector.terms is not None:
        return _unit(Sparse(vector.terms, vector.rows))
    return _dense(vector.rows.mean(axis=0)) if len(vector.rows) else None


def _derived(one: Fingerprint, at: float) -> tuple[Sparse | None, ...]:
    moment, pools = one.moment, one.pools
    multimodal = None
    if one.vector is not None:
        multimodal = np.concatenate([math.sqrt(TEXT_SHARE) * one.vector, math.sqrt(1 - TEXT_SHARE) * one.features.kind])
    bits = 2.0 * np.unpackbits(one.features.bits) - 1
    return (
        _dense(one.vector),
        _dense(decay(np.array([at - moment.at]))[0]),
        _dense(periodic(np.array([moment.at]))[0]),
        _dense(_position(moment)),
        _pair(pools, CAUSE, EFFECT),
        _rare(one.pieces, one.rarity),
        _unit(one.features.code),
        _dense(one.graph_vector),
        _dense(bits),
        _dense(multimodal),
        _pair(pools, HEAD, TAIL),
        None if one.codes is None else _dense(one.codes.astype(np.float32).mean(0)),
        _keywords(one.features.terms, one.rarity),
    )


def common(one: Fingerprint, at: float) -> np.ndarray:
    """(13, 256) float32 unit rows: the outputs by count sketch; zeros where a view is unavailable.

    Inner products are kept on average. E1, E8 and the text of E10 keep theirs with each other, too.
    """
    rows = np.zeros((13, COMMON_DIM))
    for row, output in zip(rows, outputs(one, at), strict=True):
        if output is not None:
            places, signs = _sketch(output.numbers)
            row += np.bincount(places, output.weights * signs, COMMON_DIM)
    return unit(rows).astype(np.float32)


def _sketch(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place below 256 and the sign of each feature, by the finaliser of SplitMix64."""
    mixed = numbers.astype(np.uint64) + np.uint64(1)
    with np.errstate(over="ignore"):
        mixed *= np.uint64(_MIX[0])
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_MIX[1])
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_MIX[2])
    mixed ^= mixed >> np.uint64(31)
    return (mixed & np.uint64(COMMON_DIM - 1)).astype(np.int64), 1.0 - 2.0 * ((mixed >> np.uint64(40)) & np.uint64(1))


def _dense(row: np.ndarray | None) -> Sparse | None:
    return None if row is None else _unit(Sparse(np.arange(len(row)), row.astype(np.float32)))


def _unit(row: Sparse) -> Sparse | None:
    length = float(np.linalg.norm(row.weights))
    return Sparse(row.numbers, (row.weights / length).astype(np.float32)) if length > 0 else None


def _position(moment: Moment) -> np.ndarray | None:
    """The position in the log, then the place in the session; zeros for one that is not known."""
    known = [
        None if moment.position is None else log_place(np.array([float(moment.position)])),
        None if moment.place is None else np.array([float(moment.place)]),
    ]
    if all(place is None for place in known):
        return None
    width = order(np.zeros(1)).shape[1]
    return np.concatenate([np.zeros(width) if place is None else order(place)[0] for place in known])


def _pair(pools: Pools | None, first: int, second: int) -> Sparse | None:
    return None if pools is None else _dense(np.concatenate([pools.rows[first], pools.rows[second]]))


def _rare(pieces: Sparse, rarity: Rarity) -> Sparse | None:
    rare = rarity.pieces
    weights = pieces.weights if rare is None else pieces.weights * rare(pieces.numbers)
    return _unit(Sparse(pieces.numbers, weights))


def _keywords(terms: Terms, rarity: Rarity) -> Sparse | None:
    numbers = terms.counts.numbers % BUCKETS
    rare = rarity.of_terms(terms.counts.numbers)
    distinct = np.unique(numbers)
    weights = sums(np.log1p(terms.counts.weights) * rare, np.searchsorted(distinct, numbers), len(distinct))
    return _unit(Sparse(distinct, weights.astype(np.float32)))

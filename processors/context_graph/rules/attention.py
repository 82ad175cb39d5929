"""What modulators and a broadcast make of the order in which a search has found memories.

At the baseline, and without a broadcast, nothing changes: the order is the engine's. Of the modulators serotonin turns
from the first view towards all of them, dopamine from many sessions towards the few that the best results are of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from processors.context_graph.rules.agreement import SAYING
from processors.context_graph.rules.modulators import DOPAMINE, NORADRENALINE, SEROTONIN, Levels

POOL = 100
"""Results that are put in order anew."""
LEAST_POOL = 10
"""Of fewer results no scores are standardised: they keep the engine's order."""
VIEWS_WEIGHT = 0.5
"""What all views have beside the engine at the highest serotonin."""
SESSION_WEIGHT = 1.5
"""What a session that has all attention adds at the highest dopamine, or takes away at the lowest; in deviations."""
BESIDE_WEIGHT = 2.0
"""What standing right beside the broadcast memory adds, in deviations."""
BESIDE_DECAY = 0.7
"""What is left of it one place further."""
_LEAST_SPREAD = 1e-9


@dataclass(frozen=True)
class Pool:
    """The first results of a search, in the engine's order; arrays of equal length."""

    scores: np.ndarray
    aligned: np.ndarray | None
    """[n, 13], NaN where a view says nothing; None where serotonin needs none"""
    sessions: Sequence[str | None]
    beside: np.ndarray | None = None
    """[n]: how many places each is from the memory that was broadcast, NaN where it is of another session."""


def effective_results(scores: np.ndarray, dopamine: float) -> float:
    """How many results stand behind an answer: the perplexity of the attention that they have."""
    shares = attention(scores, dopamine)
    used = shares[shares > 0]
    return float(np.exp(-(used * np.log(used)).sum()))


def attention(scores: np.ndarray, dopamine: float) -> np.ndarray:
    """[n] shares, sum 1: softmax of the standardised scores, the sharper the more dopamine there is."""
    sharp = np.exp(dopamine * _standard(scores))
    shares: np.ndarray = sharp / sharp.sum()
    return shares


def order(pool: Pool, levels: Levels) -> np.ndarray:
    """The places of the results in their new order, best first."""
    places = np.arange(len(pool.scores))
    if len(places) < LEAST_POOL or (levels.keeps_order and pool.beside is None):
        return places
    scores = _standard(pool.scores)
    scores = _by_views(scores, pool.aligned, levels.serotonin)
    scores = scores + SESSION_WEIGHT * _dopamine(levels) * _session_attention(pool, levels.dopamine)
    if pool.beside is not None:
        scores = scores + BESIDE_WEIGHT * np.nan_to_num(BESIDE_DECAY ** (pool.beside - 1), nan=0.0) * (pool.beside > 0)
    return np.argsort(-scores, kind="stable")


def near_enough(least: float, levels: Levels) -> float:
    """The similarity that is asked for: less of it, the more noradrenaline there is."""
    return least * NORADRENALINE.baseline / max(levels.noradrenaline, NORADRENALINE.baseline)


def _by_views(scores: np.ndarray, aligned: np.ndarray | None, serotonin: float) -> np.ndarray:
    """Below the baseline towards the first view alone, above it towards the mean of all."""
    if aligned is None:
        return scores
    turn = (serotonin - SEROTONIN.baseline) / (SEROTONIN.most - SEROTONIN.baseline)
    if turn < 0:
        return (1 + turn) * scores - turn * _standard(np.nan_to_num(aligned[:, 0], nan=-1.0))
    views = [_standard(aligned[:, view]) for view in SAYING if not np.isnan(aligned[:, view]).any()]
    if not views:
        return scores
    share = VIEWS_WEIGHT * turn
    return (1 - share) * scores + share * np.mean(views, axis=0)


def _dopamine(levels: Levels) -> float:
    """-1 at the lowest level, 0 at the baseline, 1 at the highest."""
    return (levels.dopamine - DOPAMINE.baseline) / (DOPAMINE.most - DOPAMINE.baseline)


def _session_attention(pool: Pool, dopamine: float) -> np.ndarray:
    """[n]: the share of attention that the session of each result has; 0 without a session."""
    shares = attention(pool.scores, dopamine)
    of: dict[str, float] = {}
    for session, share in zip(pool.sessions, shares, strict=True):
        if session is not None:
            of[session] = of.get(session, 0.0) + float(share)
    most = max(of.values(), default=1.0)
    return np.array([0.0 if session is None else of[session] / most for session in pool.sessions])


def _standard(values: np.ndarray) -> np.ndarray:
    """Values less their mean, in deviations; zeros of equal ones."""
    spread = float(np.std(values))
    apart: np.ndarray = values - np.mean(values)
    return apart / spread if spread > _LEAST_SPREAD else np.zeros(len(values))

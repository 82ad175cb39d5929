"""How new a memory is (entropy) and how well it fits (coherence), against the memories before it.

Raw values are cosines of sentence vectors and depend on the model and on the matter. What is published says how unusual
a raw value is among those of the namespace's last memories: entropy above 0.5 is that of the newest fifth, coherence
below 0.5 that of the fifth that fits worst. So a memory leaves the quadrant Open because it is an exception.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

WINDOW = 100
"""Memories before it that a memory is compared with."""
NEIGHBOURS = 10
REFERENCE = 500
"""Last memories whose raw values calibrate that of the next."""
LEAST = 20
"""A raw value against fewer memories is no reference, and fewer references calibrate nothing."""
USUAL_ENTROPY, USUAL_COHERENCE = 0.8, 0.2
"""The percentiles that are published as 0.5."""
FORGETTING = 0.9
"""What a memory's nearness counts for surprise, for each memory since."""
UNSURPRISING = 0.05


class Raw(NamedTuple):
    """What was measured, in [0, 1]."""

    entropy: float
    coherence: float


ALONE = Raw(1.0, 0.5)
"""Of a memory with none before it."""


def measure(vector: np.ndarray, history: np.ndarray) -> Raw:
    """The raw values of a (dim,) unit vector against the (n, dim) of the memories before it.

    Entropy is the mean distance (1 − cosine) of the nearest ten, coherence the mean cosine of these ten with each
    other, 0.5 where they are fewer than two.
    """
    if not len(history):
        return ALONE
    cosines = history @ vector
    count = min(NEIGHBOURS, len(cosines))
    near = np.argpartition(-cosines, count - 1)[:count]
    entropy = 1.0 - float(cosines[near].mean())
    if count < 2:
        return Raw(_unit(entropy), ALONE.coherence)
    among = history[near] @ history[near].T
    coherence = (float(among.sum()) - float(np.trace(among))) / (count * (count - 1))
    return Raw(_unit(entropy), _unit(coherence))


def calibrated(value: float, references: Sequence[float], usual: float) -> float:
    """The percentile of a value among its references, bent so that the percentile `usual` becomes 0.5.

    The value itself while references are fewer than LEAST.
    """
    if len(references) < LEAST:
        return value
    known = np.asarray(references)
    rank = float((known < value).mean() + 0.5 * (known == value).mean())
    return 0.5 * rank / usual if rank <= usual else 0.5 + 0.5 * (rank - usual) / (1.0 - usual)


def surprise(vector: np.ndarray, history: np.ndarray) -> float:
    """The distance of the nearest memory, in [0, 1]; one that lies further back counts as further away.

    `history` is oldest first. 1 without any, 0 below UNSURPRISING.
    """
    if not len(history):
        return 1.0
    ages = np.arange(len(history))[::-1]
    nearest = _unit(float(((1.0 - history @ vector) / FORGETTING**ages).min()))
    return nearest if nearest >= UNSURPRISING else 0.0


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))

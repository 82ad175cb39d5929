"""Agreement of two judges: labels, Cohen's κ and its name, and when a ground truth is accepted."""

from __future__ import annotations

from collections.abc import Sequence

SCALE = (0.0, 0.3, 0.5, 0.7, 1.0)
RELEVANT_ABOVE = 0.5
MIN_KAPPA = 0.70
MAX_SCORE_GAP = 0.4
_NAMES = ((0.0, "poor"), (0.21, "slight"), (0.41, "fair"), (0.61, "moderate"), (0.81, "substantial"))


def snap(score: float) -> float:
    """The nearest value of the scale; halfway goes up."""
    return max(SCALE, key=lambda value: (-round(abs(value - score), 12), value))


def labels(scores: Sequence[float]) -> list[bool]:
    """Relevant or not: a score above .5 is."""
    return [score > RELEVANT_ABOVE for score in scores]


def kappa(one: Sequence[bool], other: Sequence[bool]) -> float:
    """Cohen's κ, (Po − Pe) / (1 − Pe); 1.0 for identical labels of one kind.

    Raises ValueError for empty or unequal lists.
    """
    if not one or len(one) != len(other):
        raise ValueError(
            f"both judges need the same number of labels, at least one; they have {len(one)} and {len(other)}"
        )
    count = len(one)
    observed = sum(a == b for a, b in zip(one, other, strict=True)) / count
    first, second = sum(one) / count, sum(other) / count
    expected = first * second + (1 - first) * (1 - second)
    if expected >= 1.0:
        return 1.0
    return (observed - expected) / (1 - expected)


def is_degenerate(one: Sequence[bool], other: Sequence[bool]) -> bool:
    """Whether a judge gave one label only: κ then says nothing about agreement."""
    return len(set(one)) < 2 or len(set(other)) < 2


def agreement(value: float) -> str:
    """The name of a κ."""
    for bound, name in _NAMES:
        if value < bound:
            return name
    return "almost perfect"


def macro_micro(runs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> tuple[float, float]:
    """Mean of the queries' κ, and κ of all their labels together. Raises ValueError without any."""
    each = [kappa(labels(one), labels(other)) for one, other in runs]
    together = (
        [label for one, _ in runs for label in labels(one)],
        [label for _, other in runs for label in labels(other)],
    )
    micro = kappa(*together)
    return sum(each) / len(each), micro

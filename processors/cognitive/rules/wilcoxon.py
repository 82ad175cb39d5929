"""The Wilcoxon signed-rank test of paired scores (Wilcoxon 1945).

Zero differences are dropped; ties get their mean rank.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

EXACT_UP_TO = 50
"""Pairs for which every sign is counted; beyond it the normal approximation with the correction for ties."""
DIGITS = 12


def signed_rank(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """The smaller sum of ranks, and the two-sided p; without any difference p is 1.

    Raises ValueError for unequal lists.
    """
    differences = [round(a - b, DIGITS) for a, b in zip(one, other, strict=True)]
    differences = [difference for difference in differences if difference]
    if not differences:
        return 0.0, 1.0
    ranks = _mean_ranks([abs(difference) for difference in differences])
    above = sum(rank for rank, difference in zip(ranks, differences, strict=True) if difference > 0)
    statistic = min(above, sum(ranks) - above)
    p = _exact(ranks, statistic) if len(ranks) <= EXACT_UP_TO else _approximate(ranks, statistic)
    return statistic, min(1.0, p)


def _mean_ranks(sizes: Sequence[float]) -> list[float]:
    ranks = [0.0] * len(sizes)
    place = 0
    for _, tied in groupby(sorted(range(len(sizes)), key=sizes.__getitem__), key=sizes.__getitem__):
        group = list(tied)
        for number in group:
            ranks[number] = place + (len(group) + 1) / 2
        place += len(group)
    return ranks


def _exact(ranks: Sequence[float], statistic: float) -> float:
    """Twice the share of all signs whose sum of positive ranks is as far out.

    Mean ranks are halves, so they are counted doubled.
    """
    ways = Counter({0: 1})
    for rank in ranks:
        step = round(2 * rank)
        for total, count in sorted(ways.items(), reverse=True):
            ways[total + step] += count
    return 2 * sum(count for total, count in ways.items() if total <= round(2 * statistic)) / float(2 ** len(ranks))


def _approximate(ranks: Sequence[float], statistic: float) -> float:
    count = len(ranks)
    ties = sum(size**3 - size for size in Counter(ranks).values()) / 48
    spread = math.sqrt(count * (count + 1) * (2 * count + 1) / 24 - ties)
    return math.erfc((count * (count + 1) / 4 - statistic) / spread / math.sqrt(2))

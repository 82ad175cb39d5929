"""The course of drift: a timeframe cut into buckets, and whether their means rise or fall."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

import numpy as np

from processors.context_graph.rules.drift import SEVERE, WINDOW, Baseline

Trend = Literal["improving", "stable", "worsening"]
SLOPE = 0.005
"""Of the mean alignment a bucket; less is not a trend."""
SURE = 2.0
"""A slope within this many of its standard errors of 0 is not a trend."""
LAST = 10
"""Buckets with data that a trend is told by."""
FEWEST = 3
_TOLERANCE = 1e-9
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Timeframe:
    """`buckets` of a length, of which the last ends now. `window`: memories whose mean is the present state."""

    name: str
    buckets: int
    length: timedelta
    window: int = WINDOW

    def start(self, now: datetime) -> datetime:
        """Where the first bucket begins."""
        return now - self.buckets * self.length

    def places(self, now: datetime, at_us: np.ndarray) -> np.ndarray:
        """The buckets, from 0, of times in microseconds since 1970.

        A time after `now` is in the last one: a clock may have gone back.
        """
        return np.clip((at_us - epoch_us(self.start(now))) // (self.length // _MICROSECOND), 0, self.buckets - 1)


TIMEFRAMES = {
    one.name: one
    for one in (
        Timeframe("1h", 12, timedelta(minutes=5)),
        Timeframe("24h", 24, timedelta(hours=1)),
        Timeframe("7d", 28, timedelta(hours=6), 3 * WINDOW),
        Timeframe("30d", 30, timedelta(days=1), 6 * WINDOW),
    )
}
"""The longer the timeframe, the more memories are the present state: one afternoon does not decide a month."""


def epoch_us(moment: datetime) -> int:
    """Microseconds since 1970 of an aware time."""
    return (moment - _EPOCH) // _MICROSECOND


class Bucket(NamedTuple):
    """The memories of one bucket. `alignment`: their mean, None where there are none."""

    alignment: float | None
    samples: int


class Course(NamedTuple):
    """A trend, by a slope of the alignment a bucket, over this many buckets with data."""

    trend: Trend
    slope: float
    samples: int


def course(buckets: Sequence[Bucket], error: float) -> Course:
    """The trend of buckets, oldest first. `error`: the standard error of the mean of WINDOW memories."""
    known = [(place, one.alignment, one.samples) for place, one in enumerate(buckets) if one.alignment is not None]
    known = known[-LAST:]
    if len(known) < FEWEST:
        return Course("stable", 0.0, len(known))
    weights = [min(samples, WINDOW) for _, _, samples in known]
    total = sum(weights)
    centre = sum(weight * place for weight, (place, _, _) in zip(weights, known, strict=True)) / total
    spread = sum(weight * (place - centre) ** 2 for weight, (place, _, _) in zip(weights, known, strict=True))
    slope = sum(weight * (place - centre) * mean for weight, (place, mean, _) in zip(weights, known, strict=True))
    slope /= spread
    least = max(SLOPE, SURE * error * math.sqrt(WINDOW / spread))
    if abs(slope) <= least + _TOLERANCE:
        return Course("stable", slope, len(known))
    return Course("improving" if slope > 0 else "worsening", slope, len(known))


def buckets_until_severe(current: float, baseline: Baseline, slope: float) -> float | None:
    """After how many buckets more of this slope the fall alone is severe; None where it does not fall."""
    if slope >= 0:
        return None
    left = current - (baseline.alignment - SEVERE * baseline.scalar_error)
    return max(0.0, left / -slope)

"""A token bucket for each principal: generous bursts, a bounded rate, and an honest `retry_after_ms`."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

from streams.clock import Clock
from streams.errors import Refused

RATE = 200.0
BURST_S = 2.0
MAX_PRINCIPALS = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RateLimits:
    """`rate` calls a second for each principal, and a burst of BURST_S seconds' worth."""

    def __init__(self, clock: Clock, rate: float = RATE) -> None:
        self._clock = clock
        self._rate = rate
        self._capacity = max(1.0, rate * BURST_S)
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, principal: str) -> None:
        """Count one call. Raises Refused `rate_limited` with `retry_after_ms` when the bucket is empty."""
        now = self._clock.monotonic()
        bucket = self._buckets.setdefault(principal, _Bucket(self._capacity, now))
        self._buckets.move_to_end(principal)
        if len(self._buckets) > MAX_PRINCIPALS:
            self._buckets.popitem(last=False)  # the one that called longest ago: its bucket is full again or nearly
        bucket.tokens = min(self._capacity, bucket.tokens + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.tokens < 1:
            wait_ms = math.ceil((1 - bucket.tokens) / self._rate * 1000)
            raise Refused(
                f"Too many calls: {self._rate:g} a second are accepted. Try again in {wait_ms} ms.",
                code="rate_limited",
                retry_after_ms=wait_ms,
            )
        bucket.tokens -= 1

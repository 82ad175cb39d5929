"""Rate limits: a token bucket for each connection, each credential and the node.

Connections share a full bucket fairly. A connection that stays under its share (of its credential's calls, and of the
node's, divided by the connections that call) is accepted whatever the others do. The others may use what it leaves
over, up to their own limit.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from streams.clock import Clock
from streams.errors import RateLimited

LOCAL = "local"
"""The credential of every client of the node's socket."""
RATE = 200.0
BURST_S = 2.0
CREDENTIAL, NODE = 2, 3
"""How many times a connection's rate all connections of a credential have, and all of a node."""

BYTES_A_CALL = 16 * 1024
PAUSE_S = 0.05
"""The shortest wait of a client at its limit; what it may send after that is read in one go."""


@dataclass(slots=True)
class _Bucket:
    """Tokens that grow by `rate` a second, up to BURST_S seconds' worth.

    They may be owed down to that many below zero.
    """

    rate: float
    at: float
    tokens: float = 0.0

    @property
    def capacity(self) -> float:
        return max(1.0, self.rate * BURST_S)

    def fill(self, now: float) -> None:
        self.tokens = min(self.capacity, self.tokens + (now - self.at) * self.rate)
        self.at = now

    def wait_s(self) -> float:
        """Until it holds a token."""
        return max(0.0, (1 - self.tokens) / self.rate)


def _full(rate: float, now: float) -> _Bucket:
    bucket = _Bucket(rate, now)
    bucket.tokens = bucket.capacity
    return bucket


@dataclass(slots=True)
class _Connection:
    """What it may use at most, and what nobody can take from it."""

    own: _Bucket
    share: _Bucket


@dataclass(slots=True)
class _Credential:
    bucket: _Bucket
    connections: OrderedDict[Hashable, _Connection] = field(default_factory=OrderedDict)
    """Those that called within the last BURST_S, the longest silent first; after that time a bucket is full again."""


class RateLimits:
    """`rate` calls a second for each connection. CREDENTIAL times that for a credential, NODE times that in total.

    A burst is BURST_S seconds' worth.
    """

    def __init__(self, clock: Clock, rate: float = RATE) -> None:
        self._clock = clock
        self._rate = rate
        self._node = _full(NODE * rate, clock.monotonic())
        self._credentials: dict[str, _Credential] = {}

    def take(self, credential: str, connection: Hashable = None) -> None:
        """Count one call. Raises RateLimited with `retry_after_ms` when it is one too many."""
        wait_s = self.take_or_wait(credential, connection)
        if wait_s:
            wait_ms = math.ceil(wait_s * 1000)
            raise RateLimited(
                f"Too many calls: {self._rate:g} a second are accepted of a connection, "
                f"{CREDENTIAL * self._rate:g} of a credential. Try again in {wait_ms} ms.",
                retry_after_ms=wait_ms,
            )

    def take_or_wait(self, credential: str, connection: Hashable = None) -> float:
        """Count one call, if it is not too many: 0.0. Otherwise count nothing: in how many seconds to try again."""
        total, caller = self._find(credential, connection, self._clock.monotonic())
        if caller.own.tokens < 1:
            return caller.own.wait_s()
        totals = (total.bucket, self._node)
        has_share = caller.share.tokens >= 1
        if not all(bucket.tokens >= 1 for bucket in totals) and not (
            has_share and all(b.tokens > -b.capacity for b in totals)
        ):
            return min(caller.share.wait_s() or math.inf, max(bucket.wait_s() for bucket in totals))
        for bucket in (caller.own, *totals, *([caller.share] if has_share else [])):
            bucket.tokens -= 1
        return 0.0

    def charge(self, credential: str, connection: Hashable, bytes_: int) -> None:
        """Count the bytes of a message, BYTES_A_CALL as one call: long messages cost the node more."""
        total, caller = self._find(credential, connection, self._clock.monotonic())
        for bucket in (caller.own, total.bucket, self._node):
            bucket.tokens = max(-bucket.capacity, bucket.tokens - bytes_ / BYTES_A_CALL)

    def _find(self, credential: str, connection: Hashable, now: float) -> tuple[_Credential, _Connection]:
        """Both, with their buckets filled up to now."""
        total = self._credentials.get(credential)
        if total is None:
            total = self._credentials[credential] = _Credential(_full(CREDENTIAL * self._rate, now))
        caller = total.connections.get(connection)
        if caller is None:
            caller = total.connections[connection] = _Connection(_full(self._rate, now), _Bucket(self._rate, now, 1.0))
        total.connections.move_to_end(connection)
        for bucket in (self._node, total.bucket, caller.own):
            bucket.fill(now)
        caller.share.rate = self._share(total, now)
        caller.share.fill(now)
        return total, caller

    def is_shared(self) -> bool:
        """Whether more than one connection called within the last BURST_S."""
        self._forget(self._clock.monotonic())
        return sum(len(each.connections) for each in self._credentials.values()) > 1

    def _forget(self, now: float) -> None:
        """Drop the connections that are silent for BURST_S."""
        for each in self._credentials.values():
            while each.connections and now - next(iter(each.connections.values())).own.at > BURST_S:
                each.connections.popitem(last=False)

    def _share(self, of: _Credential, now: float) -> float:
        """Calls a second of one connection of this credential when all want more than there is."""
        self._forget(now)
        calling = sum(1 for each in self._credentials.values() if each.connections)
        return min(of.bucket.rate, self._node.rate / max(1, calling)) / max(1, len(of.connections))

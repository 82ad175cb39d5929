"""Backoff for aiokafka while a broker is away, and a limit on its log lines.

The backoff is a pause after a failed metadata refresh. Without the pause a producer without a leader spins, thousands
of turns and log lines a second: the refresh fails at once, and its waiters retry at once. Both are installed for the
whole process, so they hold for Faust's clients too.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from typing import Any

from aiokafka.client import AIOKafkaClient

QUIET_S = 10.0


class RateLimit(logging.Filter):
    """Passes one log record of a kind every `quiet_s`; the next one says how many were suppressed."""

    def __init__(self, quiet_s: float = QUIET_S, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._quiet_s = quiet_s
        self._monotonic = monotonic
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = (record.name, str(record.msg))
        now = self._monotonic()
        since, suppressed = self._seen.get(kind, (-math.inf, 0))
        if now - since < self._quiet_s:
            self._seen[kind] = (since, suppressed + 1)
            return False
        self._seen[kind] = (now, 0)
        if suppressed:
            record.msg = f"{record.msg} ({suppressed} more like this in {now - since:.0f} s)"
        return True


def install() -> None:
    """Install both, once; further calls change nothing."""
    if getattr(AIOKafkaClient, "_thalweg_backoff", False):
        return
    refresh = AIOKafkaClient._metadata_update

    async def refresh_or_pause(self: Any, cluster_metadata: Any, topics: Any) -> bool:
        refreshed: bool = await refresh(self, cluster_metadata, topics)
        if not refreshed:
            await asyncio.sleep(self._retry_backoff)
        return refreshed

    AIOKafkaClient._metadata_update = refresh_or_pause
    AIOKafkaClient._thalweg_backoff = True
    limit = RateLimit()
    for name in list(logging.root.manager.loggerDict):
        if name == "aiokafka" or name.startswith("aiokafka."):
            logging.getLogger(name).addFilter(limit)  # filters are not inherited: each logger needs its own

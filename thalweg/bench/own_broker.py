"""What a measurement requires of a broker: it starts empty, and each part starts without a backlog."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from streams.errors import Refused, Unavailable
from streams.log import open_log
from streams.topics import TOPICS
from thalweg.control.requests import ask

SETTLE_S = 120.0
POLL_S = 0.05


def refuse_used(broker: str) -> None:
    """Refuse a broker that is in use: a bench writes made-up memories that stay for ever.

    Raises Refused when a topic of ours has records; an empty `broker` is a log of the bench's own.
    """
    if not broker:
        return
    counts = asyncio.run(_record_counts(broker))
    if counts:
        raise Refused(
            f"The broker holds records: {', '.join(f'{topic} ({count})' for topic, count in sorted(counts.items()))}. "
            "A measurement would add invented ones, and apply those that are there. Give it a broker of its own."
        )


async def _record_counts(broker: str) -> dict[str, int]:
    log = open_log(broker)
    await log.start()
    try:
        names = [topic.name for topic in TOPICS]
        first, ends = await log.first_offsets(names), await log.end_offsets(names)
    finally:
        await log.stop()
    counts: dict[str, int] = {}
    for at, end in ends.items():
        counts[at.topic] = counts.get(at.topic, 0) + end - first.get(at, 0)
    return {topic: count for topic, count in counts.items() if count}


def wait_applied(home: Path, timeout_s: float = SETTLE_S) -> None:
    """Until the node has applied and processed what its log held when it started."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        status = ask(home, "status")
        if all(part.get("lag", 0) == 0 for part in (*status["topics"].values(), *status["stages"].values())):
            return
        time.sleep(POLL_S)
    raise Unavailable(f"The node has not applied what its log held within {timeout_s:g} s.")

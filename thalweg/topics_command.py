"""`thalweg topics create`: the admin step, for brokers that are set up before the first node."""

from __future__ import annotations

import asyncio

from streams.log import open_log
from streams.topics import with_partitions
from thalweg.settings import Settings


def create_topics(settings: Settings) -> list[str]:
    """Create the missing topics; returns their names."""
    return asyncio.run(_create(settings))


async def _create(settings: Settings) -> list[str]:
    log = open_log(settings.broker_url)
    await log.start()
    try:
        return await log.create_topics(with_partitions(settings.partitions))
    finally:
        await log.stop()

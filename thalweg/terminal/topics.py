"""`thalweg topics create`: the admin step, for brokers that are set up before the first node."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from streams.log import open_log
from streams.topics import OTLP_TOPICS, Topic, with_partitions
from thalweg.settings import Settings


def create_topics(settings: Settings, *, otlp: bool = False) -> list[str]:
    """Create the missing topics, with `otlp` those that the OpenTelemetry Collector writes too. Returns their names."""
    return asyncio.run(_create(settings, otlp))


def missing_otlp_topics(existing: Collection[str]) -> str | None:
    """What to say when the Collector's topics are to be read and some are not there; None when all are."""
    missing = [name for name in OTLP_TOPICS if name not in existing]
    if not missing:
        return None
    which = f"the topic {missing[0]} is" if len(missing) == 1 else f"the topics {', '.join(missing)} are"
    return (
        f"THALWEG_OTLP_TOPICS is set, but {which} not on the broker: "
        "`thalweg topics create --otlp` makes what is missing"
    )


async def _create(settings: Settings, otlp: bool) -> list[str]:
    log = open_log(settings.broker_url)
    await log.start()
    try:
        wanted = [*with_partitions(settings.partitions)]
        if otlp:  # those that exist are the Collector's business: they may have any number of partitions
            existing = {at.topic for at in await log.end_offsets(OTLP_TOPICS)}
            wanted += [
                Topic(name, "OTLP", partitions=settings.partitions) for name in OTLP_TOPICS if name not in existing
            ]
        return await log.create_topics(wanted)
    finally:
        await log.stop()

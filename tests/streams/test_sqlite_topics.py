"""A topic that another process has made on the embedded log is read like any other."""

from __future__ import annotations

import asyncio
from pathlib import Path

from streams.log.base import Outgoing
from streams.log.sqlite import SqliteLog
from streams.positions import Partition
from streams.topics import Topic
from tests.patience import SOON_S

LATER = Topic("later", "what comes later", "namespace", 1, "forever")


async def test_a_topic_that_another_process_made_is_read_and_never_keeps_the_loop_busy(tmp_path: Path) -> None:
    ours, theirs = SqliteLog(tmp_path / "log.db"), SqliteLog(tmp_path / "log.db")
    await ours.start()
    await theirs.start()
    reader = await ours.reader({Partition(LATER.name, 0): 0})
    try:
        await theirs.create_topics([LATER])
        await theirs.publish([Outgoing(LATER.name, b"n", b"1")])
        async with asyncio.timeout(SOON_S):  # a reader that is busy for ever would not let it run out
            [record] = await reader.read(timeout_s=SOON_S, max_records=10)
        assert record.value == b"1"
    finally:
        await reader.close()
        await theirs.stop()
        await ours.stop()

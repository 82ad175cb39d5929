"""The newest records in memory: those of the file, also when another process appended, and never more than a bound."""

from __future__ import annotations

import random
from pathlib import Path

from streams.log.base import Outgoing, Record
from streams.log.sqlite import SqliteLog
from streams.log.tail_cache import MAX_BYTES, TailCache
from streams.positions import Partition
from streams.topics import Topic

TOPIC = Topic("thalweg.test.newest.v1", "two processes append", partitions=2)
AT = Partition(TOPIC.name, 0)


def record(offset: int, value: bytes = b"") -> Record:
    return Record(*AT, offset, 0, None, value)


async def test_what_is_read_from_memory_is_what_the_file_holds_also_when_another_process_appends_in_between(
    tmp_path: Path,
) -> None:
    chance = random.Random(7)
    logs = [SqliteLog(tmp_path / "log.db") for _ in range(2)]
    for log in logs:
        await log.start()
        await log.create_topics([TOPIC])
        log.subscribe()
    for number in range(40):
        some = [
            Outgoing(TOPIC.name, b"key", b"%d" % number, (("name", b"\xe9"),), partition=chance.randrange(2))
            for _ in range(3)
        ]
        await chance.choice(logs).publish(some)
    fresh = SqliteLog(tmp_path / "log.db")
    await fresh.start()
    for at in (AT, Partition(TOPIC.name, 1)):
        whole = fresh.fetch(at, 0, 1000)
        assert [found.offset for found in whole] == list(range(len(whole)))
        for log in logs:
            for offset in range(len(whole)):
                found = log.fetch(at, offset, 5)
                assert found and found == whole[offset : offset + len(found)]
            assert log.fetch(at, len(whole), 5) == []
    for log in (*logs, fresh):
        await log.stop()


def test_only_so_many_bytes_are_kept_and_a_gap_lets_go_of_what_came_before() -> None:
    newest = TailCache()
    newest.add(record(offset, bytes(MAX_BYTES // 4)) for offset in range(10))
    assert newest.since(AT, 5, 10) == [] and len(newest.since(AT, 6, 10)) == 4
    newest.add([record(20), record(21)])
    assert newest.since(AT, 9, 10) == [] and [found.offset for found in newest.since(AT, 20, 1)] == [20]
    newest.add([record(22, bytes(2 * MAX_BYTES))])
    assert newest.since(AT, 20, 10) == [] and newest.since(AT, 22, 10) == []

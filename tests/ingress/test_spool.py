"""The spool keeps what the log did not take, in order, through a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_ingress.spool import Spool
from streams.dlq import exhume, read_letter
from streams.errors import LogUnavailable, RecordRefused
from streams.log.base import Outgoing, record_bytes
from streams.log.sqlite import SqliteLog
from streams.positions import Partition, Position
from streams.topics import MEMORY, TOPICS


def record(text: str) -> Outgoing:
    return Outgoing(MEMORY.name, b"space", text.encode(), (("ce_id", text.encode()),))


class DeadLog(SqliteLog):
    """A log that takes `lives` publishes and then none."""

    def __init__(self, path: Path, lives: int) -> None:
        super().__init__(path)
        self.lives = lives

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        if self.lives <= 0:
            raise LogUnavailable("The log is away.")
        self.lives -= 1
        return await super().publish(records, timeout_s=timeout_s)


async def opened(path: Path, lives: int = 1000) -> DeadLog:
    log = DeadLog(path, lives)
    await log.start()
    await log.create_topics(TOPICS)
    return log


def values(log: SqliteLog, at: Position) -> list[bytes | None]:
    return [found.value for found in log.fetch(at.at, 0, 100)]


async def test_what_was_spooled_goes_to_the_log_in_order_and_the_spool_is_empty_then(tmp_path: Path) -> None:
    spool, log = Spool(tmp_path / "spool"), await opened(tmp_path / "log.db")
    assert spool.is_empty
    await spool.append([record("one"), record("two")])
    await spool.append([record("three")])
    assert not spool.is_empty
    assert await spool.drain(log) == 3
    assert spool.is_empty and (tmp_path / "spool").stat().st_size == 0
    at = (await log.publish([record("four")]))[0]
    assert values(log, at) == [b"one", b"two", b"three", b"four"]
    await log.stop()


async def test_a_new_process_finds_what_the_old_one_spooled(tmp_path: Path) -> None:
    await Spool(tmp_path / "spool").append([record("one")])
    spool, log = Spool(tmp_path / "spool"), await opened(tmp_path / "log.db")
    assert not spool.is_empty
    assert await spool.drain(log) == 1
    await log.stop()


class SmallLog(SqliteLog):
    """A log whose limits were lowered after the spool took what it holds."""

    letters = 5_000

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        if any(record_bytes(record) > (self.letters if record.topic.endswith(".dlq") else 1_000) for record in records):
            raise RecordRefused("At most 1000 bytes; raise `max.message.bytes`.")
        return await super().publish(records, timeout_s=timeout_s)


@pytest.mark.parametrize("letters", [5_000, 1_200])
async def test_what_the_log_will_never_take_is_a_dead_letter_with_its_reason_and_holds_up_nothing(
    tmp_path: Path, letters: int
) -> None:
    large = "x" * 2_000
    spool, log = Spool(tmp_path / "spool"), SmallLog(tmp_path / "log.db")
    log.letters = letters
    await log.start()
    await log.create_topics(TOPICS)
    await spool.append([record("one"), replace(record("large"), value=large.encode()), record("two")])
    await spool.append([record("three")])
    assert await spool.drain(log) == 4
    assert spool.is_empty and await spool.drain(log) == 0
    at = (await log.publish([record("four")]))[0]
    assert values(log, at) == [b"one", b"two", b"three", b"four"]
    [letter] = log.fetch(Partition(MEMORY.dlq.name, at.partition), 0, 10)
    read = read_letter(letter)
    assert (read.stage, letter.key) == (
        "spool",
        b"space",
    ) and "At most 1000 bytes; raise `max.message.bytes`." in read.error_message
    assert exhume(letter).topic == MEMORY.name and exhume(letter).partition is None
    if letters == 5_000:
        assert letter.value == large.encode()
    else:  # its data is where the letter says
        [kept] = (tmp_path / "refused").iterdir()
        assert kept.name in read.error_message and kept.read_text() == large and not letter.value
    await log.stop()


@pytest.mark.parametrize("cut", [1, 5, 9, 20])
async def test_a_torn_tail_is_cut_off_and_the_frames_before_it_are_kept(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "spool"
    await Spool(path).append([record("kept")])
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:cut])
    spool, log = Spool(path), await opened(tmp_path / "log.db")
    assert path.read_bytes() == whole
    await spool.append([record("next")])
    assert await spool.drain(log) == 2
    await log.stop()


async def test_a_flipped_bit_ends_the_frames_that_are_believed(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    await Spool(path).append([record("kept")])
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(bytes(raw))
    assert Spool(path).is_empty


async def test_a_log_that_is_still_away_leaves_the_spool_as_it_was(tmp_path: Path) -> None:
    spool, log = Spool(tmp_path / "spool"), await opened(tmp_path / "log.db", lives=0)
    await spool.append([record("one")])
    with pytest.raises(LogUnavailable):
        await spool.drain(log)
    assert not spool.is_empty
    log.lives = 1
    assert await spool.drain(log) == 1
    await log.stop()


async def test_a_full_spool_refuses_the_write_as_unavailable(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", max_bytes=200)
    await spool.append([record("small")])
    with pytest.raises(LogUnavailable, match="full"):
        await spool.append([record("x" * 200)])


async def test_a_write_during_the_drain_goes_behind_what_is_drained(tmp_path: Path) -> None:
    spool, log = Spool(tmp_path / "spool"), await opened(tmp_path / "log.db")
    await spool.append([record("first")])
    drained, _ = await asyncio.gather(spool.drain(log), spool.append([record("second")]))
    sent = drained + await spool.drain(log)
    assert sent == 2 and spool.is_empty
    await log.stop()

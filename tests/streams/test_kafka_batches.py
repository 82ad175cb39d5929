"""A batch of Kafka's that cannot be read comes as one record with its bytes, and what lies behind it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import aiokafka.consumer.fetcher as fetcher
import pytest
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition

from streams.codec import decode
from streams.errors import Poison, SettingsError
from streams.log.kafka_batches import CODECS, KEPT_BYTES, Batches, install
from streams.log.kafka_reader import record_of

HEADER = 61
CRC, ATTRIBUTES = slice(17, 21), slice(21, 23)


def batch(first: int, values: Sequence[bytes], codec: int = 0) -> bytes:
    """What lies on the log: a batch of these values from that offset on."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for delta, value in enumerate(values):
        builder.append(delta, 1_000, b"team", value, [])
    return first.to_bytes(8) + bytes(builder.build())[8:]


def signed(data: bytes) -> bytes:
    """With the checksum of what is there."""
    return data[: CRC.start] + calc_crc32c(data[ATTRIBUTES.start :]).to_bytes(4) + data[CRC.stop :]


def read(*batches: bytes, start: int = 0) -> tuple[list[Any], int]:
    """What a consumer reads of an answer from an offset on, and where it asks next."""
    found = PartitionRecords(
        TopicPartition("t", 0), Batches(b"".join(batches)), [], start, None, None, True, READ_COMMITTED
    )
    return list(found), found.next_fetch_offset


def reason(message: Any) -> str:
    """Why the codec refuses the record that was read."""
    with pytest.raises(Poison) as refused:
        decode(record_of(message))
    return refused.value.message


@pytest.mark.parametrize("codec", range(5), ids=("none", *CODECS))
def test_a_batch_of_each_codec_is_read_as_its_records(codec: int) -> None:
    messages, following = read(batch(0, [b"one", b"two"], codec), batch(2, [b"three"], codec))
    assert [(message.offset, message.value) for message in messages] == [(0, b"one"), (1, b"two"), (2, b"three")]
    assert following == 3 and not any(message.headers for message in messages)


@pytest.mark.parametrize("codec", range(1, 5), ids=CODECS)
def test_a_batch_whose_bytes_no_codec_reads_is_one_record_that_names_its_offsets_and_holds_its_bytes(
    codec: int,
) -> None:
    sound = batch(4, [b"one" * 50, b"two", b"three"], codec)
    damaged = signed(sound[:HEADER] + b"\xff" * (len(sound) - HEADER))
    messages, following = read(batch(3, [b"before"]), damaged, batch(7, [b"behind"]), start=3)
    assert [message.offset for message in messages] == [3, 6, 7] and following == 8
    assert messages[1].value == damaged and messages[1].key is None
    assert reason(messages[1]).startswith("The records 4 to 6 cannot be read: the batch on the log is damaged (")


def test_a_batch_with_a_wrong_checksum_is_not_applied_though_it_could_be_read() -> None:
    sound = batch(0, [b"one", b"two"])
    damaged = sound.replace(b"two", b"too")
    messages, following = read(damaged, batch(2, [b"behind"]))
    assert [(message.offset, message.value) for message in messages] == [
        (1, damaged),
        (2, b"behind"),
    ] and following == 3
    assert "The records 0 to 1 cannot be read: the batch on the log is damaged (its checksum is wrong)." in reason(
        messages[0]
    )


def test_a_codec_that_nobody_knows_is_named() -> None:
    sound = batch(0, [b"one"])
    unknown = signed(sound[: ATTRIBUTES.start] + (5).to_bytes(2) + sound[ATTRIBUTES.stop :])
    [message], _ = read(unknown)
    assert "The record with the offset 0 cannot be read" in reason(message) and "0x05" in reason(message)


def test_of_a_batch_that_ends_too_early_the_records_that_are_whole_are_read_and_the_others_named() -> None:
    sound = batch(0, [b"one", b"two", b"three"])
    torn = signed(sound[:8] + (len(sound) - 12 - 4).to_bytes(4) + sound[12:-4])
    messages, following = read(torn)
    assert [message.value for message in messages] == [b"one", b"two", torn] and following == 3
    assert "The record with the offset 2 cannot be read" in reason(messages[2])


def test_a_reader_that_begins_within_a_damaged_batch_goes_on_behind_it() -> None:
    damaged = batch(0, [b"one", b"two", b"three"]).replace(b"two", b"too")
    messages, following = read(damaged, start=1)
    assert [message.offset for message in messages] == [2] and following == 3


@pytest.mark.parametrize("last", [1_000_000, 0, -7])
def test_a_damaged_header_never_makes_a_reader_pass_over_what_lies_behind(last: int) -> None:
    sound = batch(0, [b"one", b"two"])
    messages, _ = read(sound[:23] + last.to_bytes(4, signed=True) + sound[27:], batch(2, [b"behind"]))
    assert messages[-1].value == b"behind"


def test_of_a_batch_that_no_dead_letter_could_hold_the_beginning_is_kept() -> None:
    [message], _ = read(batch(0, [b"x" * KEPT_BYTES])[:-1] + b"\1")
    assert len(message.value) == KEPT_BYTES


def test_a_codec_whose_library_is_missing_is_said_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    assert fetcher.MemoryRecords is Batches
    monkeypatch.setattr("aiokafka.codec.cramjam", None)
    with pytest.raises(
        SettingsError, match=r"snappy, lz4, zstd could not be read: the package cramjam is missing\. Install"
    ):
        install()

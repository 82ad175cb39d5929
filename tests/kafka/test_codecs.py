"""What a producer compresses is read, with each codec of Kafka's own client.

A batch that nobody can read ends no node.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.events import wire_type
from streams.partitioning import partition_for
from streams.topics import MEMORY
from tests.kafka.foreign import console_produce, line
from tests.kafka.rig.broker import Broker
from tests.node_process import NodeProcess

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

CODECS = ("gzip", "snappy", "lz4", "zstd")
JOURNAL = wire_type("talos.journal.written")
WRITTEN = "SELECT content FROM talos_journal WHERE namespace = 'team' ORDER BY content"


def said(codec: str, number: int) -> str:
    event = {"id": f"{codec}-{number}", "source": "/gauge", "type": JOURNAL}
    return line(event, "team", f'{{"content": "The {codec} gauge reads {number}.", "category": "insight"}}')


def test_records_of_each_codec_are_applied_by_a_running_node_and_by_a_start_on_a_fresh_directory(
    own_broker: Broker, tmp_path: Path
) -> None:
    node = NodeProcess(tmp_path / "node", own_broker.url).start()
    try:
        for codec in CODECS:
            console_produce(
                own_broker, MEMORY.name, [said(codec, number) for number in range(3)], compression_type=codec
            )
        expected = sorted((f"The {codec} gauge reads {number}.",) for codec in CODECS for number in range(3))
        node.settle()
        assert node.sql(WRITTEN) == expected
        assert node.stop() == 0, node.log_tail()
        node = NodeProcess(tmp_path / "fresh", own_broker.url).start()
        node.settle()
        assert node.sql(WRITTEN) == expected and node.sql("SELECT count(*) FROM dead_letters") == [(0,)]
        assert node.stop() == 0, node.log_tail()
    finally:
        if node.is_alive():
            node.kill()


def test_a_damaged_batch_is_one_dead_letter_that_names_its_offsets_and_what_lies_behind_it_is_applied(
    own_broker: Broker, tmp_path: Path
) -> None:
    node = NodeProcess(tmp_path / "node", own_broker.url).start()
    try:
        assert node.stop() == 0, node.log_tail()
        console_produce(own_broker, MEMORY.name, [said("gzip", number) for number in range(3)], compression_type="gzip")
        own_broker.stop()
        partition = partition_for(b"team", MEMORY.partitions)
        segment = own_broker.directory / "data" / f"{MEMORY.name}-{partition}" / f"{0:020}.log"
        data = segment.read_bytes()
        segment.write_bytes(data[:-10] + bytes(byte ^ 0xFF for byte in data[-10:]))
        own_broker.start()
        console_produce(own_broker, MEMORY.name, [said("none", 1)])
        for _ in range(2):  # also at the next start
            node.start()
            node.settle()
            assert node.sql(WRITTEN) == [("The none gauge reads 1.",)]
            [(at, reason, size)] = node.sql(
                "SELECT partition || '/' || \"offset\", error_message, value_bytes FROM dead_letters"
            )
            assert at == f"{partition}/2" and reason.startswith(
                "The records 0 to 2 cannot be read: the batch on the log is damaged ("
            )
            assert size == len(data)
            assert node.stop() == 0, node.log_tail()
        assert f"{MEMORY.name}/{partition}: The records 0 to 2 cannot be read" in node.log_tail()
    finally:
        if node.is_alive():
            node.kill()

"""Long texts on a real Kafka.

The node stays, embeds them in records that the broker takes, and a start repeats nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from streams.clock import SystemClock
from streams.codec import encode
from streams.errors import RecordRefused
from streams.events import Event, wire_type
from streams.log import Outgoing, open_log
from streams.topics import DERIVED, MEMORY, TOPICS
from tests.kafka.rig.broker import Broker
from tests.node_process import Client, NodeProcess
from tests.patience import PATIENCE_S, SOON_S

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

PROSE = "The committee discussed the minutes of the former meeting and adjourned until the following week. "
CHINESE = "水獭在河里游泳捕鱼然后回到岸边的洞里睡觉直到第二天早晨太阳升起"


@pytest.fixture
def node(own_broker: Broker, tmp_path: Path) -> Iterator[NodeProcess]:
    node = NodeProcess(tmp_path / "node", own_broker.url, THALWEG_LOG_LEVEL="info").start()
    yield node
    if node.is_alive():
        node.kill()


def wait_until_whole(node: NodeProcess) -> dict[str, object]:
    """Wait until every passage that should have a vector has one."""
    deadline = time.monotonic() + 3 * PATIENCE_S
    wanted = "SELECT (SELECT sum(passages) FROM embeddings), (SELECT count(*) FROM passages)"
    while (counts := node.sql(wanted)[0])[0] is None or counts[0] != counts[1]:
        assert time.monotonic() < deadline and node.is_alive(), (counts, node.log_tail())
        time.sleep(0.2)
    return node.settle(2 * PATIENCE_S)


async def ends(broker: Broker) -> dict[str, int]:
    log = open_log(broker.url)
    await log.start()
    found = await log.end_offsets([topic.name for topic in TOPICS])
    await log.stop()
    return {
        f"{at.topic}/{at.partition}": offset
        for at, offset in found.items()
        if not at.topic.startswith("thalweg.invocations")
    }


async def test_three_megabytes_of_a_producer_and_50000_chinese_characters_through_mcp_are_found_after_a_start(
    own_broker: Broker, node: NodeProcess
) -> None:
    log = open_log(own_broker.url)
    await log.start()
    text = PROSE * (3 * 2**20 // len(PROSE)) + "At last a capybara."
    data = {"content": text, "category": "insight"}
    memory = Event("long", "producer", wire_type("talos.journal.written"), "default", SystemClock().now(), data)
    await log.publish([encode(MEMORY.name, memory)], timeout_s=30)
    await log.stop()
    with closing(Client(node.home)) as client:
        chinese = CHINESE * (50_000 // len(CHINESE))
        client.insist("journal_write", {"content": chinese, "category": "insight"}, "chinese")
    wait_until_whole(node)
    before = await ends(own_broker)
    assert node.stop() == 0, node.log_tail()
    for _ in range(2):
        node.start()
        status = node.settle(2 * PATIENCE_S)
        assert (status["status"], status["dead_letters"].get("new", 0), status["spaces"]["failed"]) == (
            "green",
            0,
            0,
        ), status
        assert await ends(own_broker) == before, "a start published again what is there"
        with closing(Client(node.home)) as client:
            for question, start in (("capybara", PROSE), ("水獭在河里", CHINESE), (PROSE, PROSE)):
                found = client.call("journal_query", {"query": question})["results"]
                assert any(start[:20] in str(hit) for hit in found), (question, found)
        assert node.stop() == 0, node.log_tail()


async def test_a_topic_that_takes_little_refuses_a_write_with_its_limit_and_gets_vectors_in_small_records(
    own_broker: Broker, tmp_path: Path
) -> None:
    log = open_log(own_broker.url)
    await log.start()
    await log.create_topics(TOPICS)
    await log.stop()
    admin = AIOKafkaAdminClient(bootstrap_servers=own_broker.bootstrap)
    await admin.start()
    for topic in (MEMORY.name, DERIVED.name):
        await admin.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic, configs={"max.message.bytes": "60000"})]
        )
    await admin.close()
    log = open_log(own_broker.url)
    async with asyncio.timeout(SOON_S):
        while True:  # a broker hears of a changed setting a moment later
            await log.start()
            if log.largest(MEMORY.name) < 60_000:
                break
            await log.stop()
            await asyncio.sleep(0.2)
    with pytest.raises(RecordRefused, match=f"{MEMORY.name} takes at most .* `max.message.bytes`"):
        await log.publish([Outgoing(MEMORY.name, b"default", b"x" * 60_000)])
    await log.stop()
    node = NodeProcess(tmp_path / "node", own_broker.url).start()
    try:
        with closing(Client(node.home)) as client:
            refused = client.call("journal_write", {"content": PROSE * 900, "category": "insight"})
            assert "max.message.bytes" in str(refused), refused
            client.insist("journal_write", {"content": PROSE * 400, "category": "insight"}, "fits")
            own_broker.kill()
            refused = client.call("journal_write", {"content": PROSE * 900, "category": "insight"})
            assert "max.message.bytes" in str(refused), refused
            spool = node.home / "spool"
            assert not spool.exists() or PROSE[:40].encode() not in spool.read_bytes(), (
                "it is refused before it is spooled"
            )
            own_broker.start()
        status = wait_until_whole(node)
        assert (status["status"], status["dead_letters"].get("new", 0)) == ("green", 0), status
        assert node.stop() == 0, node.log_tail()
    finally:
        if node.is_alive():
            node.kill()

"""Why the stages are written as they are: what Faust 0.15.3 does with a record that its agent could not process.

These pin another project's behaviour. When one fails after an upgrade, Faust has changed: read
processors/frame/faust_app.py again.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streams.log import Outgoing
from streams.log.kafka import KafkaLog
from streams.positions import Partition
from streams.topics import Topic
from tests.kafka.conftest import MakeTopic
from tests.kafka.rig.broker import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
VALUES = [f"value-{number}".encode() for number in range(50)]
BAD = 17
WAIT_S = 120.0


@contextmanager
def a_worker(
    kafka: Broker, topic: Topic, form: str, out: Path, fail_on: bytes | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A Faust worker in a process of its own; SIGTERM at the end, SIGKILL if that is ignored."""
    command = [sys.executable, "-m", "tests.kafka.faust_worker", kafka.bootstrap, topic.name, form, str(out)]
    if fail_on is not None:
        command.append(fail_on.decode())
    with out.with_suffix(".log").open("ab") as log:
        worker = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        yield worker
    finally:
        if worker.poll() is None:
            worker.send_signal(signal.SIGTERM)
        try:
            worker.wait(60)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait(60)


def processed(out: Path) -> list[bytes]:
    return out.read_bytes().splitlines() if out.exists() else []


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(WAIT_S):
            while not await condition():
                await asyncio.sleep(0.1)
    except TimeoutError:
        pytest.fail(f"not within {WAIT_S:.0f} s: {what}")


async def committed(log: KafkaLog, topic: Topic) -> int:
    return (await log.committed(f"trap-{topic.name}", [topic.name])).get(Partition(topic.name, 0), 0)


async def fill(log: KafkaLog, make_topic: MakeTopic) -> Topic:
    topic = await make_topic(partitions=1)
    await log.publish([Outgoing(topic.name, b"key", value) for value in VALUES], timeout_s=WAIT_S)
    return topic


@pytest.mark.parametrize("form", ["plain", "skipped_ack"])
async def test_an_unprocessed_record_is_committed_over_and_lost(
    form: str, log: KafkaLog, kafka: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """`async for value in stream` acknowledges a record on which the agent raised.

    A skipped ack is a hole nobody looks at.
    """
    topic, out = await fill(log, make_topic), tmp_path / "out"

    async def all_are_committed() -> bool:
        return await committed(log, topic) == len(VALUES)

    with a_worker(kafka, topic, form, out, fail_on=VALUES[BAD]):
        await until(all_are_committed, "everything is committed, the failed record included")
    with a_worker(kafka, topic, form, out):  # it would process the record now, but never sees it again
        await log.publish([Outgoing(topic.name, b"key", b"one more")], timeout_s=WAIT_S)

        async def the_new_one_is_processed() -> bool:
            return b"one more" in processed(out)

        await until(the_new_one_is_processed, "the next record is processed")
    assert set(VALUES) - set(processed(out)) == {VALUES[BAD]}


async def test_noack_take_under_the_crashing_supervisor_loses_nothing_and_ends_the_worker(
    log: KafkaLog, kafka: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, out = await fill(log, make_topic), tmp_path / "out"
    with a_worker(kafka, topic, "noack_take", out, fail_on=VALUES[BAD]) as worker:
        code = await asyncio.to_thread(worker.wait, WAIT_S)
    assert code != 0
    assert VALUES[BAD] not in processed(out)

    head = await committed(log, topic)
    assert head <= BAD, "nothing at or after the head of the failed batch is committed"

    with a_worker(kafka, topic, "noack_take", out):

        async def all_are_processed() -> bool:
            return set(processed(out)) == set(VALUES)

        await until(all_are_processed, "a restarted worker goes on at the head of the failed batch")
    assert processed(out)[-(len(VALUES) - BAD) :] == VALUES[BAD:]


async def test_noack_take_loses_nothing_to_a_kill(
    log: KafkaLog, kafka: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, out = await fill(log, make_topic), tmp_path / "out"

    async def some_are_processed() -> bool:
        return bool(processed(out))

    with a_worker(kafka, topic, "noack_take", out) as worker:
        await until(some_are_processed, "the worker has begun")
        worker.kill()
    more = [f"more-{number}".encode() for number in range(50)]
    await log.publish([Outgoing(topic.name, b"key", value) for value in more], timeout_s=WAIT_S)
    with a_worker(kafka, topic, "noack_take", out):

        async def all_are_processed() -> bool:
            return set(processed(out)) == {*VALUES, *more}

        await until(all_are_processed, "what came before and after the kill is processed")

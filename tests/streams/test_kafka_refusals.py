"""What a Kafka refuses, as a sentence on which its operator can act."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import (
    InvalidTimestampError,
    KafkaError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
)

from streams.errors import LogUnavailable, RecordRefused, SettingsError
from streams.log.base import MAX_RECORD_BYTES
from streams.log.kafka_limits import BATCH_HEADER_BYTES, SETTING, judge, read_limits
from streams.log.kafka_probe import why_refused
from streams.log.kafka_security import KafkaSecurity


@pytest.mark.parametrize(
    ("error", "expected", "sentence"),
    [
        (MessageSizeTooLargeError(), RecordRefused, "`max.message.bytes`"),
        (RecordListTooLargeError(), RecordRefused, "`max.message.bytes`"),
        (InvalidTimestampError(), RecordRefused, "its clock or ours is wrong"),
        (TopicAuthorizationFailedError(), SettingsError, "grant the right, or set another user"),
        (NotEnoughReplicasError(), LogUnavailable, "Kafka did not take the records (NotEnoughReplicasError)."),
    ],
)
def test_only_what_no_repetition_would_mend_is_the_callers_fault(
    error: KafkaError, expected: type, sentence: str
) -> None:
    found = judge(error)
    assert type(found) is expected and sentence in found.message


class Admin:
    """Answers what it is asked of each topic's configuration with a code and a value."""

    def __init__(self, answers: dict[str, tuple[int, int]] | KafkaError) -> None:
        self.answers = answers

    async def describe_configs(self, resources: list[Any]) -> list[Any]:
        if isinstance(self.answers, KafkaError):
            raise self.answers
        return [
            SimpleNamespace(
                resources=[
                    (self.answers[asked.name][0], "", 2, asked.name, [(SETTING, str(self.answers[asked.name][1]))])
                ]
            )
            for asked in resources
        ]


async def test_a_record_may_have_what_its_topic_takes_less_the_head_of_a_batch_and_never_more_than_ours() -> None:
    admin: Any = Admin({"small": (0, 5_000), "large": (0, 10**9), "secret": (29, 5_000)})
    assert await read_limits(admin, ["small", "large", "secret"]) == {
        "small": 5_000 - BATCH_HEADER_BYTES,
        "large": MAX_RECORD_BYTES,
    }


async def test_without_topics_nothing_is_asked_and_a_broker_that_does_not_say_leaves_the_limits_open() -> None:
    silent: Any = Admin(TopicAuthorizationFailedError())
    assert await read_limits(silent, []) == {} == await read_limits(silent, ["one"])


async def test_a_listener_without_tls_is_named_with_the_setting_to_correct_and_one_that_is_away_is_not() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"\0\0\0\4\0\0\0\1")
        writer.close()

    security = KafkaSecurity("SSL")
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        reason = await why_refused(f"{address},127.0.0.1:1", security)
    finally:
        server.close()
    assert reason == (
        f"{address} does not speak TLS, which THALWEG_KAFKA_PROTOCOL=SSL needs: set the protocol of that listener."
    )
    await server.wait_closed()
    assert await why_refused(address, security) is None
    assert await why_refused("no port", security) is None

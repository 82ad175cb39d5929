"""The limits of a Kafka's topics, as the broker states them, and the meaning of its refusals."""

from __future__ import annotations

from collections.abc import Sequence

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    InvalidTimestampError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
)

from streams.errors import LogUnavailable, RecordRefused, SettingsError, ThalwegError
from streams.log.base import MAX_RECORD_BYTES

SETTING = "max.message.bytes"
BATCH_HEADER_BYTES = 100
"""What a batch of one record has besides the record."""
RETRY_AFTER_MS = 1000


async def read_limits(admin: AIOKafkaAdminClient, topics: Sequence[str]) -> dict[str, int]:
    """The bytes that a record may have, by topic. Raises OSError.

    A topic whose configuration this user may not read is left out.
    """
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, configs={SETTING: None}) for name in topics]
    try:
        answers = await admin.describe_configs(resources) if resources else []
    except KafkaError:
        return {}
    found: dict[str, int] = {}
    for answer in answers:
        for code, _, _, topic, entries in answer.resources:
            for name, value, *_ in entries if code == 0 else ():
                if name == SETTING:
                    found[topic] = min(int(value) - BATCH_HEADER_BYTES, MAX_RECORD_BYTES)
    return found


def judge(error: KafkaError) -> ThalwegError:
    """The error that a failed publish is to its caller."""
    if isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError):
        return RecordRefused(
            f"The topic takes no record of that size: set its `max.message.bytes` to {MAX_RECORD_BYTES} or more."
        )
    if isinstance(error, InvalidTimestampError):
        return RecordRefused("The broker refuses the record's time as invalid: its clock or ours is wrong.")
    if isinstance(error, TopicAuthorizationFailedError):
        return SettingsError("Kafka does not let this user write to the topic: grant the right, or set another user.")
    return LogUnavailable(f"Kafka did not take the records ({type(error).__name__}).", retry_after_ms=RETRY_AFTER_MS)

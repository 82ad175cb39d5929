"""Making topics on a Kafka whose controller does not have its brokers yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streams.errors import SettingsError
from streams.log.kafka import INVALID_REPLICATION, TOPIC_EXISTS, KafkaLog
from streams.topics import Topic

FENCED = "Unable to replicate the partition 1 time(s): All brokers are currently fenced."
TOO_FEW = (
    "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only "
    "1 broker(s) are registered."
)
ONE, TWO = (Topic(name, "a test's records", partitions=1) for name in ("one", "two"))


class Controller:
    """Answers the n-th request with the n-th list of (topic, code, reason)."""

    def __init__(self, *answers: list[tuple[str, int, str | None]]) -> None:
        self.answers = list(answers)

    async def create_topics(self, new: object, **_: object) -> Any:
        return SimpleNamespace(topic_errors=self.answers.pop(0))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> KafkaLog:
    log = KafkaLog("127.0.0.1:1")

    async def has_leaders(ready: object = ()) -> bool:
        return True

    monkeypatch.setattr(log, "_refresh", has_leaders)
    return log


async def test_brokers_that_are_fenced_for_a_moment_are_waited_for(log: KafkaLog) -> None:
    made_one = [("one", 0, None), ("two", INVALID_REPLICATION, FENCED)]
    controller: Any = Controller(
        [(topic, INVALID_REPLICATION, FENCED) for topic in ("one", "two")],
        made_one,
        [("one", TOPIC_EXISTS, None), ("two", 0, None)],
    )
    assert await log._create(controller, [ONE, TWO]) == ["one", "two"]
    assert controller.answers == []


async def test_too_few_brokers_are_a_setting_to_correct(log: KafkaLog) -> None:
    controller: Any = Controller([("one", INVALID_REPLICATION, TOO_FEW)])
    with pytest.raises(SettingsError, match="does not create the topic one: Unable to replicate"):
        await log._create(controller, [ONE])

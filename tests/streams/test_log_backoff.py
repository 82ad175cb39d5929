"""aiokafka's log is rate-limited by kind, and nothing else is."""

from __future__ import annotations

import logging

from streams.log.backoff import RateLimit, install


def a_record(name: str, message: str) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, __file__, 1, message, (), None)


def test_one_record_of_a_kind_passes_and_the_next_says_how_many_were_held_back() -> None:
    now = [0.0]
    limit = RateLimit(quiet_s=10.0, monotonic=lambda: now[0])
    assert limit.filter(a_record("aiokafka", "no leader"))
    assert [limit.filter(a_record("aiokafka", "no leader")) for _ in range(3)] == [False] * 3
    now[0] = 11.0
    again = a_record("aiokafka", "no leader")
    assert limit.filter(again)
    assert again.getMessage() == "no leader (3 more like this in 11 s)"


def test_another_message_or_logger_is_another_kind() -> None:
    limit = RateLimit(quiet_s=10.0, monotonic=lambda: 0.0)
    assert limit.filter(a_record("aiokafka", "no leader"))
    assert limit.filter(a_record("aiokafka", "no broker"))
    assert limit.filter(a_record("aiokafka.conn", "no leader"))


def test_installing_twice_changes_nothing() -> None:
    from aiokafka.client import AIOKafkaClient

    install()
    patched = AIOKafkaClient._metadata_update
    install()
    assert AIOKafkaClient._metadata_update is patched

"""The log and its two implementations; `open_log` chooses by the broker's URL."""

from __future__ import annotations

from urllib.parse import urlsplit

from streams.errors import SettingsError
from streams.log.base import Log, LogReader, Outgoing, Record

__all__ = ["Log", "LogReader", "Outgoing", "Record", "open_log"]


def open_log(url: str) -> Log:
    """The log at `sqlite:///path/to/file` or `kafka://host:port[,host:port]`. Raises SettingsError."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and parts.path:
        from streams.log.sqlite import SqliteLog

        return SqliteLog(parts.path)
    if parts.scheme == "kafka" and parts.netloc:
        from streams.log.kafka import KafkaLog
        from streams.log.kafka_security import KafkaSecurity

        return KafkaLog(parts.netloc, KafkaSecurity.from_environ())
    raise SettingsError(f"The broker {url!r} is not of the form sqlite:///path/log.db or kafka://host:port.")

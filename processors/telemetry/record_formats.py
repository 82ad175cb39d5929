"""Reads records of the OpenTelemetry Collector's Kafka exporter as telemetry events.

Its encodings are `otlp_proto` and `otlp_json`. They carry no CloudEvents envelope and need no key: their namespace is
the node's own.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import orjson

from processors.frame.record_format import RecordFormat
from processors.telemetry.formats.lines import Unreadable
from processors.telemetry.formats.otlp import Signal, read_protobuf, read_request
from streams.codec import MAX_BYTES, validate
from streams.errors import Poison
from streams.events import LoggedEvent
from streams.ids import digest
from streams.log.base import Record
from streams.topics import OTLP_TOPICS, TELEMETRY


def decode_otlp(record: Record, namespace: str) -> tuple[list[LoggedEvent], Poison | None]:
    """The record's events, and why what is missing among them could not be read."""
    raw = record.value or b""
    if not raw or len(raw) > MAX_BYTES:
        return [], Poison(f"The value has {len(raw)} bytes; an OTLP request of 1 to {MAX_BYTES} is expected.")
    time = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
    if raw.lstrip()[:1] == b"{":  # no protobuf message starts with this byte
        found = read_request(raw, namespace=namespace, fallback_time=time)
    else:
        found = read_protobuf(
            raw, cast(Signal, record.topic.removeprefix("otlp_")), namespace=namespace, fallback_time=time
        )
    events: list[LoggedEvent] = []
    problem: Poison | None = None
    for index, item in enumerate(found):
        try:
            if isinstance(item, Unreadable):
                raise Poison(item.reason)
            validate(item.type, item.data)
            events.append(LoggedEvent(item, record.position, index, digest(orjson.dumps(item.data)), item.key))
        except Poison as error:
            problem = problem or error
    return events, problem


FORMATS = (RecordFormat(frozenset(OTLP_TOPICS), decode_otlp, TELEMETRY.name),)

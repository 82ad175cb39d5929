"""OpenTelemetry export requests become events, the same from JSON and from protobuf."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from processors.telemetry.formats.otlp import read_protobuf
from streams.events import Event
from tests.telemetry.reading import MODIFIED, NAMESPACE, events_of, read, unreadable_of

TRACE, SPAN = "5B8EFFF798038103D269B633813FC60C", "EEE19B7EC3C1B174"
NANOS = "1767225600000000000"  # 2026-01-01
ABOUT = {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "tides"}}]}}
SCOPE = {"scope": {"name": "lib", "version": "2"}}


def request(outer: str, middle: str, inner: str, *items: Any) -> dict[str, Any]:
    return {outer: [{**ABOUT, middle: [{**SCOPE, inner: list(items)}]}]}


def span(**more: Any) -> dict[str, Any]:
    end = str(int(NANOS) + 1_500_000)
    return {
        "traceId": TRACE,
        "spanId": SPAN,
        "name": "read",
        "kind": 2,
        "startTimeUnixNano": NANOS,
        "endTimeUnixNano": end,
    } | more


def log(**more: Any) -> dict[str, Any]:
    return {"timeUnixNano": NANOS, "severityNumber": 10, "body": {"stringValue": "hi"}} | more


def spans(*items: Any) -> dict[str, Any]:
    return request("resourceSpans", "scopeSpans", "spans", *items)


def logs(*items: Any) -> dict[str, Any]:
    return request("resourceLogs", "scopeLogs", "logRecords", *items)


def test_a_span_is_identified_by_trace_and_span_id() -> None:
    (event,) = events_of(read("otlp-json", [spans(span(status={"code": 2, "message": "no"}))]))
    assert event.id == f"{TRACE.lower()}/{SPAN.lower()}"
    assert (event.data["kind"], event.data["status"], event.data["duration_ms"]) == ("server", "error", 1.5)
    assert (event.data["resource"], event.data["scope"], event.data["scope_version"]) == (
        {"service.name": "tides"},
        "lib",
        "2",
    )


def test_attributes_become_plain_json() -> None:
    values = {
        "n": {"intValue": "9007199254740993"},
        "f": {"doubleValue": 0.5},
        "l": {"arrayValue": {"values": [{"boolValue": True}, {"stringValue": "x"}]}},
        "m": {"kvlistValue": {"values": [{"key": "k", "value": {"intValue": "1"}}]}},
        "none": {},
    }
    given = [{"key": key, "value": value} for key, value in values.items()]
    (event,) = events_of(read("otlp-json", [logs(log(attributes=given))]))
    assert event.data["attributes"] == {"n": 9007199254740993, "f": 0.5, "l": [True, "x"], "m": {"k": 1}, "none": None}
    assert event.data["severity"] == "INFO2"


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"doubleValue": "-12"}, -12),
        ({"doubleValue": "1e3"}, 1000.0),
        ({"doubleValue": "NaN"}, None),
        ({"doubleValue": "-Infinity"}, None),
        ({"doubleValue": "9" * 400}, None),  # above every double
        ({"doubleValue": "much"}, None),
        ({"doubleValue": True}, None),
        ({"intValue": ["7", {"n": "-8"}]}, [7, {"n": -8}]),
        ({"intValue": "seven"}, "seven"),
        ({"arrayValue": {"values": 3}}, []),
        ("bare", None),
    ],
)
def test_a_number_is_finite_and_what_is_not_one_is_null(given: Any, plain: Any) -> None:
    (event,) = events_of(read("otlp-json", [logs(log(attributes=[{"key": "a", "value": given}]))]))
    assert event.data["attributes"] == {"a": plain}


@pytest.mark.parametrize(("number", "name"), [(0, None), (1, "TRACE"), (24, "FATAL4"), (25, None), ("9", None)])
def test_a_severity_has_the_short_name_of_the_specification_or_none(number: Any, name: str | None) -> None:
    (event,) = events_of(read("otlp-json", [logs(log(severityNumber=number))]))
    assert event.data.get("severity") == name


def test_equal_log_records_are_two_events_and_a_request_sent_twice_adds_none() -> None:
    sent = logs(log(), log(), log(body={"intValue": "3"}))
    first, again = events_of(read("otlp-json", [sent])), events_of(read("otlp-json", [sent, sent]))
    assert len({event.id for event in first}) == 3
    assert {event.id for event in again} == {event.id for event in first}


def test_each_data_point_of_a_metric_is_an_event() -> None:
    points = [{"asInt": "5", "timeUnixNano": NANOS}, {"asDouble": "NaN", "timeUnixNano": NANOS}]
    histogram = {"count": "2", "sum": 3, "bucketCounts": ["1", "1"], "explicitBounds": [1], "timeUnixNano": NANOS}
    sent = request(
        "resourceMetrics",
        "scopeMetrics",
        "metrics",
        {"name": "c", "unit": "1", "sum": {"isMonotonic": True, "dataPoints": points}},
        {"name": "h", "histogram": {"dataPoints": [histogram]}},
    )
    first, second, third = events_of(read("otlp-json", [sent]))
    assert (first.data["kind"], first.data["value"], second.data.get("value")) == ("sum", 5, None)
    assert (third.data["count"], third.data["sum"], third.data["point"]["bucketCounts"]) == (2, 3, [1, 1])


def test_a_bad_part_does_not_take_the_good_ones_with_it() -> None:
    mapped = read("otlp-json", [spans(span(), span(spanId="xyz"), "no span", span(traceId="0" * 32))])
    assert len(events_of(mapped)) == 1
    assert len(unreadable_of(mapped)) == 3


def test_what_is_no_request_is_unreadable() -> None:
    assert len(unreadable_of(read("otlp-json", [{"a": 1}, [1], b"{"]))) == 3


def test_protobuf_gives_the_same_events_as_json() -> None:
    given = spans(span(attributes=[{"key": "n", "value": {"intValue": "7"}}]))
    (from_json,) = events_of(read("otlp-json", [given]))
    import base64

    wire = spans(span(attributes=[{"key": "n", "value": {"intValue": "7"}}]))
    item = wire["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    for name in ("traceId", "spanId"):
        item[name] = base64.b64encode(bytes.fromhex(item[name])).decode()
    raw = ParseDict(wire, TracesData()).SerializeToString()
    (from_wire,) = read_protobuf(raw, "spans", namespace=NAMESPACE, fallback_time=MODIFIED)
    assert isinstance(from_wire, Event)
    assert from_wire == from_json


def test_bytes_that_are_no_protobuf_are_unreadable() -> None:
    (item,) = unreadable_of(read_protobuf(b"\xff\xff\xff", "logs", namespace=NAMESPACE, fallback_time=MODIFIED))
    assert item.raw == b"\xff\xff\xff"

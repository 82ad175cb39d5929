"""Reads OpenTelemetry export requests, as OTLP/JSON and protobuf.

Each span, log record and metric data point is one event.

Identity: a span's trace and span id; a log record or data point is named by its content with its resource and scope,
equal ones within one request numbered, so that a request that was sent twice adds nothing.
Attributes become plain JSON objects. Ids are lower-case hex (base64, as protobuf's own JSON writes them, is accepted).
What has no column of its own (`flags`, `dropped…`, a scope's version) stays in the event's data.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import orjson

from processors.telemetry.formats.lines import MAX_COUNT, Mapped, Unreadable, count, filled, fingerprint, read_object
from processors.telemetry.formats.otlp_values import attributes, number_of, plain, severity_name, whole
from processors.telemetry.formats.transcript import Repeats
from streams.clock import format_time
from streams.event_types.telemetry import OTEL_LOG, OTEL_METRIC, OTEL_SPAN
from streams.events import Event
from streams.ids import derived_id
from streams.redaction import excerpt

SOURCE = "thalweg:import/otlp"
Signal = Literal["spans", "logs", "metrics"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPAN_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
_STATUSES = ("unset", "ok", "error")
_POINT_KINDS = {
    "sum": "sum",
    "gauge": "gauge",
    "histogram": "histogram",
    "exponentialHistogram": "exponential_histogram",
    "summary": "summary",
}
_SIGNALS = ("resourceSpans", "resourceLogs", "resourceMetrics")


class Mapper:
    """Reads one file of OTLP/JSON requests.

    It has a request a line, as the Collector's file exporter writes them, or is one request as a document.
    """

    def __init__(self, *, namespace: str, name: str, fallback_time: datetime) -> None:
        self._namespace = namespace
        self._fallback_time = fallback_time

    def line(self, number: int, raw: bytes) -> list[Mapped]:
        """The events of a request."""
        return read_request(raw, namespace=self._namespace, fallback_time=self._fallback_time, number=number)

    def end(self) -> list[Mapped]:
        """Nothing waits in this format."""
        return []


def read_request(raw: bytes, *, namespace: str, fallback_time: datetime, number: int = 1) -> list[Mapped]:
    """The events of one OTLP/JSON export request. A part that cannot be read is `Unreadable` with that part's JSON."""
    request = read_object(number, raw)
    if isinstance(request, Unreadable):
        return [request]
    if not any(name in request for name in _SIGNALS):
        return [
            Unreadable(number, raw, "not an OTLP request: it has none of resourceSpans, resourceLogs, resourceMetrics")
        ]
    reading = _Reading(namespace, fallback_time, number)
    readers: tuple[tuple[str, str, str, Callable[..., Iterator[Mapped]]], ...] = (
        ("resourceSpans", "scopeSpans", "spans", reading.span),
        ("resourceLogs", "scopeLogs", "logRecords", reading.log),
        ("resourceMetrics", "scopeMetrics", "metrics", reading.metric),
    )
    found: list[Mapped] = []
    for outer, middle, inner, read in readers:
        for part in _objects(request.get(outer)):
            resource = attributes(_object(part.get("resource")).get("attributes"))
            for scoped in _objects(
                part.get(middle) or part.get("instrumentationLibrary" + middle.removeprefix("scope"))
            ):
                about = _about(resource, _object(scoped.get("scope")))
                for item in _items(scoped.get(inner)):
                    try:
                        found.extend(read(_object(item, strict=True), about))
                    except (ValueError, TypeError, OverflowError, AttributeError) as error:
                        found.append(Unreadable(number, orjson.dumps(item), f"not readable as one of {inner}: {error}"))
    return found


def read_protobuf(raw: bytes, signal: Signal, *, namespace: str, fallback_time: datetime) -> list[Mapped]:
    """The events of one OTLP protobuf export request of the signal.

    The Collector's Kafka exporter writes such requests.
    """
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    messages: dict[str, Any] = {"spans": TracesData, "logs": LogsData, "metrics": MetricsData}
    request = messages[signal]()
    try:
        request.ParseFromString(raw)
        document = orjson.dumps(MessageToDict(request, use_integers_for_enums=True))
    except (DecodeError, ValueError, RecursionError) as error:
        return [Unreadable(1, raw, f"not an OTLP protobuf request of {signal}: {str(error)[:200]}")]
    if document == b"{}":
        return [Unreadable(1, raw, f"an OTLP protobuf request without {signal}")] if raw else []
    return read_request(document, namespace=namespace, fallback_time=fallback_time)


class _Reading:
    """One request: its namespace, and how often each content occurred in it."""

    def __init__(self, namespace: str, fallback_time: datetime, number: int) -> None:
        self._namespace = namespace
        self._fallback = fallback_time
        self._number = number
        self._repeats = Repeats()

    def span(self, span: dict[str, Any], about: dict[str, Any]) -> Iterator[Mapped]:
        trace_id, span_id = _hex(span.get("traceId"), 16), _hex(span.get("spanId"), 8)
        if trace_id is None or span_id is None:
            raise ValueError("a span needs a traceId of 16 bytes and a spanId of 8")
        start, end = _nanos(span.get("startTimeUnixNano")), _nanos(span.get("endTimeUnixNano"))
        status = _object(span.get("status"))
        data = {
            "trace_id": trace_id,
            "span_id": span_id,
            "parent_span_id": _hex(span.get("parentSpanId"), 8),
            "name": filled(span.get("name")) or "unnamed",
            "kind": _enum(span.get("kind"), _SPAN_KINDS, "SPAN_KIND_"),
            "started_at": _text(start),
            "ended_at": _text(end),
            "duration_ms": (end - start) / 1e6 if start and end and end >= start else None,
            "status": _enum(status.get("code"), _STATUSES, "STATUS_CODE_"),
            "status_message": filled(status.get("message")),
            "attributes": attributes(span.get("attributes")),
            "events": [
                {
                    "name": event.get("name"),
                    "time": _text(_nanos(event.get("timeUnixNano"))),
                    "attributes": attributes(event.get("attributes")),
                }
                for event in _objects(span.get("events"))
            ],
            "links": [
                {
                    "trace_id": _hex(link.get("traceId"), 16),
                    "span_id": _hex(link.get("spanId"), 8),
                    "attributes": attributes(link.get("attributes")),
                }
                for link in _objects(span.get("links"))
            ],
            **about,
            **_rest(span, "traceState", "flags", "droppedAttributesCount", "droppedEventsCount", "droppedLinksCount"),
        }
        yield self._event(f"{trace_id}/{span_id}", OTEL_SPAN, _moment(start or end) or self._fallback, data)

    def log(self, record: dict[str, Any], about: dict[str, Any]) -> Iterator[Mapped]:
        time, observed = _nanos(record.get("timeUnixNano")), _nanos(record.get("observedTimeUnixNano"))
        data = {
            "trace_id": _hex(record.get("traceId"), 16),
            "span_id": _hex(record.get("spanId"), 8),
            "event_name": filled(record.get("eventName")),
            "severity": filled(record.get("severityText")) or severity_name(record.get("severityNumber")),
            "body": plain(record.get("body")),
            "attributes": attributes(record.get("attributes")),
            "observed_at": _text(observed),
            **about,
            **_rest(record, "severityNumber", "flags", "droppedAttributesCount"),
        }
        data["event_name"] = data["event_name"] or filled(data["attributes"].get("event.name"))
        yield self._event(
            self._content("log", record, about), OTEL_LOG, _moment(time or observed) or self._fallback, data
        )

    def metric(self, metric: dict[str, Any], about: dict[str, Any]) -> Iterator[Mapped]:
        name = filled(metric.get("name"))
        field = next((field for field in _POINT_KINDS if isinstance(metric.get(field), dict)), None)
        if name is None or field is None:
            raise ValueError("a metric needs a name and one of " + ", ".join(_POINT_KINDS))
        holder = metric[field]
        common = {
            "name": name,
            "kind": _POINT_KINDS[field],
            "unit": filled(metric.get("unit")),
            **_rest(metric, "description"),
            **_rest(holder, "aggregationTemporality", "isMonotonic"),
        }
        for point in _objects(holder.get("dataPoints")):
            yield self._point(point, common, about)

    def _point(self, point: dict[str, Any], common: dict[str, Any], about: dict[str, Any]) -> Event:
        data = {
            **common,
            "value": number_of(point.get("asDouble", point.get("asInt"))),
            "count": count(whole(point.get("count"))),
            "sum": number_of(point.get("sum")),
            "started_at": _text(_nanos(point.get("startTimeUnixNano"))),
            "attributes": attributes(point.get("attributes")),
            "point": {name: whole(value) for name, value in point.items() if name not in _POINT_COLUMNS},
            **about,
        }
        content = self._content("point", [common, point], about)
        return self._event(content, OTEL_METRIC, _moment(_nanos(point.get("timeUnixNano"))) or self._fallback, data)

    def _content(self, kind: str, item: Any, about: dict[str, Any]) -> str:
        whole_item = orjson.dumps([about, item], option=orjson.OPT_SORT_KEYS)
        return derived_id("otlp", kind, self._repeats.name(kind + fingerprint(whole_item)))

    def _event(self, event_id: str, event_type: str, time: datetime, data: dict[str, Any]) -> Event:
        return Event(
            event_id,
            SOURCE,
            event_type,
            self._namespace,
            time,
            {name: value for name, value in data.items() if value is not None},
        )


_POINT_COLUMNS = ("attributes", "asDouble", "asInt", "count", "sum", "startTimeUnixNano", "timeUnixNano")


def _about(resource: dict[str, Any], scope: dict[str, Any]) -> dict[str, Any]:
    """What all items of a scope share."""
    about: dict[str, Any] = {"resource": resource, "scope": filled(scope.get("name"))}
    if filled(scope.get("version")):
        about["scope_version"] = scope["version"]
    if scope.get("attributes"):
        about["scope_attributes"] = attributes(scope["attributes"])
    return about


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in _items(value) if isinstance(item, dict)]


def _object(value: Any, *, strict: bool = False) -> dict[str, Any]:
    if strict and not isinstance(value, dict):
        raise TypeError("it is not an object")
    return value if isinstance(value, dict) else {}


def _rest(item: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: item[name] for name in names if item.get(name) not in (None, "", 0)}


def _hex(value: Any, size: int) -> str | None:
    """An id as lower-case hex; None when there is none, or only zeros. Raises ValueError for anything else."""
    if value is None or value == "":
        return None
    try:
        raw = bytes.fromhex(value) if len(value) == 2 * size else base64.b64decode(value, validate=True)
    except (ValueError, TypeError, binascii.Error):
        raise ValueError(f"{excerpt(str(value))!r} is not an id of {size} bytes") from None
    if len(raw) != size:
        raise ValueError(f"{excerpt(str(value))!r} is not an id of {size} bytes")
    return raw.hex() if any(raw) else None


def _nanos(value: Any) -> int | None:
    """Nanoseconds since 1970; None for 0 and for what is not a number."""
    nanos = whole(value)
    return nanos if isinstance(nanos, int) and 0 < nanos < MAX_COUNT * 1000 else None


def _moment(nanos: int | None) -> datetime | None:
    return None if nanos is None else _EPOCH + timedelta(microseconds=nanos // 1000)


def _text(nanos: int | None) -> str | None:
    moment = _moment(nanos)
    return None if moment is None else format_time(moment)


def _enum(value: Any, names: tuple[str, ...], prefix: str) -> str | None:
    """The name of an enum's value, which comes as a number or as its long name."""
    if isinstance(value, str):
        return value.removeprefix(prefix).lower() or None
    return names[value] if type(value) is int and 0 <= value < len(names) else None

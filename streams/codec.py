"""Encoding and decoding of records; what can never be applied is refused as Poison.

CloudEvents 1.0.2 over Kafka: binary mode (`ce_*` headers, the value is the data) and structured mode
(`content-type: application/cloudevents+json`). The data may be an array of observations, each
`{"id", "time"?, "subject"?, "type"?, "thalwegconnection"?, "data"}`; what one leaves out comes from the record's
envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, TypeVar

import jsonschema_rs
import orjson

from streams.clock import format_time, parse_time
from streams.errors import Poison, RecordRefused
from streams.events import CONNECTION, Event, LoggedEvent, event_types
from streams.ids import digest
from streams.log.base import UNREADABLE, Headers, Outgoing, Record
from streams.positions import Position
from streams.redaction import excerpt

Item = TypeVar("Item")
MAX_BYTES = 8 * 1024 * 1024
MAX_NAMESPACE = 128
MAX_ID = 512
STRUCTURED = "application/cloudevents+json"
_ATTRIBUTES = ("id", "source", "type", "specversion", "time", "subject", "datacontenttype", "dataschema")


def encode(topic: str, event: Event, *, partition: int | None = None) -> Outgoing:
    """Encode one event as one record, in binary mode."""
    return Outgoing(topic, event.namespace.encode(), orjson.dumps(event.data), _headers(event), partition)


def encode_batch(
    topic: str, envelope: Event, observations: Sequence[Event], *, partition: int | None = None
) -> Outgoing:
    """Encode observations as one record; `envelope` has its id and what they have in common."""
    items = []
    for event in observations:
        item: dict[str, Any] = {"id": event.id, "time": format_time(event.time), "data": event.data}
        if event.type != envelope.type:
            item["type"] = event.type
        if event.subject is not None:
            item["subject"] = event.subject
        if event.connection is not None:
            item[CONNECTION] = event.connection
        items.append(item)
    return Outgoing(topic, envelope.namespace.encode(), orjson.dumps(items), _headers(envelope), partition)


def encode_batches(
    topic: str,
    envelope: Callable[[Sequence[Event]], Event],
    observations: Sequence[Event],
    largest: int,
    *,
    partition: int | None = None,
) -> list[Outgoing]:
    """Encode observations as records of at most `largest` bytes of data each, by halving.

    `envelope` makes the envelope of a record from its observations.
    """
    record = encode_batch(topic, envelope(observations), observations, partition=partition)
    if len(observations) < 2 or len(record.value or b"") <= largest:
        return [record]
    half = len(observations) // 2
    halves = observations[:half], observations[half:]
    return [part for some in halves for part in encode_batches(topic, envelope, some, largest, partition=partition)]


def _headers(event: Event) -> Headers:
    headers = [
        ("content-type", b"application/json"),
        ("ce_specversion", b"1.0"),
        ("ce_id", event.id.encode()),
        ("ce_source", event.source.encode()),
        ("ce_type", event.type.encode()),
        ("ce_time", format_time(event.time).encode()),
    ]
    if event.subject is not None:
        headers.append(("ce_subject", event.subject.encode()))
    headers.extend((f"ce_{name}", value.encode()) for name, value in event.extensions.items())
    if "traceparent" in event.extensions:
        # `ce_traceparent` is the origin's and stays; a forwarder replaces this one by its own
        headers.append(("traceparent", event.extensions["traceparent"].encode()))
    return tuple(headers)


Reject = Callable[[int, Poison], None]
"""Called for an observation that cannot be applied, with its place in the array and the reason."""


def decode(record: Record, reject: Reject = lambda index, reason: None) -> list[LoggedEvent]:
    """Decode the events of a record, each checked against its type's schema. Raises Poison with the reason.

    An observation of an array that cannot be applied is passed to `reject`; the others are returned.
    """
    check_readable(record)
    namespace = _namespace(record.key)
    if record.value is None:
        raise Poison("The record has no value; a CloudEvent's data is expected.")
    if len(record.value) > MAX_BYTES:
        raise Poison(f"The value has {len(record.value)} bytes; at most {MAX_BYTES} are accepted.")
    headers = {name.lower(): _text(value, f"the header {excerpt(name)}") for name, value in record.headers}
    body = _parse(record.value)
    if _is_structured(headers):
        if not isinstance(body, dict):
            raise Poison("A structured CloudEvent is a JSON object.")
        attributes = {name: value for name, value in body.items() if name not in ("data", "data_base64")}
        body = body.get("data")
    else:
        attributes = {name[3:]: value for name, value in headers.items() if name.startswith("ce_")}
    if "traceparent" in headers:
        attributes.setdefault("traceparent", headers["traceparent"])
    envelope = _envelope(attributes, namespace, record.timestamp_ms)
    position = record.position
    if isinstance(body, list):
        found = []
        for index, item in enumerate(body):
            try:
                found.append(_observation(envelope, item, position, index))
            except Poison as reason:
                reject(index, Poison(f"Observation {index}: {reason.message}"))
        return found
    validate(envelope.type, body, position.topic)
    event = envelope.changed(data=body)
    return [LoggedEvent(event, position, 0, digest(record.value), event.key)]


def observation_alone(record: Record, index: int) -> Record | None:
    """The record with one observation of its array; None when its data is not an array."""
    body = _body_of(record.value or b"")
    headers = {name.lower(): value for name, value in record.headers}
    structured = _is_structured(headers)
    items = body.get("data") if structured else body
    if not isinstance(items, list):
        return None
    item = items[index]
    if isinstance(item, dict) and "id" not in item:
        envelope_id = body.get("id") if structured else (headers.get("ce_id") or b"").decode()
        item = {"id": f"{envelope_id}/{index}", **item}
    return replace(record, value=orjson.dumps({**body, "data": [item]} if structured else [item]))


@lru_cache(maxsize=1)
def _body_of(value: bytes) -> Any:
    """The parsed value, which must not be changed.

    Cached, so that an array of bad observations is parsed once and not once for each of them.
    """
    return orjson.loads(value)


def source_and_type(record: Record) -> tuple[str | None, str | None]:
    """The CloudEvents source and type of a record, which may be poison; None for what is missing."""
    named: Mapping[str, Any] = {name.lower().removeprefix("ce_"): value for name, value in record.headers}
    if _is_structured(named):
        try:
            body = orjson.loads(record.value or b"")
        except orjson.JSONDecodeError:
            body = None
        named = body if isinstance(body, dict) else {}
    found = []
    for name in ("source", "type"):
        value = named.get(name)
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        found.append(text[:MAX_ID] if isinstance(text, str) and text else None)
    return found[0], found[1]


def _is_structured(headers: Mapping[str, Any]) -> bool:
    """Whether the content type says so. `headers`: bytes or texts by their names in lower case."""
    given = headers.get("content-type") or ""
    text = given.decode("latin-1") if isinstance(given, bytes) else given
    return bool(text.split(";")[0].strip() == STRUCTURED)


def check_readable(record: Record) -> None:
    """Raise Poison for a record that replaces records which the log cannot return."""
    for name, value in record.headers:
        if name == UNREADABLE:
            raise Poison(value.decode("utf-8", "replace"))


def validate(event_type: str, data: Any, topic: str | None = None) -> None:
    """Raise Poison unless `data` fits the schema of its type, and the type belongs on `topic`."""
    known = event_types().get(event_type)
    if known is None:
        raise Poison(f"The event type {excerpt(event_type)!r} is not known; docs/topics.md lists those that are.")
    if topic is not None and known.topic != topic:
        raise Poison(f"The event type {event_type!r} belongs on {known.topic}, not on {topic}.")
    validator = _validator(event_type)
    if not validator.is_valid(data):
        error = next(iter(validator.iter_errors(data)))
        place = ".".join(map(str, error.instance_path)) or "data"
        raise Poison(f"{event_type}: {excerpt(place)}: {_mistake(error)}")


def _mistake(error: Any) -> str:
    """The mistake in a sentence; for an enum it lists all values, where the library's message lists two."""
    if error.kind.name != "enum":
        return excerpt(error.message, 300)
    accepted = ", ".join(orjson.dumps(value).decode() for value in error.kind.options)
    return f"{excerpt(orjson.dumps(error.instance).decode())} is not one of {accepted}"


@cache
def _validator(event_type: str) -> Any:
    return jsonschema_rs.validator_for(dict(event_types()[event_type].schema), mask="the value")


def _namespace(key: bytes | None) -> str:
    if not key:
        raise Poison("The record has no key; the key is the namespace.")
    namespace = _text(key, "the key")
    if len(namespace) > MAX_NAMESPACE or not namespace.isprintable():
        raise Poison(f"The key is not a namespace: at most {MAX_NAMESPACE} printable characters.")
    return namespace


def _text(raw: bytes | None, what: str) -> str:
    try:
        text = (raw or b"").decode()
    except UnicodeDecodeError:
        raise Poison(f"{what[0].upper()}{what[1:]} is not UTF-8.") from None
    if "\0" in text:
        raise Poison(f"{what[0].upper()}{what[1:]} has a NUL character.")
    return text


def _parse(value: bytes) -> Any:
    try:
        body = orjson.loads(value)  # refuses NaN, infinity, lone surrogates, invalid UTF-8 and deep nesting
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise Poison(f"The value is not JSON: {error}") from None
    if value.rfind(b"\\u0000") >= 0 and _has_nul(body):  # bytes are searched twice as fast from their end
        raise Poison("A text has a NUL character (\\u0000).")
    return body


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any("\0" in name or _has_nul(item) for name, item in value.items())
    return isinstance(value, list) and any(_has_nul(item) for item in value)


def _envelope(attributes: Mapping[str, Any], namespace: str, timestamp_ms: int) -> Event:
    if attributes.get("specversion", "1.0") != "1.0":
        raise Poison(f"CloudEvents specversion {excerpt(str(attributes['specversion']))!r} is not 1.0.")
    for name in ("id", "source", "type"):
        value = attributes.get(name)
        if not isinstance(value, str) or not value:
            raise Poison(f"The CloudEvents attribute {name!r} is missing.")
        if len(value) > MAX_ID:
            raise Poison(f"The CloudEvents attribute {name!r} is longer than {MAX_ID} characters.")
    return Event(
        id=attributes["id"],
        source=attributes["source"],
        type=attributes["type"],
        namespace=namespace,
        time=_time(attributes.get("time"), timestamp_ms),
        data={},
        subject=_subject(attributes.get("subject")),
        extensions=_extensions(attributes),
    )


def _time(value: Any, timestamp_ms: int) -> datetime:
    if value is None:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    try:
        return parse_time(value)
    except (ValueError, TypeError, OverflowError):
        raise Poison(f"The time {excerpt(str(value))!r} is not RFC 3339.") from None


def _extensions(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Every attribute that CloudEvents does not define, as text; null is none."""
    given = {name: str(value) for name, value in attributes.items() if name not in _ATTRIBUTES and value is not None}
    return given | _connection(attributes.get(CONNECTION))


def _connection(value: Any) -> dict[str, str]:
    """The extension attribute, where an event or observation has it. A whole number is its digits."""
    if value is None:
        return {}
    if isinstance(value, bool | float | list | dict) or len(str(value)) > MAX_ID:
        raise Poison(f"The CloudEvents attribute {CONNECTION!r} is not a text of at most {MAX_ID} characters.")
    return {CONNECTION: str(value)}


def _subject(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and len(value) <= MAX_ID):
        return value
    raise Poison(f"The CloudEvents attribute 'subject' is not a text of at most {MAX_ID} characters.")


def _observation(envelope: Event, item: Any, position: Position, index: int) -> LoggedEvent:
    if not isinstance(item, dict):
        raise Poison("It is not an object.")
    identifier = item.get("id", f"{envelope.id}/{index}")
    if not isinstance(identifier, str) or not 0 < len(identifier) <= MAX_ID:
        raise Poison(f"'id' is not a text of 1 to {MAX_ID} characters.")
    event_type = item.get("type", envelope.type)
    if not isinstance(event_type, str):
        raise Poison("'type' is not a text.")
    time = parse_or(item.get("time"), envelope.time)
    subject = _subject(item.get("subject", envelope.subject))
    extensions = {**envelope.extensions, **_connection(item.get(CONNECTION))}
    body: Any = item.get("data")
    validate(event_type, body, position.topic)
    event = Event(identifier, envelope.source, event_type, envelope.namespace, time, body, subject, extensions)
    return LoggedEvent(event, position, index, observation_digest(body), event.key)


def observation_digest(body: Any) -> int:
    """The digest of an observation's data, independent of the order of its fields."""
    return digest(orjson.dumps(body, option=orjson.OPT_SORT_KEYS))


def parse_or(value: Any, otherwise: datetime) -> datetime:
    """The time in `value`, or `otherwise` when it is None. Raises Poison."""
    return otherwise if value is None else _time(value, 0)


def check_size(record: Outgoing) -> None:
    """Raise RecordRefused for a record that `decode` would refuse for its size."""
    size = len(record.value or b"")
    if size > MAX_BYTES:
        raise RecordRefused(f"This has {size} bytes; at most {MAX_BYTES} are accepted. Send it in parts.")


def in_parts(items: Sequence[Item], largest: int) -> list[list[Item]]:
    """Split items into lists of at most `largest` bytes of JSON; a larger item is a list by itself."""
    parts: list[list[Item]] = []
    size = largest
    for item in items:
        own = len(orjson.dumps(item)) + 1
        if size + own > largest:
            parts.append([])
            size = 0
        parts[-1].append(item)
        size += own
    return parts

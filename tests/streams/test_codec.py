"""Events to records and back.

What was encoded decodes to the same, and what can never work is refused with a reason.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.codec import MAX_BYTES, check_size, decode, encode, encode_batch, in_parts, observation_alone, validate
from streams.errors import Poison, RecordRefused
from streams.events import CONNECTION, Event, event_types, wire_type
from streams.log.base import Headers, Outgoing, Record
from streams.positions import Position
from streams.topics import MEMORY, TELEMETRY

LINE = wire_type("session.event")
FRICTION = wire_type("talos.friction.logged")
NOON = datetime(2026, 11, 21, 12, 0, 0, 250_000, tzinfo=UTC)

# What JSON and a Kafka header can both carry: no NUL, no lone surrogate.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
filled = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60)
namespaces = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=128)
times = st.datetimes(timezones=st.just(UTC))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
reserved = {"id", "source", "type", "specversion", "time", "subject", "datacontenttype", "dataschema"}
extensions = st.dictionaries(
    st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=20).filter(lambda n: n not in reserved), texts
)
lines = st.fixed_dictionaries(
    {"session_id": filled, "event_type": filled}, optional={"payload": json_values, "text": st.none() | texts}
)
events = st.builds(
    Event,
    id=filled,
    source=filled,
    type=st.just(LINE),
    namespace=namespaces,
    time=times,
    data=lines,
    subject=st.none() | texts,
    extensions=extensions,
)


def on_the_log(out: Outgoing, offset: int = 7) -> Record:
    return Record(out.topic, out.partition or 0, offset, 1_795_238_605_262, out.key, out.value, out.headers)


def an_event(**changes: Any) -> Event:
    fields: dict[str, Any] = {
        "id": "id-1",
        "source": "urn:test",
        "type": LINE,
        "namespace": "team",
        "time": NOON,
        "data": {"session_id": "s", "event_type": "user"},
    }
    return Event(**{**fields, **changes})


# --- round trips


@given(events)
def test_every_event_decodes_to_what_was_encoded(event: Event) -> None:
    (logged,) = decode(on_the_log(encode(TELEMETRY.name, event)))
    assert logged.event == event
    assert (logged.position, logged.index) == (Position(TELEMETRY.name, 0, 7), 0)


@given(events, st.lists(st.tuples(filled, times, lines, st.none() | texts), max_size=5))
def test_every_batch_decodes_to_its_observations_in_order(
    envelope: Event, parts: list[tuple[str, datetime, Any, str | None]]
) -> None:
    observed = [
        Event(identifier, envelope.source, LINE, envelope.namespace, time, data, subject, envelope.extensions)
        for identifier, time, data, subject in parts
    ]
    logged = decode(on_the_log(encode_batch(TELEMETRY.name, envelope, observed)))
    assert [item.index for item in logged] == list(range(len(parts)))
    for event, item in zip(observed, logged, strict=True):
        inherited = event.subject if event.subject is not None else envelope.subject
        assert item.event == Event(
            event.id, event.source, event.type, event.namespace, event.time, event.data, inherited, event.extensions
        )


def test_an_observation_may_have_another_type_than_its_record() -> None:
    mixed = an_event(id="two", type=wire_type("otel.metric"), data={"name": "load", "kind": "gauge"})
    logged = decode(on_the_log(encode_batch(TELEMETRY.name, an_event(), [an_event(id="one"), mixed])))
    assert [(item.event.id, item.event.type) for item in logged] == [("one", LINE), ("two", wire_type("otel.metric"))]


def test_an_observation_without_an_id_is_named_by_its_place() -> None:
    out = encode(TELEMETRY.name, an_event(id="batch"))
    value = orjson.dumps([{"data": {"session_id": "s", "event_type": "user"}}] * 2)
    logged = decode(on_the_log(Outgoing(out.topic, out.key, value, out.headers)))
    assert [item.event.id for item in logged] == ["batch/0", "batch/1"]
    assert logged[0].event.time == NOON


def test_an_encoded_event_is_a_binary_mode_cloudevent_keyed_by_its_namespace() -> None:
    out = encode(
        TELEMETRY.name, an_event(subject="s", extensions={"traceparent": "00-a-b-01", "tenant": "7"}), partition=3
    )
    assert (out.topic, out.key, out.partition) == (TELEMETRY.name, b"team", 3)
    assert dict(out.headers) == {
        "content-type": b"application/json",
        "ce_specversion": b"1.0",
        "ce_id": b"id-1",
        "ce_source": b"urn:test",
        "ce_type": LINE.encode(),
        "ce_time": b"2026-11-21T12:00:00.250000Z",
        "ce_subject": b"s",
        "ce_traceparent": b"00-a-b-01",
        "traceparent": b"00-a-b-01",
        "ce_tenant": b"7",
    }


def test_the_origins_trace_context_outlives_every_hop() -> None:
    out = encode(TELEMETRY.name, an_event(extensions={"traceparent": "00-origin-b-01"}))
    headers = tuple((name, b"00-hop-b-01" if name == "traceparent" else value) for name, value in out.headers)
    (logged,) = decode(on_the_log(Outgoing(out.topic, out.key, out.value, headers)))
    assert logged.event.extensions["traceparent"] == "00-origin-b-01"


@pytest.mark.parametrize(
    ("given", "read"), [("c" * 300, "c" * 300), ("seven ängste", "seven ängste"), ("", None), (7, "7"), (None, None)]
)
def test_the_connection_of_an_event_is_its_extension_attribute_in_both_modes(given: Any, read: str | None) -> None:
    data = {"description": "slow", "category": "tooling"}
    body = structured(specversion="1.0", id="5", source="s", type=FRICTION, thalwegconnection=given, data=data)
    assert [logged.event.connection for logged in decode(on_the_log(body))] == [read]
    header = with_header("ce_thalwegconnection", None if given is None else str(given).encode())
    assert [logged.event.connection for logged in decode(on_the_log(header))] == [read]


def test_an_observation_has_its_own_connection_or_that_of_its_record_and_neither_is_in_its_digest() -> None:
    over = {name: an_event(id=name, extensions={CONNECTION: name}) for name in ("press", "kiln")}
    plain = an_event(id="plain")
    out = encode_batch(TELEMETRY.name, an_event(extensions={CONNECTION: "record"}), [*over.values(), plain])
    press, kiln, other = decode(on_the_log(out))
    assert [logged.event.connection for logged in (press, kiln, other)] == ["press", "kiln", "record"]
    assert press.digest == kiln.digest == other.digest
    refused: list[str] = []
    value = orjson.dumps([{"thalwegconnection": ["c"], "data": plain.data}])
    bad = on_the_log(Outgoing(out.topic, out.key, value, out.headers))
    assert decode(bad, lambda _, why: refused.append(why.message)) == []
    assert refused == [
        "Observation 0: The CloudEvents attribute 'thalwegconnection' is not a text of at most 512 characters."
    ]


def test_an_event_without_a_time_happened_when_it_was_appended() -> None:
    out = encode(TELEMETRY.name, an_event())
    headers = tuple(pair for pair in out.headers if pair[0] != "ce_time")
    (logged,) = decode(on_the_log(Outgoing(out.topic, out.key, out.value, headers)))
    assert logged.event.time == datetime.fromtimestamp(1_795_238_605.262, UTC)


def test_the_digest_tells_a_resend_from_another_body_under_the_same_id() -> None:
    (one,) = decode(on_the_log(encode(TELEMETRY.name, an_event())))
    (again,) = decode(on_the_log(encode(TELEMETRY.name, an_event()), offset=8))
    (other,) = decode(
        on_the_log(encode(TELEMETRY.name, an_event(data={"session_id": "s", "event_type": "system"})), offset=9)
    )
    assert one.key == again.key == other.key
    assert one.digest == again.digest != other.digest


def test_unknown_fields_are_kept() -> None:
    data = {"session_id": "s", "event_type": "user", "from_the_future": {"a": [1]}}
    (logged,) = decode(on_the_log(encode(TELEMETRY.name, an_event(data=data))))
    assert logged.event.data == data


def test_header_names_are_read_without_regard_to_case() -> None:
    out = encode(TELEMETRY.name, an_event())
    shouted = tuple((name.upper(), value) for name, value in out.headers)
    (logged,) = decode(on_the_log(Outgoing(out.topic, out.key, out.value, shouted)))
    assert logged.event.id == "id-1"
    line = orjson.dumps([{"data": {"session_id": "s", "event_type": "user"}}] * 2)
    batch = on_the_log(Outgoing(out.topic, out.key, line, shouted))
    alone = observation_alone(batch, 1)
    assert alone is not None and decode(alone)[0].event.id == decode(batch)[1].event.id == "id-1/1"


# --- what can never work (recipe R7)

GOOD = encode(MEMORY.name, an_event(type=FRICTION, data={"description": "slow", "category": "tooling"}))


def with_value(value: bytes | None) -> Outgoing:
    return Outgoing(GOOD.topic, GOOD.key, value, GOOD.headers)


def with_header(name: str, value: bytes | None) -> Outgoing:
    """GOOD with another value of one header, or without it."""
    kept: Headers = tuple(pair for pair in GOOD.headers if pair[0] != name)
    return Outgoing(GOOD.topic, GOOD.key, GOOD.value, kept if value is None else (*kept, (name, value)))


def structured(**attributes: Any) -> Outgoing:
    return Outgoing(
        GOOD.topic, GOOD.key, orjson.dumps(attributes), (("content-type", b"application/cloudevents+json"),)
    )


POISON = {
    "not JSON": (with_value(b"hello"), "not JSON"),
    "truncated JSON": (with_value((GOOD.value or b"")[:-1]), "not JSON"),
    "empty value": (with_value(b""), "not JSON"),
    "no value": (with_value(None), "no value"),
    "invalid UTF-8": (with_value(b'{"description": "\xff", "category": "tooling"}'), "not JSON"),
    "wrong schema: a field is missing": (with_value(b'{"description": "slow"}'), "category"),
    "wrong schema: another type": (with_value(b'{"description": 5, "category": "tooling"}'), "description"),
    "wrong schema: not of the enumeration": (with_value(b'{"description": "slow", "category": "weather"}'), "category"),
    "wrong schema: a number for an object": (with_value(b"5"), "data"),
    "wrong schema: null": (with_value(b"null"), "data"),
    "unknown type": (with_header("ce_type", b"thalweg.talos.friction.invented.v1"), "not known"),
    "unknown version": (with_header("ce_type", b"thalweg.talos.friction.logged.v2"), "not known"),
    "a type of another topic": (with_header("ce_type", LINE.encode()), "belongs on thalweg.telemetry.v1"),
    "another CloudEvents version": (with_header("ce_specversion", b"0.3"), "specversion"),
    "ten megabytes": (
        with_value(b'{"description": "%s", "category": "tooling"}' % (b"x" * 10_000_000)),
        f"at most {MAX_BYTES}",
    ),
    "deep nesting": (with_value(b"[" * 100_000 + b"]" * 100_000), "not JSON"),
    "deep nesting of objects": (with_value(b'{"a":' * 5_000 + b"1" + b"}" * 5_000), "not JSON"),
    "a lone surrogate": (with_value(b'{"description": "\\ud800", "category": "tooling"}'), "not JSON"),
    "NaN": (with_value(b'{"description": "slow", "category": "tooling", "x": NaN}'), "not JSON"),
    "infinity": (with_value(b'{"description": "slow", "category": "tooling", "x": Infinity}'), "not JSON"),
    "a NUL character": (with_value(b'{"description": "a\\u0000b", "category": "tooling"}'), "NUL"),
    "a NUL character in a name": (with_value(b'{"description": "a", "category": "tooling", "\\u0000": 1}'), "NUL"),
    "no key": (Outgoing(GOOD.topic, None, GOOD.value, GOOD.headers), "no key"),
    "an empty key": (Outgoing(GOOD.topic, b"", GOOD.value, GOOD.headers), "no key"),
    "a key that is not UTF-8": (Outgoing(GOOD.topic, b"\xff", GOOD.value, GOOD.headers), "key is not UTF-8"),
    "a key that cannot be printed": (Outgoing(GOOD.topic, b"a\nb", GOOD.value, GOOD.headers), "not a namespace"),
    "a key that is too long": (Outgoing(GOOD.topic, b"n" * 129, GOOD.value, GOOD.headers), "not a namespace"),
    "no id": (with_header("ce_id", None), "'id' is missing"),
    "an empty id": (with_header("ce_id", b""), "'id' is missing"),
    "an id that is too long": (with_header("ce_id", b"i" * 513), "longer than 512"),
    "no source": (with_header("ce_source", None), "'source' is missing"),
    "no type": (with_header("ce_type", None), "'type' is missing"),
    "no headers at all": (Outgoing(GOOD.topic, GOOD.key, GOOD.value), "missing"),
    "a header that is not UTF-8": (with_header("ce_id", b"\xff"), "not UTF-8"),
    "a header with a NUL character": (with_header("ce_id", b"a\0b"), "NUL"),
    "a time that is none": (with_header("ce_time", b"yesterday"), "RFC 3339"),
    "a time beyond the calendar": (with_header("ce_time", b"0001-01-01T00:00:00+23:59"), "RFC 3339"),
    "a subject that is too long": (with_header("ce_subject", b"s" * 513), "subject"),
    "structured mode without an object": (
        Outgoing(GOOD.topic, GOOD.key, b"[]", (("content-type", b"application/cloudevents+json"),)),
        "JSON object",
    ),
    "structured mode without attributes": (structured(data={}), "missing"),
    "structured mode, the id a number": (structured(id=5, source="s", type=FRICTION, data={}), "'id' is missing"),
    "structured mode, the subject a number": (
        structured(id="5", source="s", type=FRICTION, subject=5, data={}),
        "subject",
    ),
    "a connection that is too long": (with_header("ce_thalwegconnection", b"c" * 513), "'thalwegconnection' is not"),
    "structured mode, the connection a list": (
        structured(id="5", source="s", type=FRICTION, thalwegconnection=["c"], data={}),
        "at most 512 characters",
    ),
    "structured mode, the connection true": (
        structured(id="5", source="s", type=FRICTION, thalwegconnection=True, data={}),
        "at most 512 characters",
    ),
    "structured mode, the time a number": (structured(id="5", source="s", type=FRICTION, time=5, data={}), "RFC 3339"),
    "structured mode without data": (structured(id="5", source="s", type=FRICTION), "data"),
}


REJECTED = {
    "not an object": (b'"slow"', "not an object"),
    "a number for an id": (b'{"id": 5, "data": {}}', "'id' is not a text"),
    "without data": (b'{"id": "5"}', "data"),
    "a list for a type": (b'{"id": "5", "type": ["x"], "data": {}}', "'type' is not a text"),
    "another schema": (b'{"id": "5", "data": {"description": "slow", "category": "weather"}}', "category"),
    "a time that is none": (b'{"id": "5", "time": "soon", "data": {}}', "RFC 3339"),
}


@pytest.mark.parametrize(("item", "reason"), REJECTED.values(), ids=REJECTED.keys())
@pytest.mark.parametrize("in_structured_mode", [False, True])
def test_one_bad_observation_of_an_array_is_rejected_with_its_place_and_the_others_stand(
    item: bytes, reason: str, in_structured_mode: bool
) -> None:
    good = GOOD.value or b""
    items = b'[{"data": %s}, %s, {"id": "z", "data": %s}, {"data": %s}]' % (good, item, good, good)
    out = with_value(items)
    if in_structured_mode:
        attributes = b'{"id": "e", "source": "s", "type": "%s", "data": ' % FRICTION.encode()
        out = Outgoing(
            GOOD.topic, GOOD.key, attributes + items + b"}", (("content-type", b"application/cloudevents+json"),)
        )
    rejected: list[tuple[int, Poison]] = []
    record = on_the_log(out)
    kept = decode(record, lambda index, why: rejected.append((index, why)))
    assert [logged.index for logged in kept] == [0, 2, 3]
    [(index, why)] = rejected
    assert index == 1 and why.message.startswith("Observation 1: ") and reason in why.message
    for logged in kept:  # alone, an observation is the same event, also one that has its id from its place
        alone = observation_alone(record, logged.index)
        assert alone is not None
        [again] = decode(alone)
        assert (again.key, again.digest, again.event) == (logged.key, logged.digest, logged.event)
    assert observation_alone(on_the_log(GOOD), 0) is None


@pytest.mark.parametrize(("out", "reason"), POISON.values(), ids=POISON.keys())
def test_what_can_never_work_is_poison_with_a_reason(out: Outgoing, reason: str) -> None:
    with pytest.raises(Poison, match=reason) as poison:
        decode(on_the_log(out))
    assert poison.value.message.endswith((".", ")")) or ":" in poison.value.message
    assert len(poison.value.message) < 1000


@given(
    st.none() | st.binary(max_size=200),
    st.none() | st.binary(max_size=20),
    st.lists(st.tuples(texts, st.binary(max_size=30)), max_size=5),
)
def test_whatever_lies_on_the_log_is_an_event_or_poison(
    value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes]]
) -> None:
    try:
        decode(Record(MEMORY.name, 0, 0, 0, key, value, tuple(headers)))
    except Poison:
        pass


@given(json_values, st.booleans())
def test_whatever_json_a_known_producer_sends_is_an_event_or_poison(body: Any, in_structured_mode: bool) -> None:
    attributes = {"id": "1", "source": "s", "type": FRICTION, "specversion": "1.0"}
    out = structured(**{**attributes, "data": body}) if in_structured_mode else with_value(orjson.dumps(body))
    try:
        decode(on_the_log(out))
    except Poison:
        pass


# --- the small ones


def test_validate_names_the_place_that_is_wrong() -> None:
    with pytest.raises(Poison, match=r"category"):
        validate(FRICTION, {"description": "slow", "category": "weather"})
    validate(FRICTION, {"description": "slow", "category": "tooling"}, MEMORY.name)


def test_a_record_that_would_not_be_accepted_back_is_refused_with_its_size_and_the_limit() -> None:
    check_size(with_value(None))
    check_size(with_value(b"x" * MAX_BYTES))
    with pytest.raises(RecordRefused, match=f"{MAX_BYTES + 1} bytes; at most {MAX_BYTES}"):
        check_size(with_value(b"x" * (MAX_BYTES + 1)))


@given(st.lists(st.text(max_size=200)), st.integers(1, 500))
def test_items_in_parts_are_all_there_in_order_and_no_part_that_could_be_cut_is_larger(
    items: list[str], largest: int
) -> None:
    parts = in_parts(items, largest)
    assert [item for part in parts for item in part] == items
    assert all(part for part in parts)
    assert all(len(part) == 1 or sum(len(orjson.dumps(item)) for item in part) <= largest for part in parts)


@pytest.mark.parametrize(
    "event_type, place, data",
    [
        (wire_type("talos.journal.written"), "category", {"content": "The river bends."}),
        (FRICTION, "category", {"description": "The build is slow."}),
        (wire_type("tool.invoked"), "outcome", {"tool": "reflect"}),
        (wire_type("valence.belief.created"), "source_type", {"content": "The river bends."}),
    ],
)
def test_a_value_that_is_none_of_the_choices_is_refused_with_every_choice(
    event_type: str, place: str, data: dict[str, Any]
) -> None:
    with pytest.raises(Poison) as refused:
        validate(event_type, {**data, place: "something else " * 20})
    said = refused.value.message
    choices = event_types()[event_type].schema["properties"][place]["enum"]
    assert said.startswith(f'{event_type}: {place}: "something else') and len(said) < 400
    assert (
        said.endswith("is not one of " + ", ".join(orjson.dumps(choice).decode() for choice in choices))
        and len(choices) > 3
    )

"""Producers that know nothing of this program publish to the log.

Their events become rows, what is no event a dead letter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from streams.log import open_log
from streams.log.base import Outgoing
from streams.topics import MEMORY, TELEMETRY
from tests.e2e.program import Program
from tests.kafka.rig.broker import Broker
from tests.kafka.rig.shared import require_rig
from tests.node_process import Client, NodeProcess
from thalweg.control.requests import ask

pytestmark = pytest.mark.timeout(300)

JOURNAL = {"content": "I realized that brokers outlive us.", "category": "insight"}
SESSION_EVENT = {"session_id": "s-1", "event_type": "user", "role": "user", "text": "Hello from elsewhere."}


def binary(topic: str, event_id: str, event_type: str, data: object, key: bytes = b"default") -> Outgoing:
    """A CloudEvent in binary mode: attributes in headers, the value is the data."""
    headers = (
        ("content-type", b"application/json"),
        ("ce_specversion", b"1.0"),
        ("ce_id", event_id.encode()),
        ("ce_source", b"urn:elsewhere"),
        ("ce_type", event_type.encode()),
        ("ce_time", b"2026-11-21T05:00:00Z"),
    )
    return Outgoing(topic, key, orjson.dumps(data), headers)


def structured(topic: str, event_id: str, event_type: str, data: object, key: bytes = b"default") -> Outgoing:
    """The same in structured mode: all of it in the value."""
    event = {"specversion": "1.0", "id": event_id, "source": "urn:elsewhere", "type": event_type, "data": data}
    return Outgoing(
        topic, key, orjson.dumps(event), (("content-type", b"application/cloudevents+json; charset=utf-8"),)
    )


def with_header(record: Outgoing, name: str, value: str) -> Outgoing:
    return replace(record, headers=(*record.headers, (name, value.encode())))


def with_attribute(record: Outgoing, name: str, value: object) -> Outgoing:
    """The structured event with one attribute more."""
    return replace(record, value=orjson.dumps({**orjson.loads(record.value or b""), name: value}))


async def send(node: NodeProcess, records: Sequence[Outgoing]) -> None:
    """By a plain Kafka client; on the embedded log by a second process' worth of `streams.log`."""
    if node.broker:
        producer = AIOKafkaProducer(bootstrap_servers=node.broker.removeprefix("kafka://"), enable_idempotence=True)
        await producer.start()
        for record in records:
            await producer.send_and_wait(record.topic, record.value, record.key, headers=list(record.headers))
        await producer.stop()
        return
    log = open_log(f"sqlite://{node.home / 'log.db'}")
    await log.start()
    await log.publish(records, timeout_s=60.0)
    await log.stop()


async def test_events_in_binary_and_structured_mode_become_rows(thalweg: Program, node: NodeProcess) -> None:
    written, observed = "thalweg.talos.journal.written.v1", "thalweg.session.event.v1"
    await send(
        node,
        [
            binary(MEMORY.name, "j-1", written, JOURNAL),
            structured(MEMORY.name, "j-2", written, {**JOURNAL, "content": "I realized more."}),
            binary(TELEMETRY.name, "t-1", observed, SESSION_EVENT),
            structured(TELEMETRY.name, "t-2", observed, SESSION_EVENT),
        ],
    )
    node.settle()
    assert thalweg.sql("SELECT event_id, content FROM journal ORDER BY 1") == [
        ["j-1", JOURNAL["content"]],
        ["j-2", "I realized more."],
    ]
    assert thalweg.sql("SELECT count(*) FROM entities_live WHERE label = 'Insight'") == [[2]]
    assert thalweg.sql("SELECT event_id, text FROM session_events ORDER BY 1") == [
        [n, SESSION_EVENT["text"]] for n in ("t-1", "t-2")
    ]
    assert thalweg.sql("SELECT count(*) FROM dead_letters") == [[0]]


async def test_a_producers_memories_are_found_by_the_tools_as_their_own(thalweg: Program, node: NodeProcess) -> None:
    kind, tides = "thalweg.context.memory.stored.v1", {"content": "Tides turn twice a day.", "tags": ["sea"]}
    await send(
        node,
        [
            binary(MEMORY.name, "m-1", kind, tides),
            structured(MEMORY.name, "m-2", kind, {**tides, "importance": 0.9, "tags": ["moon"]}),
            binary(MEMORY.name, "m-3", kind, {**tides, "modality": "smell"}),
            binary(MEMORY.name, "m-4", kind, {"content": "  "}),
        ],
    )
    node.settle()
    assert thalweg.sql("SELECT content, times, importance, tags FROM context_memories") == [
        [tides["content"], 2, 0.9, ["sea", "moon"]]
    ]
    [row] = Client(node.home).call("search_graph", {"query": "When do tides turn?"})["results"]
    assert row["content"] == tides["content"] and row["tags"] == ["sea", "moon"]
    assert thalweg.sql("SELECT count(*) FROM dead_letters WHERE stage = 'materialise'") == [[1]]
    assert thalweg.sql("SELECT status FROM outcomes WHERE code = 'invalid_argument'") == [["refused"]]


async def test_a_producers_writes_over_one_connection_belong_together_and_a_bad_one_is_a_dead_letter(
    thalweg: Program, node: NodeProcess
) -> None:
    kind, name = "thalweg.talos.journal.written.v1", "thalwegconnection"
    said = [{**JOURNAL, "content": f"I realized that broker {number} outlives us."} for number in range(6)]
    over = [
        with_header(binary(MEMORY.name, f"j-{number}", kind, said[number]), f"ce_{name}", connection)
        for number, connection in enumerate(["press", "press", "c" * 300, "c" * 513])
    ]
    over += [
        with_attribute(structured(MEMORY.name, f"j-{number}", kind, said[number]), name, connection)
        for number, connection in ((4, "press"), (5, {"no": "text"}))
    ]
    await send(node, over)
    node.settle()
    query = "SELECT event_id, connection, session_id FROM documents WHERE kind = 'JournalEntry' ORDER BY event_id"
    assert thalweg.sql(query) == [
        ["j-0", "press", None],
        ["j-1", "press", None],
        ["j-2", "c" * 300, None],
        ["j-4", "press", None],
    ]
    assert thalweg.sql("SELECT connection, count(*) FROM documents WHERE kind = 'Insight' GROUP BY 1 ORDER BY 2") == [
        ["c" * 300, 1],
        ["press", 3],
    ]
    assert thalweg.sql("SELECT count(*) FROM sessions") == [[0]]
    reasons = thalweg.sql("SELECT DISTINCT error_message FROM dead_letters WHERE stage = 'materialise'")
    assert reasons == [[f"The CloudEvents attribute '{name}' is not a text of at most 512 characters."]]


async def test_an_event_that_is_sent_twice_is_one_row_and_of_two_bodies_the_first_stands(
    thalweg: Program, node: NodeProcess
) -> None:
    kind = "thalweg.talos.journal.written.v1"
    other = {**JOURNAL, "content": "Something else."}
    await send(node, [binary(MEMORY.name, "j-1", kind, body) for body in (JOURNAL, JOURNAL, other)])
    node.settle()
    assert thalweg.sql("SELECT content FROM journal") == [[JOURNAL["content"]]]
    assert thalweg.sql("SELECT same_body FROM duplicates WHERE event_id = 'j-1' ORDER BY same_body") == [
        [False],
        [True],
    ]


async def test_poison_lies_in_the_dead_letter_topic_with_reason_and_bytes_and_the_others_are_unaffected(
    thalweg: Program, node: NodeProcess
) -> None:
    kind = "thalweg.talos.journal.written.v1"
    poison = {
        "not JSON": Outgoing(
            MEMORY.name, b"default", b'{"content": \xff', binary(MEMORY.name, "p-1", kind, {}).headers
        ),
        '"content" is a required': binary(MEMORY.name, "p-2", kind, {"category": "insight"}),
        "is not known": binary(MEMORY.name, "p-3", "com.example.ordered", {}),
        "no key": binary(MEMORY.name, "p-4", kind, JOURNAL, key=b""),
        "'id' is missing": Outgoing(MEMORY.name, b"default", orjson.dumps(JOURNAL), (("ce_specversion", b"1.0"),)),
    }
    good = [binary(MEMORY.name, f"g-{number}", kind, {**JOURNAL, "content": f"Good {number}."}) for number in range(5)]
    await send(node, [record for pair in zip(good, poison.values(), strict=True) for record in pair])
    node.settle()
    assert thalweg.sql("SELECT count(*) FROM journal") == [[5]]
    listed = thalweg("dlq", "list", "--json").json()
    assert listed["total"] == len(poison)
    for reason, record in poison.items():
        [letter] = [found for found in listed["dead_letters"] if reason in found["error_message"]]
        assert letter["value_bytes"] == len(record.value or b"") and letter["topic"] == MEMORY.name
        shown = thalweg("dlq", "show", letter["dead_letter_id"]).json()
        assert shown["value"] == (record.value or b"").decode("utf-8", "backslashreplace")
        assert shown["headers"]["dlq.error.message"] == letter["error_message"]


async def test_replaying_poison_gives_the_same_letter_and_never_a_row(thalweg: Program, node: NodeProcess) -> None:
    await send(node, [binary(MEMORY.name, "p-1", "thalweg.talos.journal.written.v1", {"category": "insight"})])
    node.settle()
    [letter] = thalweg("dlq", "list", "--json").json()["dead_letters"]
    assert thalweg("dlq", "replay", letter["dead_letter_id"]).code == 0
    node.settle()
    after = thalweg("dlq", "list", "--json").json()
    [again] = after["dead_letters"]
    assert (again["first_id"], again["state"], again["error_message"]) == (
        letter["dead_letter_id"],
        "replayed",
        letter["error_message"],
    )
    assert thalweg.sql("SELECT count(*) FROM journal") == [[0]]
    missing = thalweg("dlq", "show", "no-such-letter")
    assert missing.code == 1 and "no-such-letter" in missing.sentence
    neither = thalweg("dlq", "replay")
    assert neither.code == 2


async def test_a_letter_that_is_dropped_says_why_and_counts_no_more(thalweg: Program, node: NodeProcess) -> None:
    await send(node, [binary(MEMORY.name, "p-1", "thalweg.talos.journal.written.v1", {"category": "insight"})])
    node.settle()
    [letter] = thalweg("dlq", "list", "--json").json()["dead_letters"]
    line = thalweg("dlq", "list").out
    assert letter["dead_letter_id"] in line and letter["error_message"] in line and "1 fit; in all 1 new" in line
    assert thalweg("dlq", "drop", letter["dead_letter_id"]).code == 2  # it has to be said why
    dropped = thalweg("dlq", "drop", letter["dead_letter_id"], "--because", "records of a load test")
    assert (dropped.code, dropped.out) == (0, "Dropped 1 letter.\n")
    node.settle()
    assert thalweg("dlq", "list", "--state", "new").out == "0 fit; in all 1 dropped\n"
    assert "records of a load test" in thalweg("dlq", "show", letter["dead_letter_id"]).out


TRACE = bytes.fromhex("0af7651916cd43dd8448eb211c80319c")
SPAN = bytes.fromhex("b7ad6b7169203331")


def _otlp() -> list[tuple[str, bytes]]:
    spans = TracesData()
    span = spans.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.name = TRACE, SPAN, "chat"
    span.start_time_unix_nano, span.end_time_unix_nano = 1_763_000_000_000_000_000, 1_763_000_000_250_000_000
    record = {"timeUnixNano": "1763000000000000000", "severityText": "WARN", "body": {"stringValue": "slow"}}
    point = {"timeUnixNano": "1763000000000000000", "asInt": "7"}
    metric = {"name": "tokens", "sum": {"dataPoints": [point], "isMonotonic": True}}
    return [
        ("otlp_spans", spans.SerializeToString()),
        ("otlp_spans", b"\x0a\xff\xff broken"),
        ("otlp_logs", orjson.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]})),
        ("otlp_metrics", orjson.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]})),
    ]


@pytest.mark.kafka
async def test_what_the_otel_collector_writes_to_kafka_becomes_rows(tmp_path: Path) -> None:
    require_rig()
    broker = Broker(tmp_path / "broker")
    broker.start()
    node = NodeProcess(tmp_path / "home", broker.url, THALWEG_OTLP_TOPICS="1", THALWEG_NAMESPACE="team")
    try:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic(name, 1, 1) for name in ("otlp_spans", "otlp_logs", "otlp_metrics")])
        await admin.close()
        node.start()
        deadline = time.monotonic() + 90
        while not {topic for topic, _ in _otlp()} <= set(
            ask(node.home, "status")["topics"]
        ):  # what was just made may be found later
            assert time.monotonic() < deadline, ask(node.home, "status")["topics"]
            await asyncio.sleep(0.1)
        # the Collector repeats after a failure
        await send(node, [Outgoing(topic, None, value) for topic, value in _otlp() + _otlp()])
        thalweg = Program(node.home, broker.url)
        node.settle()
        assert thalweg.sql("SELECT namespace, trace_id, name, duration_ms FROM otel_spans") == [
            ["team", TRACE.hex(), "chat", 250.0]
        ]
        assert thalweg.sql("SELECT severity, body FROM otel_logs") == [["WARN", '"slow"']]
        assert thalweg.sql("SELECT name, value FROM otel_metrics") == [["tokens", 7.0]]
        letters = thalweg("dlq", "list", "--json").json()["dead_letters"]
        assert {(letter["topic"], letter["value_bytes"]) for letter in letters} == {("otlp_spans", 10)} and len(
            letters
        ) == 2
    finally:
        node.stop()
        broker.kill()

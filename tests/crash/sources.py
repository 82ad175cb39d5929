"""What comes onto the log past the node while it is killed.

A producer's events and poison, the Collector's requests, imported transcripts.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import threading
from collections.abc import Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from aiokafka import AIOKafkaProducer

from streams.clock import SystemClock
from streams.codec import encode
from streams.event_types.cognitive import GOLDEN_SET_IMPORTED, GROUND_TRUTH_IMPORTED
from streams.events import Event, wire_type
from streams.log import open_log
from streams.log.base import Log, Outgoing
from streams.positions import Position
from streams.topics import MEMORY, OTLP_TOPICS, TELEMETRY, Topic
from tests.crash.invariants import Ledger
from tests.crash.writes import TRUTH, sentence
from tests.node_process import NodeProcess
from thalweg.importing.importer import import_files

NAMESPACE = "default"
PRODUCER = "urn:load:producer"
TIMEOUT_S = 60.0
PAUSE_S = 0.2
POISON = Outgoing(
    TELEMETRY.name,
    NAMESPACE.encode(),
    b'{"cut off',
    (("ce_id", b"poison"), ("ce_source", b"urn:load"), ("ce_type", b"no.type")),
)


class Sources(threading.Thread):
    """Writes to the log of a node until it is told to stop, and notes in the ledger what the log has acknowledged."""

    def __init__(self, node: NodeProcess, seed: int, ledger: Ledger, stop: threading.Event) -> None:
        super().__init__(name="sources", daemon=True)
        self._broker = node.broker or f"sqlite://{node.home / 'log.db'}"
        self._exports = bool(node.env.get("THALWEG_OTLP_TOPICS"))
        self._random, self._ledger, self._stop_asked = random.Random(seed), ledger, stop
        self.ready = threading.Event()
        """What evaluations need is on the log, in front of all that is asked for later."""
        self.counts = {"produced": 0, "poisoned": 0, "exported": 0, "imported": 0}

    def run(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        async with self._log() as log, self._producer(log) as publish:
            if self._exports:
                await log.create_topics([Topic(name, "the Collector's requests", partitions=1) for name in OTLP_TOPICS])
            await self._produce(publish, evaluation_sets())
            self.ready.set()
            number = 0
            while not self._stop_asked.is_set():
                await self._produce(publish, self._events(number))
                await self._poison(publish)
                if self._exports:
                    await self._export(publish, number)
                await self._import(log, number)
                number += 1
                await asyncio.sleep(PAUSE_S)

    @asynccontextmanager
    async def _log(self) -> Any:
        log = open_log(self._broker)
        await log.start()
        try:
            yield log
        finally:
            await log.stop()

    @asynccontextmanager
    async def _producer(self, log: Log) -> Any:
        """How a producer publishes records: on Kafka by its plain client, which chooses the partition by itself."""
        if not self._broker.startswith("kafka://"):

            async def append(*records: Outgoing) -> Sequence[Position]:
                return await log.publish(records, timeout_s=TIMEOUT_S)

            yield append
            return
        address = self._broker.removeprefix("kafka://")
        async with AIOKafkaProducer(
            bootstrap_servers=address, enable_idempotence=True, request_timeout_ms=int(TIMEOUT_S * 1000)
        ) as client:

            async def send(*records: Outgoing) -> Sequence[Position]:
                sent = [await client.send_and_wait(r.topic, r.value, r.key, headers=list(r.headers)) for r in records]
                return [Position(one.topic, one.partition, one.offset) for one in sent]

            yield send

    async def _produce(self, publish: Any, records: Sequence[tuple[str, Event]]) -> None:
        for _, event in records:
            self._ledger.ask(event.id)
        await publish(*(encode(topic, event) for topic, event in records))
        self._ledger.published |= {event.id for _, event in records}
        self.counts["produced"] += len(records)

    def _events(self, number: int) -> list[tuple[str, Event]]:
        content, text = (
            f"I realized that {sentence(self._random)}, says a producer ({number}).",
            f"What a producer saw ({number}).",
        )
        self._ledger.rows.setdefault("SELECT content FROM talos_journal", set()).add(content)
        self._ledger.rows.setdefault("SELECT text FROM session_events", set()).add(text)
        entry = producer_event("talos.journal.written", f"j-{number}", {"content": content, "category": "insight"})
        seen = producer_event(
            "session.event", f"t-{number}", {"session_id": "produced", "event_type": "user", "text": text}
        )
        return [(MEMORY.name, entry), (TELEMETRY.name, seen), *([(TELEMETRY.name, seen)] if number % 3 == 0 else [])]

    async def _poison(self, publish: Any) -> None:
        self._ledger.poison |= set(await publish(POISON))
        self.counts["poisoned"] += 1

    async def _export(self, publish: Any, number: int) -> None:
        """A request of each signal; a third of them twice, as the Collector does after a failure."""
        requests = [
            Outgoing(topic, None, orjson.dumps(body))
            for topic, body in zip(OTLP_TOPICS, otlp_requests(number), strict=True)
        ]
        for _ in range(1 + (number % 3 == 0)):
            await publish(*requests)
        for query, identity in OTLP_ROWS.items():
            self._ledger.rows.setdefault(query, set()).add(identity.format(number=number, hex=f"{number + 1:016x}"))
        self.counts["exported"] += 1

    async def _import(self, log: Log, number: int) -> None:
        """A transcript with a line that is cut off, a third of them twice.

        As `thalweg import` does it, which would start a node of its own.
        """
        session, text = str(UUID(int=number + 1)), f"Please look at case {number}."
        with tempfile.TemporaryDirectory(prefix="thalweg-load-") as folder:
            file = Path(folder) / f"{session}.jsonl"
            file.write_bytes(b"\n".join(transcript(session, text)))
            for again in range(1 + (number % 3 == 0)):
                report = await import_files(log, "claude-code", [file], namespace=NAMESPACE, clock=SystemClock())
                assert again or (report.unreadable == 1 and report.events > 1), report
        self._ledger.rows.setdefault("SELECT session_id FROM telemetry_sessions", set()).add(session)
        self._ledger.rows.setdefault("SELECT text FROM session_events", set()).add(text)
        cut = "SELECT split_part(error_message, ',', 1) FROM dead_letters WHERE stage = 'import'"
        self._ledger.rows.setdefault(cut, set()).add(file.name)
        self.counts["imported"] += 1


def producer_event(short_type: str, identity: str, data: dict[str, Any]) -> Event:
    return Event(identity, PRODUCER, wire_type(short_type), NAMESPACE, datetime.now(UTC), data)


def evaluation_sets() -> list[tuple[str, Event]]:
    """The ground truth and the golden set of the evaluating tools: 20 short, 20 medium and 10 long queries."""
    lengths = [5] * 20 + [15] * 20 + [35] * 10
    golden = [
        {
            "query": " ".join(f"word{number}" for _ in range(length)),
            "expected_docs": [1],
            "session_id": f"golden-{number}",
        }
        for number, length in enumerate(lengths)
    ]
    truth = [
        producer_event(
            "cm.ground_truth.imported",
            f"truth-{number}",
            {"id": number, "query": f"case {number}", "expected_docs": [1], "session_id": "truth"},
        )
        for number in TRUTH
    ]
    sets = [*truth, producer_event("cm.golden_set.imported", "golden", {"queries": golden, "file": "golden.jsonl"})]
    assert {event.type for event in sets} == {GROUND_TRUTH_IMPORTED, GOLDEN_SET_IMPORTED}
    return [(MEMORY.name, event) for event in sets]


OTLP_ROWS = {
    "SELECT span_id FROM otel_spans": "{hex}",
    "SELECT json_extract_string(body, '$') FROM otel_logs": "slow {number}",
    "SELECT name FROM otel_metrics": "tokens.{number}",
}


def otlp_requests(number: int) -> list[dict[str, Any]]:
    """A span, a log record and a data point, as OTLP/JSON."""
    start = 1_763_000_000_000_000_000 + number
    span = {
        "traceId": f"{number + 1:032x}",
        "spanId": f"{number + 1:016x}",
        "name": "chat",
        "startTimeUnixNano": str(start),
    }
    record = {"timeUnixNano": str(start), "severityText": "WARN", "body": {"stringValue": f"slow {number}"}}
    point = {"timeUnixNano": str(start), "asInt": str(number)}
    metric = {"name": f"tokens.{number}", "sum": {"dataPoints": [point], "isMonotonic": True}}
    return [
        {"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "endTimeUnixNano": str(start + 1_000_000)}]}]}]},
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]},
        {"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]},
    ]


def transcript(session: str, text: str) -> list[bytes]:
    """A question and its answer in a conversation of Claude Code's, and a line that is cut off."""
    shared = {
        "isSidechain": False,
        "cwd": "/src",
        "sessionId": session,
        "version": "2.1.12",
        "timestamp": "2026-03-04T09:12:07.712Z",
    }
    asked = {
        **shared,
        "uuid": f"{session}-1",
        "parentUuid": None,
        "type": "user",
        "message": {"role": "user", "content": text},
    }
    reply = {
        "id": f"msg-{session}",
        "type": "message",
        "role": "assistant",
        "model": "a-model",
        "content": [{"type": "text", "text": "Done."}],
    }
    answered = {**shared, "uuid": f"{session}-2", "parentUuid": f"{session}-1", "type": "assistant", "message": reply}
    return [orjson.dumps(asked), orjson.dumps(answered), orjson.dumps(asked)[:-20]]

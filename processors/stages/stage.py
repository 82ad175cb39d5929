"""The frame of every stage: decode, derive, publish the facts and a progress mark, then acknowledge.

A stage's facts are a pure function of its input event (and, for those that need it, of what is stored), and each
fact's id is a pure function of the input's id: a redelivery publishes the same facts, and they are applied once.
A record that always fails is retried, then buried; too many failures in a row stop the stage, because then the code
is bad and not the records.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from storage.applied import AppliedPositions
from streams.clock import Clock
from streams.codec import STRUCTURED, decode, encode, encode_batch, observation_alone
from streams.dlq import DeadLetter, bury
from streams.errors import Poison, ThalwegError, Unavailable
from streams.event_types.derived import PROGRESS
from streams.events import Event, LoggedEvent, event_types
from streams.ids import derived_id
from streams.log.base import Log, Outgoing, Record
from streams.positions import Partition, Position
from streams.progress import mark, read_progress
from streams.topics import DERIVED, Topic

logger = logging.getLogger(__name__)

ATTEMPTS = 3
RETRY_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0
CONSECUTIVE_FAILURES = 20
PUBLISH_TIMEOUT_S = 30.0


Life = Literal["starting", "running", "dead"]


class Stage(ABC):
    """What a stage derives."""

    name: ClassVar[str]
    source: ClassVar[Topic]
    accepts: ClassVar[frozenset[str]]
    batch_size: ClassVar[int] = 16
    gather_s: ClassVar[float] = 0.0
    """How long a batch gathers beyond what is there while nobody waits for this stage, so that fewer progress marks are written."""
    awaited_for: ClassVar[frozenset[str]] = frozenset()
    """Stages that wait for this one: who waits for one of them waits for this one too."""
    follows: ClassVar[str | None] = None
    """A stage whose facts this one reads: its progress is then told on that stage's source."""
    needs_store: ClassVar[bool] = False
    """Whether it asks the store; such a stage runs in a process that has one, the others anywhere."""

    _applied: AppliedPositions | None = None
    """Tells whether somebody waits; a stage without the store is one that somebody may wait for elsewhere."""

    async def gather(self) -> None:
        """Wait for a batch's company, as long as there is time."""
        if self.gather_s and self._applied is not None:
            await self._applied.calm({self.name} | self.awaited_for, self.gather_s)

    def may_concern(self, record: Record) -> bool:
        """False when every event of the record is surely of a type that is not accepted: nothing in it needs to be decoded."""
        headers = {name.lower(): value or b"" for name, value in record.headers}
        if headers.get("content-type", b"").strip().startswith(STRUCTURED.encode()):
            return True
        value = record.value or b""
        names_types = b'"type"' in value or b"\\u" in value  # an observation of an array may have a type of its own
        return "ce_type" not in headers or headers["ce_type"].decode("latin-1") in self.accepts or names_types

    @abstractmethod
    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        """For each event what follows from it, in the order given. While it raises Unavailable it is
        asked again; whatever else it raises is retried, then buried."""

    def fact(self, logged: LoggedEvent, event_type: str, data: dict[str, object]) -> Event:
        """A fact about this event: its id and time are functions of the event."""
        event = logged.event
        identity = derived_id(self.name, event.source, event.id, event_type)
        return Event(identity, f"thalweg:stage/{self.name}", event_type, event.namespace, event.time, data)


class StageStopped(ThalwegError):
    """The stage failed on too many records in a row."""

    code = "stage_stopped"
    remedy = "Mend what the message names, then start the node again; nothing is lost, the records are still on the log."


@dataclass
class StageRunner:
    """Runs a stage over records. `status` reads the counters; `life` is the worker's, `failure` says what the stage died of."""

    stage: Stage
    log: Log
    clock: Clock
    processed: int = 0
    buried: int = 0
    busy_s: float = 0.0
    life: Life = "starting"
    failure: str | None = None
    waiting: str | None = None
    """What a stage that waits misses, as a sentence."""
    _failures: int = field(default=0, repr=False)

    async def derive(self, records: Sequence[Record]) -> list[Outgoing]:
        """What follows from the records: facts, marks, dead letters."""
        started = self.clock.monotonic()
        outputs: list[Outgoing] = []
        for at, chunk in _by_partition(records):
            outputs.extend(await self._partition(at, chunk))
        self.busy_s += self.clock.monotonic() - started
        return outputs

    async def publish(self, records: Sequence[Record], outputs: Sequence[Outgoing]) -> None:
        """Publish what `derive` gave for the records; when this returns it is durable, and the records may be acknowledged."""
        started = self.clock.monotonic()
        if outputs:
            await self.log.publish(outputs, timeout_s=PUBLISH_TIMEOUT_S)
        self.processed += len(records)
        self.busy_s += self.clock.monotonic() - started

    async def _partition(self, at: Partition, records: Sequence[Record]) -> list[Outgoing]:
        events = [logged for record in records for logged in self._decoded(record)]
        by_position = {record.position: record for record in records}
        facts, letters = await self._derive(events, by_position)
        return letters + self._envelopes(at, facts, self._reached(at, records))

    def _decoded(self, record: Record) -> list[LoggedEvent]:
        if not self.stage.may_concern(record):
            return []
        try:
            return [logged for logged in decode(record) if logged.event.type in self.stage.accepts]
        except Poison:
            return []  # the materialiser buries it

    async def _derive(self, events: Sequence[LoggedEvent], records: dict[Position, Record]) -> tuple[list[Event], list[Outgoing]]:
        """All facts of the events; when that fails, one event at a time, so that one bad event stays alone."""
        if not events:
            return [], []
        try:
            derived = await self._patient(events)
            self._failures = 0
            return [fact for facts in derived for fact in facts], []
        except Exception:
            logger.warning("stage %s: a batch of %d failed; trying its events one by one", self.stage.name, len(events), exc_info=True)
        facts: list[Event] = []
        letters: list[Outgoing] = []
        for logged in events:
            try:
                facts.extend(await self._retried(logged))
                self._failures = 0
            except Exception as error:
                alone = observation_alone(records[logged.position], logged.index)
                letters.append(bury(alone or records[logged.position], self._letter(logged, error, logged.index if alone else None)))
                self._fail(error)
        return facts, letters

    async def _retried(self, logged: LoggedEvent) -> Sequence[Event]:
        for attempt in range(1, ATTEMPTS):
            try:
                return (await self._patient([logged]))[0]
            except Exception:
                await asyncio.sleep(RETRY_DELAY_S * attempt)
        return (await self._patient([logged]))[0]

    async def _patient(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        """The stage's facts. While something that it needs is away it waits, and `status` says stuck: nothing is wrong with the records."""
        delay_s = RETRY_DELAY_S
        while True:
            try:
                found = await self.stage.facts(events)
                self.waiting = None
                return found
            except Unavailable as absent:
                self.waiting = absent.message
                logger.warning("stage %s waits: %s", self.stage.name, absent.message)
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, LONGEST_DELAY_S)

    def _letter(self, logged: LoggedEvent, error: Exception, index: int | None) -> DeadLetter:
        reason = type(error).__name__, str(error)
        return DeadLetter(logged.position, self.stage.name, "thalweg", ATTEMPTS, *reason, self.clock.now(), index=index)

    def _fail(self, error: Exception) -> None:
        self.buried += 1
        self._failures += 1
        if self._failures >= CONSECUTIVE_FAILURES:
            self.failure = f"{type(error).__name__}: {error}"
            raise StageStopped(f"The stage {self.stage.name} failed on {self._failures} records in a row; last: {self.failure}.")

    def _reached(self, at: Partition, records: Sequence[Record]) -> list[Position]:
        """How far this batch brings the stage: on its source, or where the stage it follows has come."""
        if self.stage.follows is None:
            return [Position(at.topic, at.partition, records[-1].offset + 1)]
        furthest: dict[Partition, int] = {}
        for record in records:
            progress = read_progress(record)
            if progress is not None and progress.stage == self.stage.follows:
                for source in progress.sources:
                    furthest[source.at] = max(source.offset, furthest.get(source.at, 0))
        return [Position(at.topic, at.partition, offset) for at, offset in furthest.items()]

    def _envelopes(self, at: Partition, facts: Sequence[Event], sources: Sequence[Position]) -> list[Outgoing]:
        """One record a namespace; the last carries the mark, and lies on the partition of the source behind the others.

        A fact whose type belongs to another topic (telemetry) is a record of its own there.
        """
        if not facts and not sources:
            return []  # nothing to say: its own marks come back to a stage that reads the derived topic
        by_namespace: dict[str, list[Event]] = {}
        elsewhere: list[Outgoing] = []
        for fact in facts:
            topic = event_types()[fact.type].topic
            if topic == DERIVED.name:
                by_namespace.setdefault(fact.namespace, []).append(fact)
            else:
                elsewhere.append(encode(topic, fact))
        groups = list(by_namespace.items()) or [("thalweg", [])]
        extensions = mark(self.stage.name, sources) if sources else {}
        records = []
        for number, (namespace, group) in enumerate(groups, 1):
            is_last = number == len(groups)
            identity = derived_id(self.stage.name, *extensions.values(), *(fact.id for fact in group))
            kind = group[0].type if group else PROGRESS
            envelope = Event(
                identity,
                f"thalweg:stage/{self.stage.name}",
                kind,
                namespace,
                group[0].time if group else self.clock.now(),
                {},
                extensions=extensions if is_last else {},
            )
            records.append(encode_batch(DERIVED.name, envelope, group, partition=at.partition))
        return elsewhere + records


def _by_partition(records: Sequence[Record]) -> Iterable[tuple[Partition, list[Record]]]:
    chunks: dict[Partition, list[Record]] = {}
    for record in records:
        chunks.setdefault(record.position.at, []).append(record)
    return chunks.items()

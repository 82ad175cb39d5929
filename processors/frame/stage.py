"""The frame of every stage: decode, derive, publish the facts and a progress mark, then acknowledge.

A stage's facts are a pure function of its input event (and, for those that need it, of what is stored), and each
fact's id is a pure function of the input's id: a redelivery publishes the same facts, and they are applied once.
A record that always fails is retried, then buried; too many failures in a row stop the stage, because then the code
is bad and not the records.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from graphlib import TopologicalSorter
from typing import ClassVar, Literal, Self, TypeVar, cast

from processors.embedding.model import Embedder
from processors.frame.domains import modules_of
from storage.applied import AppliedPositions
from storage.reader import Reader
from storage.search.index_set import IndexSet
from streams.clock import Clock
from streams.codec import STRUCTURED, decode, encode, encode_batches, observation_alone
from streams.dlq import DeadLetter, bury
from streams.errors import Poison, RecordRefused, StageStopped, Unavailable
from streams.event_types.stages import PROGRESS
from streams.events import CONNECTION, Event, LoggedEvent, event_types
from streams.ids import derived_id
from streams.log.base import RECORD_BYTES, Log, Outgoing, Record
from streams.positions import Freshness, Partition, Position
from streams.progress import mark, read_progress
from streams.topics import DERIVED, DLQ_SUFFIX, Topic

logger = logging.getLogger(__name__)

ATTEMPTS = 3
RETRY_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0
CONSECUTIVE_FAILURES = 20
PUBLISH_TIMEOUT_S = 30.0
STORE_WAIT_S = 10.0
ENVELOPE_BYTES = 4 * 1024
"""What a record and a fact have besides a fact's own items, generously."""


Life = Literal["starting", "running", "dead"]

AnyStage = TypeVar("AnyStage", bound="Stage")


class Stage(ABC):
    """What a stage derives: a subclass in a domain's `stages` is found and run by being there."""

    name: ClassVar[str]
    source: ClassVar[Topic]
    accepts: ClassVar[frozenset[str]]
    batch_size: ClassVar[int] = 16
    linger_s: ClassVar[float] = 0.0
    """How long to wait for more records while no caller waits for this stage: fewer batches write fewer marks."""
    follows: ClassVar[str | None] = None
    """The stage whose facts are this one's source: progress is then counted on that stage's source."""
    waits_for: ClassVar[frozenset[str]] = frozenset()
    """Stages whose facts this one needs first, in the store: when they are behind, so is it."""
    needs_store: ClassVar[bool] = False
    """Whether it queries the store; such a stage runs in a process that has one, the others anywhere."""
    largest: int = RECORD_BYTES - ENVELOPE_BYTES
    """How many bytes one fact may have: what has more is several facts."""

    _applied: AppliedPositions | None = None
    """Knows which stages callers wait for; None in a process without a store, where no caller waits."""

    @classmethod
    def made(cls, parts: StageParts) -> Self:
        """The stage of a process that has these parts; a stage that needs none of them is made without."""
        return cls()

    async def linger(self) -> None:
        """Wait `linger_s` for more records, or until a caller waits for this stage or one that needs it."""
        if self.linger_s and self._applied is not None:
            await self._applied.linger({self.name} | dependents(self.name), self.linger_s)

    async def store_has(self, token: Freshness, stages: Collection[str] = (), *, patient: bool = True) -> None:
        """Wait until the store has all below the token, and what these stages derive from it.

        A patient wait hastens no transaction unless a caller waits for this stage. Raises Unavailable after
        STORE_WAIT_S: the runner then asks again.
        """
        assert self._applied is not None
        patient = patient and not self._applied.has_urgent_waiter(self.name)
        if not await self._applied.wait(token, timeout_s=STORE_WAIT_S, stages=stages, patient=patient):
            raise Unavailable(f"The store has not caught up with the log; the stage {self.name} goes on once it has.")

    def may_concern(self, record: Record) -> bool:
        """False when the record surely holds no event of an accepted type: it need not be decoded."""
        headers = {name.lower(): value or b"" for name, value in record.headers}
        if headers.get("content-type", b"").strip().startswith(STRUCTURED.encode()):
            return True
        if "ce_type" not in headers or headers["ce_type"].decode("latin-1") in self.accepts:
            return True
        value = record.value or b""  # an observation of an array may have a type of its own
        return value.rfind(b'"type"') >= 0 or value.rfind(b"\\u") >= 0  # twice as fast from the end

    @abstractmethod
    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        """The facts about each event, in the order given.

        While it raises Unavailable it is called again; any other error is retried, then the event is buried.
        """

    def given_up(self, logged: LoggedEvent, reason: str) -> Sequence[Event]:
        """Facts about an event that is buried: nothing can be derived from it, or the log takes none of it."""
        return []

    def fact(
        self, logged: LoggedEvent, event_type: str, data: Mapping[str, object], *, about: Sequence[str] = ()
    ) -> Event:
        """A fact about this event: its id, time and connection are functions of the event.

        `about`: where one event has several facts of a type, the ids that this one is about; they are in its id.
        """
        event = logged.event
        identity = derived_id(self.name, event.source, event.id, event_type)
        if about:
            identity = derived_id(identity, *about)
        connection = {} if event.connection is None else {CONNECTION: event.connection}
        source = f"thalweg:stage/{self.name}"
        return Event(identity, source, event_type, event.namespace, event.time, data, extensions=connection)


@dataclass(frozen=True)
class StoreParts:
    """What a process with a store has for its stages."""

    reader: Reader
    indexes: IndexSet
    applied: AppliedPositions


@dataclass
class StageParts:
    """What a process has for its stages: the model of new memories, if any, and the store, if it has one."""

    embedder: Embedder | None
    store: StoreParts | None = None
    _stages: dict[type[Stage], Stage] = field(default_factory=dict, repr=False)

    @property
    def needed_store(self) -> StoreParts:
        """The store. Raises RuntimeError in a process without one, where no stage that needs it may be made."""
        if self.store is None:
            raise RuntimeError("A stage that needs the store was made in a process without one.")
        return self.store

    def stage(self, kind: type[AnyStage]) -> AnyStage:
        """The process's one stage of this kind, made when it is first asked for."""
        if kind not in self._stages:
            self._stages[kind] = kind.made(self)
        return cast("AnyStage", self._stages[kind])

    def stages(self) -> list[Stage]:
        """Every stage that can run in this process."""
        return [self.stage(kind) for kind in stage_types() if self.store is not None or not kind.needs_store]


@cache
def stage_types() -> tuple[type[Stage], ...]:
    """Every stage, found in the `stages` of each domain; each comes after those that it needs."""
    found = {
        kind.name: kind
        for module in modules_of("stages")
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Stage) and kind.__module__ == module.__name__
    }
    order = TopologicalSorter({name: needed_by(kind) for name, kind in found.items()})
    return tuple(found[name] for name in order.static_order())


def needed_by(kind: type[Stage] | Stage) -> frozenset[str]:
    """The stages that this one follows or waits for."""
    return kind.waits_for | ({kind.follows} if kind.follows else frozenset())


@cache
def dependents(name: str) -> frozenset[str]:
    """The stages that need this one's facts, directly or through others."""
    direct = [kind.name for kind in stage_types() if name in needed_by(kind)]
    return frozenset(direct).union(*map(dependents, direct))


@dataclass
class Derived:
    """What follows from a batch: `outputs` is to be published. `facts` says what of it each event is the cause of."""

    outputs: list[Outgoing] = field(default_factory=list)
    facts: list[tuple[LoggedEvent, Sequence[Event]]] = field(default_factory=list)


@dataclass
class StageRunner:
    """Runs a stage over records. `status` reads the counters; `life` is the agent's, `failure` why it died."""

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

    async def derive(self, records: Sequence[Record]) -> Derived:
        """What follows from the records: facts, marks, dead letters."""
        started = self.clock.monotonic()
        self.stage.largest = min(RECORD_BYTES, self.log.largest(DERIVED.name)) - ENVELOPE_BYTES
        derived = Derived()
        for at, chunk in _by_partition(records):
            await self._partition(at, chunk, derived)
        self.busy_s += self.clock.monotonic() - started
        return derived

    async def publish(self, records: Sequence[Record], derived: Derived) -> None:
        """Publish what `derive` gave. When this returns it is durable, and the records may be acknowledged."""
        started = self.clock.monotonic()
        if derived.outputs:
            try:
                await self.log.publish(derived.outputs, timeout_s=PUBLISH_TIMEOUT_S)
            except RecordRefused:
                logger.warning(
                    "stage %s: the log refuses a record; publishing event by event", self.stage.name, exc_info=True
                )
                await self._publish_apart(records, derived)
        self.processed += len(records)
        self.busy_s += self.clock.monotonic() - started

    async def _publish_apart(self, records: Sequence[Record], derived: Derived) -> None:
        """Publish each event's facts alone, then the rest. An event of which the log refuses a fact is buried."""
        sources = {record.position: record for record in records}
        for logged, facts in derived.facts:
            at = logged.position.at
            try:
                await self.log.publish(self._envelopes(at, facts, []), timeout_s=PUBLISH_TIMEOUT_S)
            except RecordRefused as error:
                self.buried += 1
                given_up = self._envelopes(at, self.stage.given_up(logged, str(error)), [])
                buried = self._buried(sources[logged.position], logged, error)
                await self.log.publish([buried, *given_up], timeout_s=PUBLISH_TIMEOUT_S)
        rest = [output for output in derived.outputs if output.topic.endswith(DLQ_SUFFIX)]
        for at, chunk in _by_partition(records):
            rest += self._envelopes(at, [], self._reached(at, chunk))
        await self.log.publish(rest, timeout_s=PUBLISH_TIMEOUT_S)

    async def _partition(self, at: Partition, records: Sequence[Record], derived: Derived) -> None:
        events = [logged for record in records for logged in self._decoded(record)]
        by_position = {record.position: record for record in records}
        found, letters = await self._derive(events, by_position)
        facts = [fact for _, some in found for fact in some]
        derived.facts += found
        derived.outputs += letters + self._envelopes(at, facts, self._reached(at, records))

    def _decoded(self, record: Record) -> list[LoggedEvent]:
        if not self.stage.may_concern(record):
            return []
        try:
            return [logged for logged in decode(record) if logged.event.type in self.stage.accepts]
        except Poison:
            return []  # the materialiser buries it

    async def _derive(
        self, events: Sequence[LoggedEvent], records: dict[Position, Record]
    ) -> tuple[list[tuple[LoggedEvent, Sequence[Event]]], list[Outgoing]]:
        """All facts of the events; when that fails, one event at a time, so that one bad event stays alone."""
        if not events:
            return [], []
        try:
            derived = await self._patient(events)
            self._failures = 0
            return list(zip(events, derived, strict=True)), []
        except Exception:
            logger.warning(
                "stage %s: a batch of %d failed; trying its events one by one",
                self.stage.name,
                len(events),
                exc_info=True,
            )
        facts: list[tuple[LoggedEvent, Sequence[Event]]] = []
        letters: list[Outgoing] = []
        for logged in events:
            try:
                facts.append((logged, await self._retried(logged)))
                self._failures = 0
            except Exception as error:
                letters.append(self._buried(records[logged.position], logged, error))
                facts.append((logged, self.stage.given_up(logged, f"{type(error).__name__}: {error}")))
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
        """The stage's facts. It waits while a part that it needs is away, and `status` says stuck."""
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

    def _buried(self, record: Record, logged: LoggedEvent, error: Exception) -> Outgoing:
        """The dead letter of the event: its record, or its observation alone where the record is an array."""
        alone = observation_alone(record, logged.index)
        index, reason = None if alone is None else logged.index, (type(error).__name__, str(error))
        letter = DeadLetter(
            logged.position, self.stage.name, "thalweg", ATTEMPTS, *reason, self.clock.now(), index=index
        )
        return bury(alone or record, letter)

    def _fail(self, error: Exception) -> None:
        self.buried += 1
        self._failures += 1
        if self._failures >= CONSECUTIVE_FAILURES:
            self.failure = f"{type(error).__name__}: {error}"
            raise StageStopped(
                f"The stage {self.stage.name} failed on {self._failures} records in a row; last: {self.failure}."
            )

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
        """One record a namespace, or several where it would be too large; the last of all carries the mark.

        They lie on the partition of their source. A fact whose type belongs to another topic is a record of its own
        there.
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
            envelope = functools.partial(self._envelope, namespace, group, extensions if number == len(groups) else {})
            records += encode_batches(DERIVED.name, envelope, group, self.stage.largest, partition=at.partition)
        return elsewhere + records

    def _envelope(
        self, namespace: str, group: Sequence[Event], extensions: Mapping[str, str], facts: Sequence[Event]
    ) -> Event:
        """The envelope of these of the group's facts; that of the last carries the extensions."""
        carried = extensions if not facts or facts[-1] is group[-1] else {}
        identity = derived_id(self.stage.name, *carried.values(), *(fact.id for fact in facts))
        kind, time = (facts[0].type, facts[0].time) if facts else (PROGRESS, self.clock.now())
        return Event(identity, f"thalweg:stage/{self.stage.name}", kind, namespace, time, {}, extensions=carried)


def _by_partition(records: Sequence[Record]) -> Iterable[tuple[Partition, list[Record]]]:
    chunks: dict[Partition, list[Record]] = {}
    for record in records:
        chunks.setdefault(record.position.at, []).append(record)
    return chunks.items()

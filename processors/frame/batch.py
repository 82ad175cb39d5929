"""One batch of the log, reduced to changes: decode, skip what is known, fold the rest in log order. No I/O but reads.

The order of commits (GUARANTEES.md) begins here: undecodable records become dead letters, everything else rows,
outcomes and positions, which the materialiser then commits together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from processors.frame.record_format import record_formats
from processors.frame.reducer import Indexed, Key, Outcome, Row, Rows, at, origin_of, reducers
from storage.tables import Table
from storage.writer import Changes, Writer
from streams.codec import check_readable, decode, observation_alone, source_and_type
from streams.dlq import DeadLetter, first_letter, read_letter
from streams.events import Event, LoggedEvent
from streams.failpoints import hit
from streams.log.base import UNREADABLE, Record
from streams.partitioning import partition_for
from streams.positions import Partition
from streams.progress import MATERIALISE, read_progress
from streams.topics import DLQ_SUFFIX, MEMORY

EVENTS, DUPLICATES, OUTCOMES = "events", "duplicates", "outcomes"
DEAD_LETTERS, MISPLACED_RECORDS = "dead_letters", "misplaced_records"
NO_PARTITIONS: Mapping[str, int] = {}


@dataclass
class Reduced:
    """The outcome of a batch: what to store, to index and to bury."""

    changes: Changes = field(default_factory=Changes)
    indexed: Indexed = field(default_factory=Indexed)
    buried: list[tuple[Record, DeadLetter]] = field(default_factory=list)
    applied: list[LoggedEvent] = field(default_factory=list)
    """The events that were applied, in log order."""
    duplicates: int = 0
    misplaced: set[str] = field(default_factory=set)
    """Sources of records that lie on another partition than their key's."""

    @property
    def events(self) -> int:
        """How many events were applied."""
        return len(self.applied)


class Overlay:
    """The state as of an event: what the batch has changed so far, over what is stored."""

    def __init__(self, writer: Writer, changes: Changes) -> None:
        self._writer = writer
        self._changes = changes
        self._stored: dict[str, dict[Key, Row | None]] = {}

    def prefetch(self, wanted: Iterable[tuple[str, Key]]) -> None:
        """Fetch the rows that the batch's reducers have named; one query a table."""
        keys: dict[str, dict[Key, None]] = {}
        for table, key in wanted:
            keys.setdefault(table, {})[key] = None
        for table, named in keys.items():
            found = self._writer.find(table, named)
            self._stored.setdefault(table, {}).update({key: found.get(key) for key in named})

    def get(self, table: str, key: Key) -> Row | None:
        changed = self._changes.state.get(table, {}).get(key)
        if changed is not None:
            return changed
        stored = self._stored.setdefault(table, {})
        if key not in stored:
            stored[key] = self._writer.find(table, (key,)).get(key)
        return stored[key]

    def insert(self, table: str, row: Row) -> None:
        self._changes.appended.setdefault(table, []).append(row)

    def put(self, table: str, key: Key, row: Row) -> None:
        changed = self._changes.state.setdefault(table, {})
        if key not in changed and self.get(table, key) is None:
            self._changes.fresh.add((table, key))
        changed[key] = row

    def remove_all(self, table: str, column: str, value: Any) -> None:
        self._changes.removed.append((table, column, value))

    def table(self, name: str) -> Table:
        return self._writer.tables[name]


class EventState:
    """The changes of one event, kept apart until its reducer returns: one that raises changes nothing."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._changed: dict[tuple[str, Key], Row] = {}
        self._inserted: list[tuple[str, Row]] = []
        self._removed: list[tuple[str, str, Any]] = []
        self.indexed = Indexed()

    def table(self, name: str) -> Table:
        return self._overlay.table(name)

    def get(self, table: str, key: Key) -> Row | None:
        return self._changed.get((table, key)) or self._overlay.get(table, key)

    def insert(self, table: str, row: Row) -> None:
        self._inserted.append((table, row))

    def put(self, table: str, row: Row) -> None:
        self._changed[table, self.table(table).key_of(row)] = row

    def remove_all(self, table: str, column: str, value: Any) -> None:
        self._removed.append((table, column, value))

    def accept(self, indexed: Indexed) -> None:
        """Make it part of the batch."""
        for table, row in self._inserted:
            self._overlay.insert(table, row)
        for (table, key), row in self._changed.items():
            self._overlay.put(table, key, row)
        for removal in self._removed:
            self._overlay.remove_all(*removal)
        indexed.add(self.indexed)


def reduce_batch(
    writer: Writer,
    records: Sequence[Record],
    now: datetime,
    namespace: str = "default",
    partitions: Mapping[str, int] = NO_PARTITIONS,
) -> Reduced:
    """Fold the records into changes. Raises what a storage read raises; a reducer's bug buries the record.

    `namespace` is that of records which carry none. `partitions`: how many a topic has whose records lie on the
    partition of their key.
    """
    reduced = Reduced()
    overlay = Overlay(writer, reduced.changes)
    decoded = [(record, _decode(record, reduced, now, namespace)) for record in records]
    hit("decoded")
    known = _known_events(writer, [logged for _, events in decoded for logged in events])
    overlay.prefetch(_named_rows(writer, decoded, known))
    for record, events in decoded:
        _reduce_record(record, events, overlay, known, reduced, now)
        if events and partitions.get(record.topic):
            _look_for_misplaced(record, events[0].event, overlay, reduced, partitions[record.topic])
        reduced.changes.positions[Partition(record.topic, record.partition)] = record.offset + 1
    return reduced


def _decode(record: Record, reduced: Reduced, now: datetime, namespace: str) -> list[LoggedEvent]:
    """The record's events. An unreadable record is buried, and so is one on which the reading code fails."""
    try:
        check_readable(record)
        if record.topic.endswith(DLQ_SUFFIX):
            return []
        if (record_format := record_formats().get(record.topic)) is not None:
            events, problem = record_format.decode(record, namespace)
            if problem is not None:
                _bury(reduced, record, problem, now)
            return events
        progress = read_progress(record)
        if progress is not None:
            for source in progress.sources:
                key = (progress.stage, source.at)
                reduced.changes.stages[key] = max(source.offset, reduced.changes.stages.get(key, 0))
        return decode(record, lambda index, reason: _bury(reduced, record, reason, now, index))
    except Exception as error:
        _bury(reduced, record, error, now)
        return []


def _bury(reduced: Reduced, record: Record, error: Exception, now: datetime, index: int | None = None) -> None:
    """A dead letter of the record. Of an array only the observation at `index`, for the others are applied."""
    alone = None if index is None or record.topic in record_formats() else observation_alone(record, index)
    letter = letter_for(record, error, now, index=None if alone is None else index)
    reduced.buried.append((_to_bury(alone or record), letter))


def _to_bury(record: Record) -> Record:
    """The record as its dead-letter topic takes it. What cannot be read of a dead-letter topic goes to the same one."""
    record = replace(record, headers=tuple(header for header in record.headers if header[0] != UNREADABLE))
    if (record_format := record_formats().get(record.topic)) is not None:
        return replace(record, topic=record_format.dead_letters, partition=0)
    return replace(record, topic=record.topic.removesuffix(DLQ_SUFFIX))


def letter_for(
    record: Record,
    error: Exception,
    now: datetime,
    *,
    stage: str = MATERIALISE,
    attempt: int = 1,
    index: int | None = None,
) -> DeadLetter:
    """The dead letter of a record, or of the observation at `index` in its array, that failed."""
    return DeadLetter(record.position, stage, "thalweg", attempt, type(error).__name__, str(error), now, index=index)


Known = dict[Any, int]
"""Digest of the body by event key, of what was applied before."""


def _known_events(writer: Writer, events: Sequence[LoggedEvent]) -> Known:
    rows = writer.find(EVENTS, {(logged.key,): None for logged in events}) if events else {}
    return {key[0]: row["digest"] for key, row in rows.items()}


def _named_rows(
    writer: Writer, decoded: Sequence[tuple[Record, Sequence[LoggedEvent]]], known: Known
) -> Iterable[tuple[str, Key]]:
    for _, events in decoded:
        for logged in events:
            if logged.key in known:
                continue
            namespace = logged.event.namespace
            if logged.position.topic == MEMORY.name:
                yield OUTCOMES, (namespace, _request_id(logged))
            reducer = reducers().get(logged.event.type)
            if reducer is None:
                continue
            for table, key in reducer.reads(logged):
                yield table, (namespace, *key) if writer.tables[table].key[0] == "namespace" else key


def _reduce_record(
    record: Record, events: Sequence[LoggedEvent], overlay: Overlay, known: Known, reduced: Reduced, now: datetime
) -> None:
    if record.topic.endswith(DLQ_SUFFIX):
        _keep_letter(record, overlay)
        return
    for logged in events:
        try:
            _reduce_event(logged, overlay, known, reduced)
        except Exception as error:
            # the record's other observations stand: each is an event of its own
            _bury(reduced, record, error, now, logged.index)


def _look_for_misplaced(record: Record, event: Event, overlay: Overlay, reduced: Reduced, partitions: int) -> None:
    """Count a record that lies on another partition than its key's. It is applied: only its order may be wrong."""
    if _partition_for(record.key or b"", partitions) == record.partition:
        return
    key = (event.namespace, event.source, record.topic)
    row = overlay.get(MISPLACED_RECORDS, key) or {
        "namespace": key[0],
        "source": key[1],
        "topic": key[2],
        "records": 0,
    }
    overlay.put(MISPLACED_RECORDS, key, {**row, "records": row["records"] + 1})
    reduced.misplaced.add(event.source)


_partition_for = lru_cache(4096)(partition_for)


def _reduce_event(logged: LoggedEvent, overlay: Overlay, known: Known, reduced: Reduced) -> None:
    if logged.key in known:
        _count_duplicate(logged, overlay, known[logged.key] == logged.digest)
        reduced.duplicates += 1
        return
    is_request = logged.position.topic == MEMORY.name
    request = (logged.event.namespace, _request_id(logged)) if is_request else ()
    if is_request and overlay.get(OUTCOMES, request) is not None:
        _count_duplicate(logged, overlay, same_body=False)  # the request id was used before: the first stands
        reduced.duplicates += 1
        return
    reducer = reducers().get(logged.event.type)
    state = EventState(overlay)
    rows = Rows(state, logged, state.indexed)
    outcome = reducer.apply(logged, rows) if reducer else None
    state.accept(reduced.indexed)
    known[logged.key] = logged.digest
    overlay.insert(EVENTS, overlay.table(EVENTS).with_origin(_event_row(logged), rows.origin))
    if is_request:
        row = _outcome_row(logged, request, outcome or Outcome())
        overlay.put(OUTCOMES, request, overlay.table(OUTCOMES).with_origin(row, rows.origin))
    reduced.applied.append(logged)


def _request_id(logged: LoggedEvent) -> str:
    return logged.event.data.get("request_id") or logged.event.id


def _event_row(logged: LoggedEvent) -> Row:
    event = logged.event
    return {
        "event_key": logged.key,
        "source": event.source,
        "event_type": event.type,
        "subject": event.subject,
        "occurred_at": at(event.time),
        "digest": logged.digest,
        "traceparent": event.extensions.get("traceparent"),
    }


def _count_duplicate(logged: LoggedEvent, overlay: Overlay, same_body: bool) -> None:
    row = {"event_key": logged.key, "same_body": same_body}
    overlay.insert(DUPLICATES, overlay.table(DUPLICATES).with_origin(row, origin_of(logged)))


def _outcome_row(logged: LoggedEvent, request: Key, outcome: Outcome) -> Row:
    return {
        "request_id": request[1],
        "status": outcome.status,
        "code": outcome.code,
        "message": outcome.message,
        "result": dict(outcome.result),
        "decided_at": at(logged.event.time),
    }


def _keep_letter(record: Record, overlay: Overlay) -> None:
    """A row for each dead letter; a record that thalweg did not put there is passed over."""
    try:
        letter = read_letter(record)
    except (KeyError, ValueError):
        return
    key = (letter.id,)
    if overlay.get(DEAD_LETTERS, key) is not None:
        return
    source, event_type = source_and_type(record)
    overlay.put(
        DEAD_LETTERS,
        key,
        {
            "dead_letter_id": letter.id,
            "topic": letter.position.topic,
            "partition": letter.position.partition,
            "offset": letter.position.offset,
            "stage": letter.stage,
            "attempt": letter.attempt,
            "error_type": letter.error_type,
            "error_message": letter.error_message,
            "first_failed_at": at(letter.first_failed_at),
            "record_key": None if record.key is None else record.key.decode("utf-8", "replace"),
            "observation": letter.index,
            "source": source,
            "event_type": event_type,
            "replay_of": first_letter(record),
            "value_bytes": len(record.value or b""),
            "dlq_topic": record.topic,
            "dlq_partition": record.partition,
            "dlq_offset": record.offset,
        },
    )

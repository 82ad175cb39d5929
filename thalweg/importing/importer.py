"""Imports files: finds them, has their lines read into events, and publishes these in batches.

Importing a file twice changes nothing: the events' ids, the batches' ids and the dead letters' ids are functions of the
content, and what the store holds already is not put on the log again. Memory stays bounded however large a file is: it
is read line by line, a line has at most MAX_LINE_BYTES, and at most MAX_IN_FLIGHT batches wait for the log at once.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import orjson

from processors.telemetry.formats.catalogue import Format, format_of
from processors.telemetry.formats.lines import Mapped, Unreadable, fingerprint
from streams.clock import Clock
from streams.codec import MAX_BYTES, encode_batches, observation_digest, validate
from streams.dlq import DeadLetter, bury, read_letter
from streams.errors import Poison
from streams.events import Event, event_types
from streams.ids import derived_id
from streams.log.base import Log, Outgoing, Record
from streams.positions import Freshness, Position
from streams.topics import MEMORY, TELEMETRY
from thalweg.importing.sources import CUT_LINE_BYTES, MAX_LINE_BYTES, Unit, find_files, open_regular, read_units
from thalweg.importing.stored import FindStored, Stored, nothing_stored
from thalweg.process.gc_tuning import rare_collections

BATCH_EVENTS = 500
BATCH_BYTES = 1024 * 1024
MAX_IN_FLIGHT = 4
SURELY_FITS = 1024 * 1024
"""Bytes of a line whose event, which repeats its texts, cannot come near a record's limit."""
HEADER_BYTES = 8 * 1024
"""More than a record, or its dead letter, has besides its data."""
PUBLISH_TIMEOUT_S = 30.0
MAX_BEFORE_FOLDER = 200
"""Within this many lines a transcript names its working directory, if it ever does."""
_ANYTHING = ("payload", "body")
"""Fields of an event's data that the schemas leave open: not worth the time of checking."""
STAGE = "import"


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import has come; `bytes_read` of `bytes_total` is what a progress bar shows."""

    path: Path
    lines: int
    events: int
    unreadable: int
    bytes_read: int
    bytes_total: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import read and published. `freshness` covers all of it, dead letters too; `bytes` counts what was read.

    `new_lines`: lines of which the store lacked something; one that waited for a later line counts with that line.
    """

    files: int
    lines: int
    new_lines: int
    events: int
    unreadable: int
    records: int
    bytes: int
    seconds: float
    freshness: Freshness
    ignored_files: int
    """Transcripts that an ignore list leaves out, wholly; `skipped` names them."""
    ignored_lines: int
    """Lines of other transcripts that were written in a folder which one leaves out."""
    skipped: list[str]
    """What was left out though it lay in a folder or was named: its path, and why."""


async def import_files(
    log: Log,
    kind: str,
    paths: list[Path],
    *,
    namespace: str,
    clock: Clock,
    on_progress: Callable[[ImportProgress], None] = lambda progress: None,
    find_stored: FindStored = nothing_stored,
    ignore_reason: Callable[[str], str | None] = lambda path: None,
) -> ImportReport:
    """Publish the events of these files, and of all fitting files under these folders. What is unreadable is buried.

    What `find_stored` finds is left out, unless it is stored with another body: the store then records the incident.
    `ignore_reason` says why a transcript, or what was written in a working directory, is left out.

    Returns once all of it is durable. Raises Refused when the kind is not known, a path does not exist or no file is
    found; LogUnavailable when the log does not answer: then a part is imported, and importing again completes it.
    """
    form = format_of(kind)
    files, skipped = find_files(form, paths)
    run = _Import(log, form, files, namespace, clock, on_progress, find_stored, ignore_reason)
    run.skipped += skipped
    with rare_collections():
        try:
            for path in files:
                await run.read_file(path)
            await run.finish()
        finally:
            await run.abandon()
    return run.report()


class _Import:
    """One run: counters, the batch being filled, and what is under way to the log."""

    def __init__(
        self,
        log: Log,
        form: Format,
        files: list[Path],
        namespace: str,
        clock: Clock,
        on_progress: Callable[[ImportProgress], None],
        find_stored: FindStored,
        ignore_reason: Callable[[str], str | None],
    ) -> None:
        self._log = log
        self._form = form
        self._namespace = namespace
        self._clock = clock
        self._on_progress = on_progress
        self._find_stored = find_stored
        self._ignore_reason = ignore_reason
        self._ignored_files = self._ignored_lines = 0
        self._largest = min(
            MAX_BYTES, log.largest(TELEMETRY.name) - HEADER_BYTES, log.largest(MEMORY.name) - HEADER_BYTES
        )
        self._started = clock.monotonic()
        self.skipped: list[str] = []
        self._bytes_total = sum(path.lstat().st_size for path in files)
        self._batch: list[tuple[int, Event]] = []
        """Events with the count of lines that were read when they came; so are dead letters, with their ids."""
        self._batch_bytes = 0
        self._letters: list[tuple[int, str, Outgoing]] = []
        self._new_lines = 0
        self._last_new_line = 0
        self._in_flight: deque[asyncio.Task[list[Position]]] = deque()
        self._freshness = Freshness()
        self._files_done = self._lines = self._events = self._unreadable = self._records = self._bytes_read = 0

    async def read_file(self, path: Path) -> None:
        """Read one file to its end. One that cannot be opened, or was exchanged for something else, is skipped."""
        try:
            file = open_regular(path)
        except OSError as error:
            self.skipped.append(f"{path}: {error.strerror}")
            return
        with file:
            if (reason := self._reason_to_ignore(path, file)) is not None:
                self._ignored_files += 1
                self.skipped.append(f"{path}: {reason}")
                return
            await self._read(path, file)

    def _reason_to_ignore(self, path: Path, file: BinaryIO) -> str | None:
        """Why none of a transcript is read: where it lies, or the working directory that it names first."""
        reason = self._ignore_reason(str(path))
        if reason is None and not self._form.documents:
            mapper = self._form.mapper(namespace=self._namespace, name=path.stem, fallback_time=self._clock.now())
            lines = (unit for unit in islice(read_units(file, documents=False), MAX_BEFORE_FOLDER) if not unit.is_cut)
            events = (item for unit in lines if unit.raw.strip() for item in mapper.line(unit.number, unit.raw))
            folder = next((found for item in events if (found := _folder_of(item)) is not None), None)
            reason = None if folder is None else self._ignore_reason(folder)
            file.seek(0)
        return reason

    async def _read(self, path: Path, file: BinaryIO) -> None:
        modified = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
        mapper = self._form.mapper(namespace=self._namespace, name=path.stem or path.name, fallback_time=modified)
        for unit in read_units(file, documents=self._form.documents):
            self._lines += unit.lines
            self._bytes_read += unit.size
            if unit.is_cut:
                reason = f"{unit.size} bytes; at most {MAX_LINE_BYTES} are read (the start is kept)"
                await self._take(path, unit, [Unreadable(unit.number, unit.raw, reason)])
            elif unit.raw and not unit.raw.isspace():
                await self._take(path, unit, mapper.line(unit.number, unit.raw))
        await self._take(path, Unit(0, b"", 0, 0), mapper.end())
        self._files_done += 1
        self._report_progress(path)

    async def _take(self, path: Path, unit: Unit, mapped: Sequence[Mapped]) -> None:
        for item in mapped:
            if isinstance(item, Unreadable):
                self._bury(path, item)
                continue
            if (folder := _folder_of(item)) is not None and self._ignore_reason(folder) is not None:
                self._ignored_lines += 1
                continue
            reason = _refusal(item, len(unit.raw), self._largest)
            if reason is None:
                self._batch.append((self._lines, item))
                self._events += 1
            else:
                self._bury(
                    path, Unreadable(unit.number, unit.raw if len(mapped) == 1 else orjson.dumps(item.data), reason)
                )
        self._batch_bytes += len(unit.raw)
        if len(self._batch) >= BATCH_EVENTS or self._batch_bytes >= BATCH_BYTES or len(self._letters) >= BATCH_EVENTS:
            await self._publish()
            self._report_progress(path)

    def _bury(self, path: Path, unreadable: Unreadable) -> None:
        self._unreadable += 1
        place = Position(f"import:{self._form.kind}", 0, unreadable.line_number)
        letter = DeadLetter(
            position=place,
            stage=STAGE,
            group=self._namespace,
            attempt=1,
            error_type="Unreadable",
            error_message=f"{path.name}, line {unreadable.line_number}: {unreadable.reason}",
            first_failed_at=self._clock.now(),
            identity=f"{self._form.kind}/{self._namespace}/{fingerprint(unreadable.raw)}",
        )
        raw = (
            unreadable.raw
            if len(unreadable.raw) <= self._largest
            else unreadable.raw[: min(CUT_LINE_BYTES, self._largest)]
        )
        record = Record(TELEMETRY.name, 0, unreadable.line_number, 0, self._namespace.encode(), raw)
        self._letters.append((self._lines, letter.id, replace(bury(record, letter), partition=None)))

    # --- to the log

    async def _publish(self) -> None:
        """Hand over what of the gathered is new; waits only when too much is under way."""
        batch, letters = self._batch, self._letters
        self._batch, self._letters, self._batch_bytes = [], [], 0
        if not batch and not letters:
            return
        stored = await self._find_stored([event.key for _, event in batch], [letter_id for _, letter_id, _ in letters])
        events = [(line, event) for line, event in batch if _is_new(event, stored)]
        buried = [(line, record) for line, letter_id, record in letters if letter_id not in stored.letters]
        self._count_lines({line for line, _ in events} | {line for line, _ in buried})
        records = [*self._encoded([event for _, event in events]), *(record for _, record in buried)]
        if not records:
            return
        self._records += len(records)
        while len(self._in_flight) >= MAX_IN_FLIGHT:
            await self._land()
        self._in_flight.append(asyncio.create_task(self._log.publish(records, timeout_s=PUBLISH_TIMEOUT_S)))
        await asyncio.sleep(0)

    def _count_lines(self, lines: Set[int]) -> None:
        """A line whose events are in two batches counts once."""
        if lines:
            self._new_lines += len(lines - {self._last_new_line})
            self._last_new_line = max(lines)

    def _encoded(self, events: Sequence[Event]) -> Iterator[Outgoing]:
        """The events as records, in order; a record has one topic and one source."""
        group: list[Event] = []
        for event in events:
            if group and not _alike(group[0], event):
                yield from self._records_of(group)
                group = []
            group.append(event)
        if group:
            yield from self._records_of(group)

    def _records_of(self, events: list[Event]) -> list[Outgoing]:
        """One record, or two halves as often as one would be too large."""
        return encode_batches(event_types()[events[0].type].topic, _envelope, events, self._largest)

    async def _land(self) -> None:
        positions = await self._in_flight.popleft()
        self._freshness = self._freshness.merged(Freshness.after(positions))

    async def finish(self) -> None:
        """Publish the rest and wait until all is durable."""
        while self._batch or self._letters:
            await self._publish()
        while self._in_flight:
            await self._land()

    async def abandon(self) -> None:
        """After a failure: let what is under way end, and leave no task behind."""
        await asyncio.gather(*self._in_flight, return_exceptions=True)
        self._in_flight.clear()

    # --- what it says

    def _report_progress(self, path: Path) -> None:
        self._on_progress(
            ImportProgress(
                path,
                self._lines,
                self._events,
                self._unreadable,
                self._bytes_read,
                self._bytes_total,
                self._clock.monotonic() - self._started,
            )
        )

    def report(self) -> ImportReport:
        """The counts of the whole run."""
        seconds = self._clock.monotonic() - self._started
        return ImportReport(
            self._files_done,
            self._lines,
            self._new_lines,
            self._events,
            self._unreadable,
            self._records,
            self._bytes_read,
            seconds,
            self._freshness,
            self._ignored_files,
            self._ignored_lines,
            self.skipped,
        )


def _folder_of(item: Mapped) -> str | None:
    """The working directory that an event of a session names."""
    session = item.data.get("session") if isinstance(item, Event) else None
    folder = session.get("project") if isinstance(session, dict) else None
    return folder if isinstance(folder, str) else None


def _is_new(event: Event, stored: Stored) -> bool:
    """Whether the store lacks the event, or has another body under its id. A digest costs as much as encoding."""
    known = stored.events.get(event.key)
    return known is None or known != observation_digest(event.data)


def _envelope(events: Sequence[Event]) -> Event:
    first = events[0]
    return first.changed(
        id=derived_id("import-batch", first.source, *(event.id for event in events)), data={}, subject=None
    )


def _alike(one: Event, other: Event) -> bool:
    same_topic = one.type == other.type or event_types()[one.type].topic == event_types()[other.type].topic
    return same_topic and one.source == other.source and one.extensions == other.extensions


def _refusal(event: Event, raw_bytes: int, largest: int) -> str | None:
    """Why the other side would refuse the event, and with it the whole record; None when it would not."""
    try:
        validate(event.type, {name: value for name, value in event.data.items() if name not in _ANYTHING})
    except Poison as poison:
        return f"not a valid event: {poison.message}"
    if raw_bytes > min(SURELY_FITS, largest // 8) and len(orjson.dumps(event.data)) > largest - SURELY_FITS // 100:
        return f"its event is larger than the {largest} bytes that a record may have"
    return None


def reread(letter: Record) -> list[Event]:
    """The events of a line that an import had buried, read anew: what a replay of such a letter publishes.

    Raises Poison with the reason when the line is still unreadable, ValueError when the letter is not of an import.
    """
    known = read_letter(letter)
    origin, _, kind = known.position.topic.partition(":")
    if origin != "import" or known.stage != STAGE:
        raise ValueError(f"the dead letter {known.id} was not buried by an import")
    namespace = (letter.key or b"").decode()
    mapper = format_of(kind).mapper(namespace=namespace, name="unknown", fallback_time=known.first_failed_at)
    mapped = [*mapper.line(known.position.offset, letter.value or b""), *mapper.end()]
    events = [item for item in mapped if isinstance(item, Event)]
    if len(events) < len(mapped):
        raise Poison(next(item.reason for item in mapped if isinstance(item, Unreadable)))
    return events

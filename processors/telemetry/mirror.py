"""Mirrors the agents' own telemetry as JSON Lines, for tools that read files.

The file is `telemetry/events.jsonl`. It is a convenience, never truth: a crash may lose or repeat its last lines, the
log has them all. Of our own tools it holds ids, counts and enums, as the telemetry topic does; what another
producer sends stands there as it was sent. It rotates at 100 MB or with the UTC day; rotated files are packed and kept
30 days.
"""

from __future__ import annotations

import gzip
import logging
import shutil
import threading
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import orjson

from streams.clock import Clock, format_time
from streams.event_types.telemetry import TALOS_EVENTS
from streams.events import Event, wire_type

MAX_BYTES = 100_000_000
KEPT_DAYS = 30
FILE_NAME = "events.jsonl"

logger = logging.getLogger(__name__)


class TelemetryMirror:
    """Appends events in the order in which they were applied. Used from one thread."""

    types = frozenset(wire_type(name) for name in TALOS_EVENTS)

    def __init__(self, directory: Path, clock: Clock, *, max_bytes: int = MAX_BYTES) -> None:
        self._directory, self._clock, self._max_bytes = directory, clock, max_bytes
        self._file = directory / FILE_NAME
        self._day: date | None = None
        self._packing: threading.Thread | None = None

    def write(self, events: Sequence[Event]) -> None:
        """Append a line for each event. A disk that takes none is a warning in the program's log, no more."""
        if not events:
            return
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._rotate()
            with self._file.open("ab") as file:
                file.write(b"".join(_line(event) for event in events))
        except OSError as error:
            logger.warning("the telemetry mirror takes nothing: %s", error.strerror or type(error).__name__)

    def has_lines(self) -> bool:
        """Whether anything was mirrored before, in this file or in one that was rotated."""
        return any(self._directory.glob("events*.jsonl*"))

    def wait_packed(self, timeout_s: float = 30.0) -> None:
        """Wait until the rotated file is packed."""
        if self._packing is not None:
            self._packing.join(timeout_s)

    def _rotate(self) -> None:
        today = self._clock.now().date()
        if self._file.exists():
            day = self._day or datetime.fromtimestamp(self._file.stat().st_mtime, UTC).date()
            if day < today or self._file.stat().st_size >= self._max_bytes:
                self._pack(self._rename(day), today)
        self._day = today

    def _rename(self, day: date) -> Path:
        number = 1
        while any(self._directory.glob(f"events-{day}-{number}.jsonl*")):
            number += 1
        return self._file.rename(self._directory / f"events-{day}-{number}.jsonl")

    def _pack(self, rotated: Path, today: date) -> None:
        self.wait_packed()
        self._packing = threading.Thread(target=_packed, args=(rotated, today), name="pack-telemetry", daemon=True)
        self._packing.start()


def _line(event: Event) -> bytes:
    name = event.type.removeprefix("thalweg.").rsplit(".v", 1)[0]
    data = event.data
    line = {
        "timestamp": format_time(event.time),
        "event_type": name,
        "trace_id": data.get("trace_id"),
        "span_id": data.get("span_id"),
        "attributes": data["attributes"],
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def _packed(rotated: Path, today: date) -> None:
    """Gzip the file, then remove what is older than `KEPT_DAYS`."""
    packed = rotated.with_suffix(".jsonl.gz")
    with rotated.open("rb") as source, gzip.open(packed, "wb") as target:
        shutil.copyfileobj(source, target)
    rotated.unlink()
    for old in rotated.parent.glob("events-*.jsonl.gz"):
        day = old.name.removeprefix("events-")[:10]
        if day < (today - timedelta(days=KEPT_DAYS)).isoformat():
            old.unlink(missing_ok=True)

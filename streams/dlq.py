"""Dead letters: the original key and value, and headers that say what happened.

Secrets of a known form are redacted in a value that is text, so that a refused secret is not stored a second time. JSON
stays JSON around the mark, and a replay publishes it so. Other bytes are untouched.

The letter lies in `<topic>.dlq`, on the partition of its record. It keeps the record's headers; ours start with `dlq.`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from streams.clock import format_time, parse_time
from streams.ids import derived_id
from streams.log.base import Outgoing, Record
from streams.positions import Position
from streams.redaction import excerpt, redact_json
from streams.topics import DLQ_SUFFIX

PREFIX = "dlq."
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
REPLAY_OF = "thalweg-replay-of"
"""Header of a replayed record: the id of its first dead letter, so that failing again gives the same letter."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Why a record could not be applied. `id` is a function of position and stage: a repeat is the same letter.

    `identity`, made of the content, replaces the position of what was never on a topic (a line of an imported file).
    `index` is the place of a single observation in its record's array.
    """

    position: Position
    stage: str
    group: str
    attempt: int
    error_type: str
    error_message: str
    first_failed_at: datetime
    identity: str | None = None
    index: int | None = None

    @property
    def id(self) -> str:
        place = str(self.position) if self.index is None else f"{self.position}#{self.index}"
        return derived_id("dead-letter", self.identity or place, self.stage)


def bury(record: Record, letter: DeadLetter) -> Outgoing:
    """Make the record for the dead-letter topic."""
    ours = {
        "topic": letter.position.topic,
        "partition": str(letter.position.partition),
        "offset": str(letter.position.offset),
        "group": letter.group,
        "stage": letter.stage,
        "attempt": str(letter.attempt),
        "error.type": letter.error_type,
        "error.message": excerpt(letter.error_message, 2000),
        "first_failed_at": format_time(letter.first_failed_at),
    }
    if letter.identity is not None:
        ours["identity"] = letter.identity
    if letter.index is not None:
        ours["index"] = str(letter.index)
    kept = tuple((name, value and redact_json(value)) for name, value in record.headers if not name.startswith(PREFIX))
    headers = kept + tuple((PREFIX + name, value.encode("utf-8", "replace")) for name, value in ours.items())
    value = redact_json(record.value) if record.value is not None and _is_text(record.value) else record.value
    return Outgoing(record.topic + DLQ_SUFFIX, record.key and redact_json(record.key), value, headers, record.partition)


def _is_text(value: bytes) -> bool:
    """Whether it is UTF-8 without control characters: a mark would break the lengths in protobuf."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return _CONTROL.search(value) is None


def read_letter(record: Record) -> DeadLetter:
    """The inverse of `bury`. Raises ValueError or KeyError for a record that `bury` has not made."""
    ours = {name[len(PREFIX) :]: value.decode() for name, value in record.headers if name.startswith(PREFIX)}
    return DeadLetter(
        position=Position(ours["topic"], int(ours["partition"]), int(ours["offset"])),
        stage=ours["stage"],
        group=ours["group"],
        attempt=int(ours["attempt"]),
        error_type=ours["error.type"],
        error_message=ours["error.message"],
        first_failed_at=parse_time(ours["first_failed_at"]),
        identity=ours.get("identity"),
        index=int(ours["index"]) if "index" in ours else None,
    )


def first_letter(record: Record) -> str | None:
    """The id of the dead letter that this record replays; None when it is not a replay."""
    return next((value.decode("utf-8", "replace") for name, value in record.headers if name == REPLAY_OF), None)


def exhume(record: Record) -> Outgoing:
    """Restore the original record, with one header of ours: the name of its dead letter."""
    letter = read_letter(record)
    headers = tuple((name, value) for name, value in record.headers if not name.startswith(PREFIX))
    if first_letter(record) is None:
        headers = (*headers, (REPLAY_OF, letter.id.encode()))
    # what was never on a partition goes to that of its key
    partition = letter.position.partition if letter.identity is None else None
    return Outgoing(letter.position.topic, record.key, record.value, headers, partition)

"""Dead letters of the spool: a record that the log will never take does not hold up those behind it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from streams.clock import SystemClock
from streams.dlq import DeadLetter, bury
from streams.errors import RecordRefused
from streams.files import make_directory, sync
from streams.log.base import Log, Outgoing, Record
from streams.positions import Position

STAGE = "spool"


async def publish_or_bury(log: Log, records: Sequence[Outgoing], folder: Path) -> list[Position]:
    """Publish the records in order; one that is refused becomes a dead letter. Raises LogUnavailable.

    `folder` takes the data of a record whose dead-letter topic does not take it either.
    """
    try:
        return await log.publish(records)
    except RecordRefused as error:
        if len(records) == 1:
            return await _bury(log, records[0], error, folder)
    return [position for record in records for position in await publish_or_bury(log, [record], folder)]


async def _bury(log: Log, record: Outgoing, error: RecordRefused, folder: Path) -> list[Position]:
    body = record.value or b""
    identity = hashlib.blake2b(
        b"\0".join((record.key or b"", body, repr(record.headers).encode())), digest_size=16
    ).hexdigest()
    place = Position(record.topic, 0, 0)  # it never had one
    letter = DeadLetter(place, STAGE, "thalweg", 1, type(error).__name__, error.message, SystemClock().now(), identity)
    unplaced = Record(record.topic, 0, 0, 0, record.key, body, record.headers)
    try:
        return await log.publish([replace(bury(unplaced, letter), partition=None)])
    except RecordRefused:
        make_directory(folder, 0o700)
        path = folder / f"{identity}.json"
        _write_synced(path, body)
        sync(folder)  # the spool is emptied next, and this is all that is left of the write
        letter = replace(
            letter, error_message=f"{error.message} Its data is kept in {path.name} of the folder {folder.name}."
        )
        return await log.publish([replace(bury(replace(unplaced, value=None), letter), partition=None)])


def _write_synced(path: Path, body: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())

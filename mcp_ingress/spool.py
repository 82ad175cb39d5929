"""The local spool keeps writes while the log does not answer, synced to disk.

Once the log is back they follow in order. The file is a sequence of frames (length, CRC, the records of one append), so
an append is in it whole or not at all. A crash may leave a half-written frame at the end: its write was never answered,
and the next start cuts it off.
"""

from __future__ import annotations

import asyncio
import os
import struct
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from mcp_ingress.refused import publish_or_bury
from streams.errors import LogUnavailable
from streams.files import sync
from streams.log.base import Log, Outgoing
from streams.positions import Freshness

MAX_BYTES = 256 * 1024 * 1024
DRAIN_BYTES = 4 * 1024 * 1024
SPOOLED = (
    "Accepted and kept: the log does not answer now, so the write is synced to disk here and takes effect by itself, "
    "in order, once the log is back. Do not send it again. The session continues."
)
"""The message of a spooled write. A caller that read of a failure only would write it twice."""
REFUSED = "refused"
"""The folder beside it for what neither the log nor its dead letters take."""
_FRAME = struct.Struct(">II")
_RECORDS = msgspec.msgpack.Decoder(list[Outgoing])


class Spool:
    """One file, one process. Events carry deterministic ids, so publishing a frame twice has one effect."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._draining = asyncio.Lock()
        self._size = _cut_torn_tail(path)
        self._is_named = False
        self.followed = Freshness()
        """How far on the log lies what waited here and has followed: a reader that got `stale` waits for it."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits. While something does, every write must follow it through the spool."""
        return self._size == 0

    @property
    def size_bytes(self) -> int:
        """How much waits."""
        return self._size

    async def append(self, records: Sequence[Outgoing]) -> None:
        """Keep these records, synced to disk when this returns. Raises LogUnavailable when that is impossible."""
        body = msgspec.msgpack.encode(list(records))
        await asyncio.to_thread(self._append, _FRAME.pack(len(body), zlib.crc32(body)) + body)

    async def drain(self, log: Log) -> int:
        """Publish everything in order, then empty the file; returns how many records went.

        A record that the log will never take becomes a dead letter. Raises LogUnavailable when the log still does not
        answer; the file is then as it was.
        """
        if self.is_empty:
            return 0
        async with self._draining:
            offset = sent = 0
            while True:
                records, end = await asyncio.to_thread(self._read, offset)
                if records:
                    positions = await publish_or_bury(log, records, self.path.with_name(REFUSED))
                    self.followed = self.followed.merged(Freshness.after(positions))
                    sent += len(records)
                    offset = end
                elif await asyncio.to_thread(self._empty_if_at, offset):
                    return sent

    def _append(self, frame: bytes) -> None:
        with self._lock:
            if self._size + len(frame) > self._max_bytes:
                raise LogUnavailable(
                    f"The log does not answer and its local spool is full ({self._max_bytes // 1024 // 1024} MiB): "
                    "nothing was written; call again once the log answers.",
                    retry_after_ms=5000,
                )
            try:
                _write_synced(self.path, self._size, frame)
                if not self._is_named:  # the process that made the file may have ended before its name was on disk
                    sync(self.path.parent)
                    self._is_named = True
            except OSError as error:
                raise LogUnavailable(
                    f"The log does not answer and its local spool cannot be written: {error.strerror}. "
                    "Call again with the same request id."
                ) from error
            self._size += len(frame)

    def _read(self, offset: int) -> tuple[list[Outgoing], int]:
        """Whole frames from `offset`, at least one when there is one, about DRAIN_BYTES of them."""
        with self._lock:
            if offset >= self._size:
                return [], offset
            with self.path.open("rb") as file:
                records: list[Outgoing] = []
                start = offset
                file.seek(offset)
                while offset - start < DRAIN_BYTES and (body := _next_frame(file)) is not None:
                    records.extend(_RECORDS.decode(body))
                    offset = file.tell()
                return records, offset

    def _empty_if_at(self, offset: int) -> bool:
        """Empty the file unless something was appended behind `offset` meanwhile."""
        with self._lock:
            if self._size > offset:
                return False
            if self._size:
                _truncate(self.path, 0)
                self._size = 0
            return True


def _write_synced(path: Path, size: int, frame: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        try:
            _write_all(handle, frame, size)
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, size)  # a half frame must not stand before the next one
            raise
    finally:
        os.close(handle)


def _write_all(handle: int, frame: bytes, offset: int) -> None:
    view = memoryview(frame)
    while view:
        written = os.pwrite(handle, view, offset)
        view, offset = view[written:], offset + written


def _next_frame(file: BinaryIO) -> bytes | None:
    """The next frame's body. None at the end, and where the rest is cut short or zeros that a power cut left."""
    head = file.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return None
    length, checksum = _FRAME.unpack(head)
    body = file.read(length)
    return body if body and len(body) == length and zlib.crc32(body) == checksum else None


def _cut_torn_tail(path: Path) -> int:
    """The size of the whole frames; what follows them is cut off."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        size = 0
        while _next_frame(file) is not None:
            size = file.tell()
    if size != path.stat().st_size:
        _truncate(path, size)
    return size


def _truncate(path: Path, size: int) -> None:
    handle = os.open(path, os.O_WRONLY)
    try:
        os.ftruncate(handle, size)
        os.fsync(handle)  # else what has followed would follow again after a power cut
    finally:
        os.close(handle)

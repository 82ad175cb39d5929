"""Vectors of any size by label, in a file that is appended to.

    file    magic, digest of the space · records
    record  label, size, checksum, digest of the text · body

Each record has its checksum, so that a kill at any moment costs the last ones at most: what does not check is cut off
when the file is opened, and made again. Nothing of it is held but where each label's body is (16 bytes).
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
import threading
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from storage.search.files.row_file import write_all
from storage.search.records.label_map import ABSENT, LabelMap

_MAGIC = b"THALWEG vectors of a view 1\n"
_HEAD = struct.Struct("<qII8s")
_SIZE_BITS = 24
MAX_BODY = (1 << _SIZE_BITS) - 1
"""The longest body, 16 MB."""


def text_digest(text: str) -> bytes:
    """What says later whether a label's vector is of this text."""
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()


class VectorFile:
    """Bodies by label. One thread adds and removes, any number read."""

    def __init__(self, path: Path, space: str) -> None:
        """Open what is whole of the file at `path`; another space's is begun anew."""
        self.path = path
        self._start = _MAGIC + hashlib.blake2b(space.encode(), digest_size=16).digest()
        self._adding = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("r+b" if path.exists() else "w+b", buffering=0)
        self._digests: dict[int, bytes] = {}
        if self._file.read(len(self._start)) == self._start:
            self._scan()
        else:
            os.ftruncate(self._file.fileno(), 0)
            write_all(self._file.fileno(), self._start, 0)
            self._places, self._end = LabelMap(), len(self._start)

    def _scan(self) -> None:
        """Find every whole record; the first that is not ends the file. Of several of a label the last counts."""
        found: dict[int, int] = {}
        at = len(self._start)
        with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            while at + _HEAD.size <= len(view):
                label, size, checksum, digest = _HEAD.unpack_from(view, at)
                stop = at + _HEAD.size + size
                if size > MAX_BODY or stop > len(view):
                    break
                if _checksum(label, digest, view[at + _HEAD.size : stop]) != checksum:
                    break
                found[label] = (at + _HEAD.size) << _SIZE_BITS | size
                self._digests[label] = digest
                at = stop
        os.ftruncate(self._file.fileno(), at)
        count, self._end = len(found), at
        self._places = LabelMap(np.fromiter(found, np.int64, count), np.fromiter(found.values(), np.int64, count))

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, label: int) -> bool:
        return label in self._places

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return self._end

    def labels(self) -> np.ndarray:
        """Every label that has a body, sorted, int64."""
        return self._places.labels()

    def stale(self, digests: Mapping[int, bytes]) -> list[int]:
        """Those labels that were of another text when the file was opened than these digests say."""
        return [label for label, digest in digests.items() if self._digests.get(label, digest) != digest]

    def forget_digests(self) -> None:
        """They are needed once, after the file was opened."""
        self._digests = {}

    def add(self, bodies: Sequence[tuple[int, bytes, bytes]]) -> None:
        """Keep (label, digest of its text, body). An OSError (disk full) passes through."""
        with self._adding:
            records: list[bytes] = []
            places: dict[int, int] = {}
            end = self._end
            for label, digest, body in bodies:
                records.append(_HEAD.pack(label, len(body), _checksum(label, digest, body), digest) + body)
                places[label] = (end + _HEAD.size) << _SIZE_BITS | len(body)
                end += len(records[-1])
            write_all(self._file.fileno(), b"".join(records), self._end)
            self._end = end
            for label, place in places.items():  # last: readers look up places first
                self._places.add(label, place)

    def remove(self, labels: Sequence[int]) -> None:
        """Forget the labels, until they are added again: what a start finds of them is `stale`, too."""
        with self._adding:
            self._places.remove(labels)

    def read(self, labels: Sequence[int]) -> dict[int, bytes]:
        """The bodies of those labels that have one."""
        places = self._places.find(np.array(labels, np.int64)).tolist()
        return {
            label: os.pread(self._file.fileno(), place & MAX_BODY, place >> _SIZE_BITS)
            for label, place in zip(labels, places, strict=True)
            if place != ABSENT
        }

    def close(self) -> None:
        self._file.close()


def _checksum(label: int, digest: bytes, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(digest, label & 0xFFFFFFFF))

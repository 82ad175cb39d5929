"""Token vectors by label, in a file that is read where a query needs it.

The rows are in the page cache, not in the memory of the process.

    file    magic, digest of (space, model) · records
    record  label, count, checksum · count ids (uint16) · count rows (WIDTH int8)

Records are only appended, each with its checksum, so that a kill at any moment costs the last one at most: what does
not check is cut off at `open` and comes from the table again. Nothing of it is held but each label's place (16 bytes).
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
import threading
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from storage.search.files.row_file import write_all
from storage.search.records.label_map import ABSENT, LabelMap
from storage.search.vectors.token_vectors import STEP, STOP_SHARE, WIDTH, Tokens, unpack

_MAGIC = b"THALWEG token vectors 1\n"
_DIGEST_BYTES = 16
_HEAD = struct.Struct("<qII")
_ID_BYTES = 2
_ROW_BYTES = _ID_BYTES + WIDTH
_COUNT_BITS = 20
_MAX_COUNT = (1 << _COUNT_BITS) - 1
_REMOVED = -1
_SCAN_BYTES = 8 * 1024 * 1024
_SINGLE_THREADED = 200_000


class TokenStore:
    """One model's token vectors. Any number of threads add, remove and score."""

    def __init__(self, path: Path, space: str, model_id: str) -> None:
        """Open what is whole of the file at `path`; another model's is begun anew. 0.5 s per 100,000 texts."""
        self.path = path
        self._start = _MAGIC + hashlib.blake2b(f"{space}\0{model_id}".encode(), digest_size=_DIGEST_BYTES).digest()
        self._holding = np.zeros(65_536, np.int32)
        self._rows = 0
        self._adding = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("r+b" if path.exists() else "w+b", buffering=0)
        if self._file.read(len(self._start)) != self._start:
            self._begin()
        else:
            self._scan()

    def _begin(self) -> None:
        os.ftruncate(self._file.fileno(), 0)
        os.pwrite(self._file.fileno(), self._start, 0)
        self._places, self._end, self._rows = LabelMap(), len(self._start), 0
        self._holding[:] = 0

    def _scan(self) -> None:
        """Find every whole record; the first that is not ends the file."""
        size = os.fstat(self._file.fileno()).st_size
        found: dict[int, int] = {}
        at = len(self._start)
        with mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ) as view:
            while (stop := self._scan_some(view, at, found)) > at:
                at = stop
                view.madvise(mmap.MADV_DONTNEED)  # read once: not to be counted as ours
        self._end = at
        os.ftruncate(self._file.fileno(), at)
        self._places = LabelMap(
            np.fromiter(found, np.int64, len(found)), np.fromiter(found.values(), np.int64, len(found))
        )

    def _scan_some(self, view: mmap.mmap, start: int, found: dict[int, int]) -> int:
        """Read records from `start` on, some megabytes of them. Where the next one begins (`start`: there is none)."""
        at, ids = start, []
        with memoryview(view) as body:
            while at + _HEAD.size <= len(body) and at - start < _SCAN_BYTES:
                label, count, checksum = _HEAD.unpack_from(body, at)
                stop = at + _HEAD.size + count * _ROW_BYTES
                if count > _MAX_COUNT or stop > len(body):
                    break
                with body[at + _HEAD.size : stop] as rows:
                    if _checksum(label, count, rows) != checksum:
                        break
                    if label != _REMOVED and label not in found:
                        found[label] = _place(at + _HEAD.size, count)
                        ids.append(np.frombuffer(bytes(rows[: _ID_BYTES * count]), "<u2"))
                at = stop
        self._count_ids(ids)
        return at

    def _count_ids(self, ids: Sequence[np.ndarray], sign: int = 1) -> None:
        """Keep up in how many texts each token id is."""
        if ids:
            numbers = np.repeat(np.arange(len(ids), dtype=np.int64), [len(some) for some in ids])
            once, counts = np.unique(np.unique(numbers << 16 | np.concatenate(ids)) & 0xFFFF, return_counts=True)
            self._holding[once] += sign * counts.astype(np.int32)
            self._rows += sign * len(numbers)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, label: int) -> bool:
        return label in self._places

    @property
    def size(self) -> int:
        """The size of what is stored, on disk."""
        return self._rows * _ROW_BYTES

    def labels(self) -> np.ndarray:
        """Every label that is held, sorted, int64."""
        return self._places.labels()

    def lengths(self, labels: np.ndarray) -> np.ndarray:
        """(n,) how many tokens are stored for each label; 0 for one that is unknown."""
        places = self._places.find(labels)
        return np.where(places == ABSENT, 0, places & _MAX_COUNT)

    def add(self, packed: Iterable[tuple[int, str]]) -> None:
        """Make (label, packed tokens) available. A known label keeps its own. An OSError passes through."""
        with self._adding:
            places: dict[int, int] = {}
            records: list[bytes] = []
            ids: list[np.ndarray] = []
            end = self._end
            for label, text in packed:
                some, codes = unpack(text)
                if label in places or label in self._places or not 0 < len(some) <= _MAX_COUNT:
                    continue
                body = some.astype("<u2").tobytes() + codes.tobytes()
                records.append(_HEAD.pack(label, len(some), _checksum(label, len(some), body)) + body)
                places[label] = _place(end + _HEAD.size, len(some))
                ids.append(some)
                end += len(records[-1])
            if records:
                write_all(self._file.fileno(), b"".join(records), self._end)
                self._end = end
                self._count_ids(ids)
                for label, place in places.items():  # last: scorers look up places first
                    self._places.add(label, place)

    def remove(self, labels: Sequence[int]) -> None:
        """Forget the labels: they are not scored any more.

        Their numbers are overwritten in the file.
        """
        with self._adding:
            for label in labels:
                place = self._places.get(label)
                if place != ABSENT:
                    start, count = place >> _COUNT_BITS, place & _MAX_COUNT
                    ids = np.frombuffer(os.pread(self._file.fileno(), _ID_BYTES * count, start), "<u2")
                    self._count_ids([ids], -1)
                    zeros = bytes(count * _ROW_BYTES)
                    write_all(
                        self._file.fileno(),
                        _HEAD.pack(_REMOVED, count, _checksum(_REMOVED, count, zeros)) + zeros,
                        start - _HEAD.size,
                    )
            self._places.remove(labels)

    def clear(self) -> None:
        """Begin anew: what is there belongs to other texts."""
        with self._adding:
            self._begin()

    def sync(self) -> None:
        """Write it to the disk, so that little is read from the table again after a loss of power."""
        os.fdatasync(self._file.fileno())

    def packed_body(self, label: int) -> bytes:
        """What is stored for a label, ids and rows as `pack` joins them; nothing for one that is unknown."""
        place = self._places.get(label)
        return (
            b""
            if place == ABSENT
            else os.pread(self._file.fileno(), (place & _MAX_COUNT) * _ROW_BYTES, place >> _COUNT_BITS)
        )

    def rarity(self, ids: np.ndarray | slice) -> np.ndarray:
        """(k,) inverse document frequency of token ids over all that is held."""
        count = max(1, len(self))
        holding = self._holding[ids]
        found: np.ndarray = np.log1p((count - holding + 0.5) / (holding + 0.5)).clip(0.0)
        return found

    def weights(self, query: Tokens) -> np.ndarray:
        """(k,) what each token of a query counts, sum 1: inverse document frequency over all that is held."""
        rarity = self.rarity(query.ids)
        weights = np.where(query.content, rarity, STOP_SHARE * np.log1p((max(1, len(self)) + 0.5) / 0.5))
        total = float(weights.sum())
        return weights / total if total > 0 else np.full(len(weights), 1 / max(1, len(weights)))

    def similarities(self, query: Tokens, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) whether each label is there; and (rows of those, tokens of the query) best cosines."""
        places = self._places.find(labels)
        known = places != ABSENT
        if not known.any() or not len(query.ids):
            return np.zeros(len(labels), bool), np.empty((0, len(query.ids)), np.float32)
        counts = places[known] & _MAX_COUNT
        codes = self._read(places[known] >> _COUNT_BITS, counts)
        cosines = _products(codes, query.vectors.T * np.float32(STEP))
        return known, np.maximum.reduceat(cosines, np.cumsum(counts) - counts, axis=0)

    def _read(self, starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """(sum of counts, WIDTH) int8 rows, read text by text: a map of the file takes four times the time."""
        begins, lengths = (starts + _ID_BYTES * counts).tolist(), (WIDTH * counts).tolist()
        file = self._file.fileno()
        parts = [os.pread(file, length, begin) for begin, length in zip(begins, lengths, strict=True)]
        return np.frombuffer(b"".join(parts), np.int8).reshape(-1, WIDTH)

    def close(self) -> None:
        self._file.close()


def _place(start: int, count: int) -> int:
    return start << _COUNT_BITS | count


def _checksum(label: int, count: int, body: bytes | memoryview) -> int:
    return zlib.crc32(body, zlib.crc32(_HEAD.pack(label, count, 0)))


def _products(codes: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Multiply (n, WIDTH) int8 by (WIDTH, k), in blocks too small for BLAS threads.

    Threads would wait for busy cores.
    """
    size = max(1, _SINGLE_THREADED // (WIDTH * query.shape[1]))
    count = len(codes)
    blocks = np.zeros((-(-count // size) * size, WIDTH), np.float32)
    blocks[:count] = codes
    products: np.ndarray = (blocks.reshape(-1, size, WIDTH) @ query).reshape(-1, query.shape[1])[:count]
    return products

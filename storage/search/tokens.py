"""Token vectors for late interaction (ColBERT, Khattab & Zaharia 2020): reduced, quantised, packed, and held by label.

A model's token vectors are projected to 128 numbers by a fixed matrix that depends on nothing learned (Hadamard blocks
with pseudo-random signs, orthogonal rows: Johnson-Lindenstrauss) and kept as int8. Only tokens that carry content are
stored; each keeps its id, so that rare tokens can count more than frequent ones.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

WIDTH = 128
_STEP = 5.0 / WIDTH**0.5 / 127
"""One int8 step: five standard deviations of a unit vector's component fill the range."""
_ID_BYTES = 2
STOP_SHARE = 0.22
"""What a token without content (`the`, `?`) of a query weighs, as a share of the rarest token."""
MIN_CAPACITY = 65_536
_SINGLE_THREADED = 200_000


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one text: `ids` (n,) uint16, `vectors` (n, WIDTH) float32 unit rows, `content` (n,) bool."""

    ids: np.ndarray
    vectors: np.ndarray
    content: np.ndarray


def reduce_tokens(vectors: np.ndarray) -> np.ndarray:
    """(n, dim) token vectors of a model -> (n, WIDTH) float32 unit rows; cosines are kept to about ±0.05.

    The blocks of a vector, with their signs, are added; then a fast Walsh-Hadamard transform spreads each number over
    all, so that quantisation meets them alike. No matrix product: BLAS threads would wait on the cores of the model.
    """
    rows = unit(np.asarray(vectors, np.float32))
    count, dim = rows.shape
    blocks = -(-dim // WIDTH)
    padded = np.zeros((count, blocks * WIDTH), np.float32)
    padded[:, :dim] = rows
    reduced = (padded * _signs(blocks)).reshape(count, blocks, WIDTH).sum(1)
    half = 1
    while half < WIDTH:
        pairs = reduced.reshape(count, WIDTH // (2 * half), 2, half)
        reduced = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2).reshape(count, WIDTH)
        half *= 2
    return unit(reduced)


def unit(rows: np.ndarray) -> np.ndarray:
    """The rows at length 1; a row of zeros stays."""
    scaled: np.ndarray = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)
    return scaled


@cache
def _signs(blocks: int) -> np.ndarray:
    """±1 for each number: the same on every machine and in every version, since they come from a hash."""
    digest = hashlib.shake_256(b"thalweg token projection 1").digest(blocks * WIDTH // 8)
    signs: np.ndarray = np.unpackbits(np.frombuffer(digest, np.uint8)).astype(np.float32) * 2 - 1
    return signs


def pack(tokens: Tokens) -> str:
    """The content of a text as it travels and is stored: base64 of n ids (uint16) and n rows (int8).

    A text without content keeps all its tokens, so that it can be found.
    """
    chosen = tokens.content if tokens.content.any() else np.ones(len(tokens.ids), bool)
    codes = np.clip(np.rint(tokens.vectors[chosen] / _STEP), -127, 127).astype(np.int8)
    return base64.b64encode(tokens.ids[chosen].astype("<u2").tobytes() + codes.tobytes()).decode()


def unpack(packed: str) -> tuple[np.ndarray, np.ndarray]:
    """(n,) uint16 ids and (n, WIDTH) int8 rows. Raises ValueError for anything that `pack` did not write."""
    body = base64.b64decode(packed, validate=True)
    count, rest = divmod(len(body), _ID_BYTES + WIDTH)
    if rest:
        raise ValueError(f"{len(body)} bytes are no token vectors of {WIDTH} numbers")
    ids = np.frombuffer(body, "<u2", count)
    return ids, np.frombuffer(body, np.int8, offset=_ID_BYTES * count).reshape(count, WIDTH)


def _products(codes: np.ndarray, query: np.ndarray) -> np.ndarray:
    """(n, WIDTH) int8 times (WIDTH, k), in blocks that BLAS does not share out to threads: they would wait for busy cores."""
    size = max(1, _SINGLE_THREADED // (WIDTH * query.shape[1]))
    count = len(codes)
    blocks = np.zeros((-(-count // size) * size, WIDTH), np.float32)
    blocks[:count] = codes
    products: np.ndarray = (blocks.reshape(-1, size, WIDTH) @ query).reshape(-1, query.shape[1])[:count]
    return products


class TokenStore:
    """Token vectors by label, in memory. One thread adds and removes; any number score."""

    def __init__(self) -> None:
        self._codes = np.empty((MIN_CAPACITY, WIDTH), np.int8)
        self._ids = np.empty(MIN_CAPACITY, np.uint16)
        self._count = 0
        self._spans: dict[int, tuple[int, int]] = {}
        self._holding = np.zeros(65_536, np.int32)
        self._adding = threading.Lock()

    def __len__(self) -> int:
        return len(self._spans)

    @property
    def bytes(self) -> int:
        """Memory of what is held, without spare capacity."""
        return self._count * (_ID_BYTES + WIDTH)

    def __contains__(self, label: int) -> bool:
        return label in self._spans

    def length(self, label: int) -> int:
        """How many tokens are stored for a label; 0 when it is unknown."""
        return self._spans.get(label, (0, 0))[1]

    def add(self, packed: Iterable[tuple[int, str]]) -> None:
        """Make (label, packed tokens) available. A label that is there already keeps its own."""
        with self._adding:
            for label, text in packed:
                ids, codes = unpack(text)
                if label in self._spans or not len(ids):
                    continue
                stop = self._count + len(ids)
                self._reserve(stop)
                self._codes[self._count : stop] = codes
                self._ids[self._count : stop] = ids
                self._holding[np.unique(ids)] += 1
                self._spans[label] = (self._count, len(ids))  # last: scorers look up spans first
                self._count = stop

    def _reserve(self, count: int) -> None:
        """Scorers keep the arrays they hold; they are replaced, never resized."""
        if count > len(self._codes):
            capacity = max(count, len(self._codes) + len(self._codes) // 2)
            codes, ids = np.empty((capacity, WIDTH), np.int8), np.empty(capacity, np.uint16)
            codes[: self._count], ids[: self._count] = self._codes[: self._count], self._ids[: self._count]
            self._codes, self._ids = codes, ids

    def remove(self, labels: Sequence[int]) -> None:
        """Forget the labels: nothing of them is scored any more, and their numbers are overwritten."""
        with self._adding:
            for label in labels:
                start, length = self._spans.pop(label, (0, 0))
                if length:
                    self._holding[np.unique(self._ids[start : start + length])] -= 1
                    self._codes[start : start + length] = 0

    def weights(self, query: Tokens) -> np.ndarray:
        """(k,) what each token of a query counts, sum 1: inverse document frequency over all that is held."""
        count = max(1, len(self._spans))
        holding = self._holding[query.ids]
        rarity = np.log1p((count - holding + 0.5) / (holding + 0.5)).clip(0.0)
        weights = np.where(query.content, rarity, STOP_SHARE * np.log1p((count + 0.5) / 0.5))
        total = float(weights.sum())
        return weights / total if total > 0 else np.full(len(weights), 1 / max(1, len(weights)))

    def similarities(self, query: Tokens, labels: Sequence[int]) -> tuple[list[int], np.ndarray]:
        """The labels that are held, and for each (rows) the best cosine to each token of the query (columns)."""
        codes, spans = self._codes, self._spans
        known = [(label, span) for label in labels if (span := spans.get(label)) is not None]
        if not known or not len(query.ids):
            return [], np.empty((0, len(query.ids)), np.float32)
        codes = self._codes  # again, after the spans: whatever they name is in it
        starts = np.array([start for _, (start, _) in known], np.int64)
        lengths = np.array([length for _, (_, length) in known], np.int64)
        begins = np.cumsum(lengths) - lengths
        rows = np.arange(int(lengths.sum())) + np.repeat(starts - begins, lengths)
        cosines = _products(codes[rows], query.vectors.T * np.float32(_STEP))
        return [label for label, _ in known], np.maximum.reduceat(cosines, begins, axis=0)

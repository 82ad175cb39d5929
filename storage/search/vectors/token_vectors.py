"""Token vectors for late interaction (ColBERT, Khattab & Zaharia 2020): reduced, quantised and packed.

A model's token vectors are projected to 128 numbers by a fixed matrix that depends on nothing learned (Hadamard blocks
with pseudo-random signs, orthogonal rows: Johnson-Lindenstrauss) and kept as int8. Only tokens that carry content are
stored; each keeps its id, so that rare tokens can count more than frequent ones.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache

import numpy as np

WIDTH = 128
STEP = 5.0 / WIDTH**0.5 / 127
"""One int8 step: five standard deviations of a unit vector's component fill the range."""
_ID_BYTES = 2
STOP_SHARE = 0.22
"""What a token without content (`the`, `?`) of a query weighs, as a share of the rarest token."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one text.

    `ids` (n,) uint16, `vectors` (n, WIDTH) float32 unit rows, `content` (n,) bool.
    """

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
        lower, upper = pairs[:, :, 0], pairs[:, :, 1]
        difference = lower - upper
        lower += upper
        upper[:] = difference
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
    return pack_codes(tokens.ids[chosen], quantise(tokens.vectors[chosen]))


def quantise(vectors: np.ndarray) -> np.ndarray:
    """(n, WIDTH) unit rows as int8."""
    codes: np.ndarray = np.clip(np.rint(vectors / STEP), -127, 127).astype(np.int8)
    return codes


def pack_codes(ids: np.ndarray, codes: np.ndarray) -> str:
    """(n,) token ids and (n, WIDTH) int8 rows as `pack` writes them."""
    return base64.b64encode(ids.astype("<u2").tobytes() + codes.tobytes()).decode()


def unpack(packed: str) -> tuple[np.ndarray, np.ndarray]:
    """(n,) uint16 ids and (n, WIDTH) int8 rows. Raises ValueError for anything that `pack` did not write."""
    return unpack_body(base64.b64decode(packed, validate=True))


def unpack_body(body: bytes) -> tuple[np.ndarray, np.ndarray]:
    """As `unpack`, of the bytes themselves, as a store keeps them."""
    count, rest = divmod(len(body), _ID_BYTES + WIDTH)
    if rest:
        raise ValueError(f"{len(body)} bytes are not token vectors of {WIDTH} numbers")
    ids = np.frombuffer(body, "<u2", count)
    return ids, np.frombuffer(body, np.int8, offset=_ID_BYTES * count).reshape(count, WIDTH)

"""E9: a text as 1,024 bits, the majority of its trigrams' symbols; a wrong letter changes few."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np

BITS = 1024
_AT_ONCE = 255
"""This many symbols are counted in one byte each."""


@lru_cache(maxsize=16_384)
def _symbol(trigram: str) -> bytes:
    """The 1,024 bits of a trigram: BLAKE2b of it and of each of two numbers."""
    body = trigram.encode(errors="replace")
    return b"".join(hashlib.blake2b(body, person=b"thalweg E9 %d" % half).digest() for half in (0, 1))


def character_bits(text: str) -> np.ndarray:
    """(128,) uint8: bit by bit the majority of the trigrams' symbols; the first trigram breaks a tie.

    Case and the width of gaps do not count. A text without letters has the bits of an empty one.
    """
    folded = f" {' '.join(text.casefold().split())} "
    symbols = [_symbol(folded[start : start + 3]) for start in range(max(1, len(folded) - 2))]
    votes = np.zeros(BITS, np.int64)
    for start in range(0, len(symbols), _AT_ONCE):
        bits = np.unpackbits(np.frombuffer(b"".join(symbols[start : start + _AT_ONCE]), np.uint8))
        votes += bits.reshape(-1, BITS).sum(0, dtype=np.uint8)
    first = np.unpackbits(np.frombuffer(symbols[0], np.uint8)).astype(bool)
    return np.packbits((2 * votes > len(symbols)) | ((2 * votes == len(symbols)) & first))


def character_alignments(query: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(128,) bits and (n, 128) bits -> (n,) 1 - 2 · Hamming distance / 1,024."""
    different = np.bitwise_count(rows ^ query).sum(1, dtype=np.int64)
    aligned: np.ndarray = 1 - 2 * different / BITS
    return aligned

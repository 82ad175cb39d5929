"""A turn of a conversation: how long it is, and which number it gets."""

from __future__ import annotations

CHARACTERS_A_TOKEN = 4


def tokens_approx(content: str) -> int:
    """A quarter of the characters, rounded up: near enough for a budget, the same everywhere (valence.md 2)."""
    return -(-len(content) // CHARACTERS_A_TOKEN)


def next_sequence(exchange_count: int) -> int:
    """The number of the next exchange: the session's are 1..n without gaps, in the order of the log."""
    return exchange_count + 1

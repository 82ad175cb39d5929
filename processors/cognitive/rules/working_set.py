"""Working memory: ten items, and which of them goes when an eleventh comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

CAPACITY = 10
CRITICAL = 0.8
"""Items above it (.8 itself is not) are evicted only when there is nothing else."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item and its place. `logged` is where in the log it was last touched, which decides between equal times."""

    slot: int
    id: int
    content: str
    importance: float
    last_accessed: datetime
    created_at: datetime
    logged: tuple[int, int]


def victim(items: Sequence[Item]) -> Item:
    """The item to evict: the least recently touched one that is not critical.

    When all are critical, the least recently touched of all.
    """
    ordinary = [item for item in items if item.importance <= CRITICAL]
    return min(ordinary or items, key=lambda item: (item.last_accessed, item.logged))

"""Positions on the log, and the freshness token made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streams.errors import Refused


class Partition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class Position(NamedTuple):
    """Where one record lies; offsets of a partition are 0, 1, 2 … without holes on the SQLite log."""

    topic: str
    partition: int
    offset: int

    @property
    def at(self) -> Partition:
        return Partition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """The inverse of `str`. Raises ValueError."""
        topic, partition, offset = text.rsplit("/", 2)
        return cls(topic, int(partition), int(offset))


NOW = "now"
"""Said in place of a token: whatever was accepted so far."""


@dataclass(frozen=True)
class Freshness:
    """How far each partition must be applied before a reader sees a write: partition -> next offset."""

    next_offsets: Mapping[Partition, int] = field(default_factory=dict)

    @classmethod
    def after(cls, positions: Iterable[Position]) -> Freshness:
        """The token that covers all these records."""
        furthest: dict[Partition, int] = {}
        for position in positions:
            furthest[position.at] = max(furthest.get(position.at, 0), position.offset + 1)
        return cls(furthest)

    def merged(self, other: Freshness) -> Freshness:
        """Covers whatever either covers."""
        return Freshness(
            {at: max(self.next_offsets.get(at, 0), other.next_offsets.get(at, 0)) for at in {**self.next_offsets, **other.next_offsets}}
        )

    def __iter__(self) -> Iterator[tuple[Partition, int]]:
        return iter(self.next_offsets.items())

    def __bool__(self) -> bool:
        return bool(self.next_offsets)

    def to_json(self) -> dict[str, dict[str, int]]:
        """`{"<topic>": {"<partition>": <next offset>}}`, as every write answers it."""
        token: dict[str, dict[str, int]] = {}
        for at, offset in sorted(self.next_offsets.items()):
            token.setdefault(at.topic, {})[str(at.partition)] = offset
        return token

    @classmethod
    def from_json(cls, token: Any) -> Freshness:
        """Read a token that a caller sent. Raises Refused when it is not of the printed shape."""
        try:
            return cls(
                {
                    Partition(topic, int(partition)): _offset(offset)
                    for topic, partitions in token.items()
                    for partition, offset in partitions.items()
                }
            )
        except (AttributeError, TypeError, ValueError):
            raise Refused(
                'The freshness token is not of the form {"<topic>": {"<partition>": <next offset>}}; '
                "pass the `freshness` of a write's answer back unchanged."
            ) from None


def _offset(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(value)
    return value

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
    """The place of one record; on the SQLite log the offsets of a partition are 0, 1, 2 … without holes."""

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


UNCHANGED = "pass the `freshness` of a write's answer back unchanged."
NOW = "now"
"""In place of a token: everything that was accepted so far."""


@dataclass(frozen=True)
class Freshness:
    """The token of a write: a reader sees it once each partition is applied up to its next offset."""

    next_offsets: Mapping[Partition, int] = field(default_factory=dict)

    @classmethod
    def after(cls, positions: Iterable[Position]) -> Freshness:
        """The token that covers all these records."""
        furthest: dict[Partition, int] = {}
        for position in positions:
            furthest[position.at] = max(furthest.get(position.at, 0), position.offset + 1)
        return cls(furthest)

    def merged(self, other: Freshness) -> Freshness:
        """The token that covers what either token covers."""
        return Freshness(
            {
                at: max(self.next_offsets.get(at, 0), other.next_offsets.get(at, 0))
                for at in {**self.next_offsets, **other.next_offsets}
            }
        )

    def on_topic(self, topic: str) -> Freshness:
        """The part of the token that lies on one topic."""
        return Freshness({at: offset for at, offset in self if at.topic == topic})

    def __iter__(self) -> Iterator[tuple[Partition, int]]:
        return iter(self.next_offsets.items())

    def __bool__(self) -> bool:
        return bool(self.next_offsets)

    def to_json(self) -> dict[str, dict[str, int]]:
        """`{"<topic>": {"<partition>": <next offset>}}`, as in the answer of every write."""
        token: dict[str, dict[str, int]] = {}
        for at, offset in sorted(self.next_offsets.items()):
            token.setdefault(at.topic, {})[str(at.partition)] = offset
        return token

    @classmethod
    def from_json(cls, token: Any, partitions: Mapping[str, int] | None = None) -> Freshness:
        """Read a caller's token. Raises Refused when it has another shape, or names an unknown topic or partition.

        `partitions`: the number of partitions by topic. A token that names more is refused before it is walked.
        """
        try:
            if partitions is not None:
                _check_topics(token, partitions)
            read = {
                Partition(topic, int(number)): _offset(offset)
                for topic, named in token.items()
                for number, offset in named.items()
            }
        except (AttributeError, TypeError, ValueError):
            raise Refused(
                f'The freshness token is not of the form {{"<topic>": {{"<partition>": <next offset>}}}}; {UNCHANGED}'
            ) from None
        if partitions is not None:
            _check_numbers(read, partitions)
        return cls(read)


def _check_topics(token: Any, partitions: Mapping[str, int]) -> None:
    for topic, named in token.items():
        if topic not in partitions:
            raise Refused(
                f"The freshness token names the topic {str(topic)[:80]!r}, which this node does not follow; {UNCHANGED}"
            )
        if len(named) > partitions[topic]:
            raise Refused(
                f"The freshness token names {len(named)} partitions of {topic}, "
                f"which has {partitions[topic]}; {UNCHANGED}"
            )


def _check_numbers(named: Iterable[Partition], partitions: Mapping[str, int]) -> None:
    for topic, number in named:
        if not 0 <= number < partitions[topic]:
            raise Refused(
                f"The freshness token names the partition {number} of {topic}, "
                f"which has {partitions[topic]}; {UNCHANGED}"
            )


def _offset(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(value)
    return value

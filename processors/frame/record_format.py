"""Formats of records that carry no event envelope: what another producer writes on topics of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from processors.frame.domains import modules_of
from streams.errors import Poison
from streams.events import LoggedEvent
from streams.log.base import Record


@dataclass(frozen=True)
class RecordFormat:
    """The records of these topics, and how they become events. A domain declares them in `record_formats.FORMATS`."""

    topics: frozenset[str]
    decode: Callable[[Record, str], tuple[list[LoggedEvent], Poison | None]]
    """(record, the namespace of what carries none) -> its events, and why those that are missing cannot be read."""
    dead_letters: str
    """The topic whose dead-letter topic takes what cannot be read: these topics have none of their own."""


@cache
def record_formats() -> Mapping[str, RecordFormat]:
    """The format of each topic that has one, found in the `record_formats` of each domain."""
    return {
        topic: declared
        for module in modules_of("record_formats")
        for declared in module.FORMATS
        for topic in declared.topics
    }

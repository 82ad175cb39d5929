"""Progress marks: a derived record says how far its stage has processed its sources.

The mark is a pair of CloudEvents extension attributes, so that a record without facts can carry one too:
`ce_thalwegstage: embed` and `ce_thalwegsource: thalweg.memory.v1/3/118` (comma-separated when there are several);
the number is the next offset to be processed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from streams.errors import Poison
from streams.log.base import Record
from streams.positions import Position

STAGE, SOURCE = "thalwegstage", "thalwegsource"
MATERIALISE = "materialise"
"""The store's own name beside the stages; no record carries a mark of it."""


class ProgressMark(NamedTuple):
    """The statement that `stage` has processed everything below each of these next offsets."""

    stage: str
    sources: tuple[Position, ...]


def mark(stage: str, sources: Iterable[Position]) -> dict[str, str]:
    """The extension attributes of a mark."""
    return {STAGE: stage, SOURCE: ",".join(map(str, sources))}


def read_progress(record: Record) -> ProgressMark | None:
    """The mark of a record, or None. Raises Poison when it is malformed."""
    headers = dict(record.headers)
    stage, sources = headers.get(f"ce_{STAGE}"), headers.get(f"ce_{SOURCE}")
    if stage is None or sources is None:
        return None
    try:
        progress = ProgressMark(stage.decode(), tuple(Position.parse(text) for text in sources.decode().split(",")))
    except ValueError:
        raise Poison("The progress mark is not of the form topic/partition/next offset.") from None
    if progress.stage == MATERIALISE:
        raise Poison(f"A progress mark may not name {MATERIALISE!r}: the store keeps its own progress.")
    return progress

"""Positions and freshness tokens: what covers what, and what a token may say."""

from __future__ import annotations

import pytest

from streams.errors import Poison
from streams.log.base import Record
from streams.positions import Freshness, Partition, Position
from streams.progress import MATERIALISE, SOURCE, STAGE, mark, read_progress

HERE, THERE = Partition("a.topic", 0), Partition("a.topic", 1)


def marked(stage: str, *sources: Position) -> Record:
    headers = tuple((f"ce_{name}", value.encode()) for name, value in mark(stage, sources).items())
    return Record("derived", 0, 0, 0, b"n", b"{}", headers)


def test_a_token_covers_the_furthest_of_its_records_in_whatever_order_they_come() -> None:
    for offsets in ((1, 5, 3), (5, 3, 1)):
        assert dict(Freshness.after([Position(*HERE, offset) for offset in offsets])) == {HERE: 6}


def test_merged_tokens_cover_whatever_either_covers() -> None:
    one, other = Freshness({HERE: 5}), Freshness({HERE: 3, THERE: 2})
    assert dict(one.merged(other)) == dict(other.merged(one)) == {HERE: 5, THERE: 2}


def test_a_position_is_read_from_its_end_so_that_a_topic_may_hold_a_slash() -> None:
    position = Position("import/claude-code", 3, 118)
    assert Position.parse(str(position)) == position
    with pytest.raises(ValueError):
        Position.parse("no-position")


def test_a_mark_says_how_far_a_stage_is_and_none_speaks_for_the_store() -> None:
    progress = read_progress(marked("embed", Position(*HERE, 4), Position(*THERE, 2)))
    assert progress is not None and (progress.stage, len(progress.sources)) == ("embed", 2)
    with pytest.raises(Poison, match="materialise"):
        read_progress(marked(MATERIALISE, Position(*HERE, 4)))
    with pytest.raises(Poison, match="topic/partition"):
        read_progress(Record("derived", 0, 0, 0, b"n", b"{}", ((f"ce_{STAGE}", b"embed"), (f"ce_{SOURCE}", b"x"))))

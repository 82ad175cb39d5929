"""How far a reader is behind the end of the log."""

from __future__ import annotations

from streams.backlog import MAX_OBSERVATIONS, Backlog, LogEnds
from streams.positions import Partition

FIRST, SECOND = Partition("words", 0), Partition("words", 1)
OTHER = Partition("marks", 0)


def test_a_reader_at_the_end_lacks_nothing() -> None:
    ends = LogEnds()
    ends.observe({FIRST: 7}, 0.0)
    assert ends.backlog({FIRST: 7}.__getitem__, 100.0) == Backlog(0, 0.0)


def test_the_age_is_that_of_the_oldest_record_that_is_lacking_however_long_the_reader_has_not_been_at_the_end() -> None:
    ends = LogEnds()
    for second in range(60):  # a record comes every second, and the reader is always one short
        ends.observe({FIRST: second + 1}, float(second))
        assert ends.backlog(lambda at, reached=second: reached, float(second)) == Backlog(1, 0.0)
    assert ends.backlog(lambda at: 50, 59.0) == Backlog(10, 9.0)


def test_records_of_all_partitions_are_counted_and_the_oldest_of_any_is_told() -> None:
    ends = LogEnds()
    ends.observe({FIRST: 2, SECOND: 2, OTHER: 2}, 0.0)
    ends.observe({FIRST: 5, SECOND: 2, OTHER: 4}, 3.0)
    ends.observe({FIRST: 5, SECOND: 9, OTHER: 4}, 6.0)
    assert ends.backlog(lambda at: 2, 10.0) == Backlog(3 + 7 + 2, 7.0)
    assert ends.backlog(lambda at: 2, 10.0, topic="words") == Backlog(3 + 7, 7.0)
    assert ends.backlog({FIRST: 5, SECOND: 4, OTHER: 4}.__getitem__, 10.0) == Backlog(5, 4.0)


def test_a_backlog_of_the_start_counts_from_the_first_look_unless_its_age_is_known() -> None:
    ends = LogEnds()
    ends.observe({FIRST: 100, SECOND: 0}, 5.0)
    ends.observe({FIRST: 110, SECOND: 3}, 8.0)
    assert ends.backlog({FIRST: 20, SECOND: 3}.__getitem__, 9.0) == Backlog(90, 4.0)
    assert ends.backlog({FIRST: 20, SECOND: 3}.__getitem__, 9.0, age_at_start=lambda at: 7200.0) == Backlog(90, 7200.0)
    assert ends.backlog({FIRST: 100, SECOND: 0}.__getitem__, 9.0, age_at_start=lambda at: 7200.0) == Backlog(13, 1.0)


def test_what_is_remembered_is_bounded_and_the_recent_looks_stay_exact() -> None:
    ends = LogEnds()
    for second in range(10 * MAX_OBSERVATIONS):
        ends.observe({FIRST: second + 1}, float(second))
    now = float(10 * MAX_OBSERVATIONS - 1)
    assert ends.backlog(lambda at: 10 * MAX_OBSERVATIONS - 20, now) == Backlog(20, 19.0)
    records, seconds = ends.backlog(lambda at: MAX_OBSERVATIONS, now)
    assert records == 9 * MAX_OBSERVATIONS
    assert 0.94 * 9 * MAX_OBSERVATIONS < seconds <= 9 * MAX_OBSERVATIONS
    assert sum(len(known) for known, _ in ends._observations.values()) <= MAX_OBSERVATIONS


def test_a_log_that_begins_anew_is_not_compared_with_what_was_there_before() -> None:
    ends = LogEnds()
    ends.observe({FIRST: 100}, 0.0)
    ends.observe({FIRST: 3}, 10.0)
    assert ends.backlog(lambda at: 1, 11.0) == Backlog(2, 1.0)

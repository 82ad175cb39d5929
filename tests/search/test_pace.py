"""Long work pauses: for a moment always, and for a share of its time while a call runs that it does not answer."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from storage.search import pace
from storage.search.pace import LONGEST_S, MOMENT_S, SHARE, WORK_S, Pace, pausing


@dataclass
class FakeTime:
    """A clock that only the test and `sleep` move."""

    now: float = 100.0
    slept: list[float] = field(default_factory=list)

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr(pace, "time", fake)
    return fake


def paused(one: Pace, time: FakeTime, worked: float) -> list[float]:
    """How a thread pauses that has worked this long since its last pause."""
    one.pause()
    time.slept.clear()
    time.now += worked
    one.pause()
    return time.slept


def test_what_has_worked_for_a_while_pauses_for_a_moment(time: FakeTime) -> None:
    assert paused(Pace(), time, 1.1 * WORK_S) == [MOMENT_S]


def test_what_has_just_paused_works_on(time: FakeTime) -> None:
    assert paused(Pace(), time, 0.9 * WORK_S) == []


def test_while_a_call_runs_the_pause_is_a_share_of_the_work(time: FakeTime) -> None:
    one = Pace()
    with one.serving():
        assert paused(one, time, 0.0005) == [pytest.approx(SHARE * 0.0005)]
    assert paused(one, time, 0.0005) == [MOMENT_S]


def test_no_pause_is_longer_than_the_longest(time: FakeTime) -> None:
    one = Pace()
    with one.serving():
        assert paused(one, time, 1.0) == [LONGEST_S]


def test_two_calls_are_waited_for_until_the_last_has_ended(time: FakeTime) -> None:
    one = Pace()
    with one.serving():
        with one.serving():
            pass
        assert paused(one, time, 1.0) == [LONGEST_S]


def test_what_answers_a_call_does_not_wait_for_it(time: FakeTime) -> None:
    one = Pace()
    with one.serving(), one.answering():
        assert paused(one, time, 1.0) == [MOMENT_S]
    with one.serving():
        assert paused(one, time, 1.0) == [LONGEST_S]


def test_a_thread_that_answers_a_call_leaves_the_others_in_the_background(time: FakeTime) -> None:
    one, found = Pace(), list[list[float]]()
    with one.serving(), one.answering():
        other = threading.Thread(target=lambda: found.append(list(paused(one, time, 1.0))))
        other.start()
        other.join()
    assert found == [[LONGEST_S]]


def test_items_are_given_with_a_pause_after_each() -> None:
    seen: list[object] = []
    for item in pausing("ab", lambda: seen.append("pause")):
        seen.append(item)
    assert seen == ["a", "pause", "b", "pause"]

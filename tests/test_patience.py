"""What is promised within a time may be missed once in five tries, and no more."""

from __future__ import annotations

import pytest

from tests.patience import Tries, within


def outcome(*took: float, enough: int = 4) -> tuple[bool, int]:
    """Whether tries that take that long keep to less than a second, and how many were made."""
    left = list(took)
    try:
        within(1.0, lambda: left.pop(0), enough=enough)
    except AssertionError as failure:
        assert all(f"{seconds:.3f} s" in str(failure) for seconds in took[: len(took) - len(left)]), (
            "every try is reported"
        )
        return False, len(took) - len(left)
    return True, len(took) - len(left)


@pytest.mark.parametrize(
    ("took", "expected"),
    [
        ((0.1, 0.2, 0.3, 0.4, 9.0), (True, 4)),
        ((9.0, 0.1, 0.1, 0.1, 0.1), (True, 5)),
        ((0.1, 0.1, 0.1, 9.0, 0.1), (True, 5)),
        ((0.1, 0.1, 0.1, 9.0, 9.0), (False, 5)),
        ((9.0, 9.0, 0.1, 0.1, 0.1), (False, 2)),
        ((1.0, 1.0), (False, 2)),
    ],
)
def test_one_miss_in_five_is_luck_and_two_are_a_failure(took: tuple[float, ...], expected: tuple[bool, int]) -> None:
    assert outcome(*took) == expected


def test_where_a_try_costs_much_fewer_are_enough_until_one_misses() -> None:
    assert outcome(0.1, 9.0, enough=1) == (True, 1)
    assert outcome(9.0, 0.1, 0.1, 0.1, 0.1, enough=1) == (True, 5)
    assert outcome(9.0, 0.1, 0.1, 9.0, enough=1) == (False, 4)


def test_what_is_kept_is_reported_too(capsys: pytest.CaptureFixture[str]) -> None:
    tries = Tries("says why", enough=1)
    assert tries.are_needed
    tries.note(True, "because")
    assert not tries.are_needed and "says why: 0 of 1 tries missed it: []; kept: ['because']" in capsys.readouterr().out

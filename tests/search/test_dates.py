"""Dates that a question names, and how near a day is to them."""

from datetime import UTC, date, datetime

import pytest

from storage.search.ranking.dates import NamedDate, named_dates, nearness


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did Nora buy on 3 June, 2023?", [NamedDate(2023, 6, 3)]),
        ("the 21st of March", [NamedDate(None, 3, 21)]),
        ("on Sept. 4th 2025 and in October", [NamedDate(2025, 9, 4), NamedDate(None, 10, None)]),
        ("in August 2023", [NamedDate(2023, 8, None)]),
        ("since 2024-02-29, and 2024-03", [NamedDate(2024, 2, 29), NamedDate(2024, 3, None)]),
        ("what happened in 2022", [NamedDate(2022, None, None)]),
        ("You may march on; may I? 2023-13-01, 1234 apples", []),
        ("31 February 2023", [NamedDate(2023, 2, None)]),
    ],
)
def test_days_months_and_years_are_read_and_other_words_are_not(text: str, expected: list[NamedDate]) -> None:
    assert named_dates(text) == expected


def test_a_day_is_as_near_as_it_is_to_the_span_that_was_named() -> None:
    june = [NamedDate(2023, 6, None)]
    assert nearness(june, date(2023, 6, 30)) == 1
    assert nearness(june, date(2023, 7, 4)) == 0.5
    assert nearness([NamedDate(None, 12, 30)], date(2024, 1, 3)) == 0.5, "the nearest year counts where none is named"
    assert nearness([NamedDate(None, 2, 29)], date(2023, 3, 1)) == 0, "2023 has no such day, and other years are far"
    assert nearness([], date(2023, 7, 4)) == 0


def test_only_a_date_with_its_year_has_bounds() -> None:
    assert NamedDate(2023, 2, None).bounds() == (datetime(2023, 2, 1, tzinfo=UTC), datetime(2023, 3, 1, tzinfo=UTC))
    assert NamedDate(None, 2, None).bounds() is None
    assert NamedDate(9999, 12, 31).bounds() is None

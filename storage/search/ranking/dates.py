"""Dates that a question names, and how near a record's day is to them.

Examples: `on 3 June 2023`, `in August`, `2026-01-05`. Month names are English; ISO dates are read in any text. Nothing
is relative to now: `yesterday` names no date here.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, date, datetime, timedelta

HALVING_DAYS = 4
"""A record this many days off counts half: things are told some days after they happened."""
FAR_DAYS = 28
_MONTHS = {
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
}
_MONTHS["sept"] = 9
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>\d{4})-(?P<month>\d\d)(?:-(?P<day>\d\d))?\b",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+{_MONTH},?(?:\s+(?P<year>\d{{4}})\b)?",
        rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>\d{{4}})\b)?",
        rf"\b{_MONTH},?\s+(?:of\s+)?(?P<year>\d{{4}})\b",
        rf"\b(?:in|of|since|during|until|by|last|this|early|late|mid)[\s-]+{_MONTH}",
        r"\b(?:in|of|since|during)\s+(?P<year>(?:19|20)\d\d)\b",
    )
)


@dataclass(frozen=True, slots=True)
class NamedDate:
    """A day, a month or a year as it was named; `year` None: of any year."""

    year: int | None
    month: int | None
    day: int | None

    def span(self, year: int) -> tuple[date, date] | None:
        """The first and the last day in a year; None for a day that this year lacks."""
        try:
            first = date(year, self.month or 1, self.day or 1)
        except ValueError:
            return None
        if self.day is not None:
            return first, first
        month = self.month or 12
        return first, date(year, month, calendar.monthrange(year, month)[1])

    def days_off(self, day: date) -> int | None:
        """How many days lie between a day and what was named; 0 inside, None when it is not a date."""
        years = (self.year,) if self.year is not None else (day.year - 1, day.year, day.year + 1)
        spans = [span for year in years if (span := self.span(year)) is not None]
        return min((max((first - day).days, (day - last).days, 0) for first, last in spans), default=None)

    def bounds(self) -> tuple[datetime, datetime] | None:
        """From (inclusive) and before (exclusive) when, if the year is named; UTC. None for the last year there is."""
        span = self.span(self.year) if self.year is not None else None
        if span is None:
            return None
        first, last = (datetime(day.year, day.month, day.day, tzinfo=UTC) for day in span)
        return (first, last + timedelta(days=1)) if last.year < MAXYEAR else None


def named_dates(text: str) -> list[NamedDate]:
    """The dates in a text, each once."""
    return list(dict.fromkeys(found for _, found in places_of_dates(text)))


def places_of_dates(text: str) -> Iterator[tuple[int, NamedDate]]:
    """(where it begins, date) of each date in a text, by the form in which it is written."""
    taken: list[tuple[int, int]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            named = match.groupdict()
            year, month, day = named.get("year"), named.get("month"), named.get("day")
            number = None if month is None else int(month) if month.isdigit() else _MONTHS[month.lower()]
            found = NamedDate(int(year) if year else None, number, int(day) if day else None)
            if found.span(found.year or 2000) is not None:  # a leap year has every day
                taken.append(match.span())
                yield match.start(), found


def nearness(dates: Sequence[NamedDate], day: date) -> float:
    """1 for a day that was named, halved for every HALVING_DAYS that it is off; 0 from FAR_DAYS on."""
    off = min((days for named in dates if (days := named.days_off(day)) is not None), default=None)
    return 0.0 if off is None or off > FAR_DAYS else 0.5 ** (off / HALVING_DAYS)

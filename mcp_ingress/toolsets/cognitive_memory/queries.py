"""The queries of Cognitive Memory's resources and of its evaluation.

Parameters become SQL conditions here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import duckdb
import orjson

from streams.clock import format_time
from streams.errors import Refused

DAY: dict[str, Any] = {"type": "string", "description": "A UTC day, YYYY-MM-DD"}
DAYS_BACK: dict[str, Any] = {
    "type": "integer",
    "minimum": 1,
    "maximum": 36_500,
    "default": 30,
    "description": "Days to look back",
}
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass
class Conditions:
    """Conditions joined by AND, with their parameters. `add` ignores a None."""

    namespace: str
    _clauses: list[str] = field(default_factory=list)
    _values: list[Any] = field(default_factory=list)

    def add(self, clause: str, value: Any) -> Conditions:
        if value is not None:
            self._clauses.append(clause)
            self._values.append(value)
        return self

    @property
    def sql(self) -> str:
        return " AND ".join(["WHERE namespace = ?", *self._clauses])

    @property
    def values(self) -> list[Any]:
        return [self.namespace, *self._values]


def select(
    statement: str, conditions: Conditions, tail: str, *more: Any, before: Sequence[Any] = ()
) -> Callable[[duckdb.DuckDBPyConnection], list[dict[str, Any]]]:
    """A query that gives rows as plain JSON values: times with `Z`, JSON columns parsed.

    `before`, `more`: parameters of the statement and of the tail.
    """

    def query(cursor: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
        result = cursor.execute(f"{statement} {conditions.sql} {tail}", [*before, *conditions.values, *more])
        columns = [(column[0], str(column[1])) for column in result.description or ()]
        return [
            {name: plain(value, kind) for (name, kind), value in zip(columns, row, strict=True)}
            for row in result.fetchall()
        ]

    return query


def plain(value: Any, kind: str = "") -> Any:
    """A value of a row as JSON has it."""
    if isinstance(value, datetime):
        return format_time(value.replace(tzinfo=UTC))
    return orjson.loads(value) if kind == "JSON" and isinstance(value, str) else value


def day(text: str | None, name: str) -> date | None:
    """A UTC day. Raises Refused."""
    if text is None:
        return None
    try:
        if not _DAY.fullmatch(text):
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise Refused(f"The parameter `{name}` is {text[:80]!r}; a day of the form YYYY-MM-DD is expected.") from None


def after(found: date | None) -> datetime | None:
    """The first moment behind a day."""
    return None if found is None else datetime.combine(found, datetime.min.time()) + timedelta(days=1)


def start(found: date | None) -> datetime | None:
    """The first moment of a day."""
    return None if found is None else datetime.combine(found, datetime.min.time())


def since(now: datetime, days_back: int) -> datetime:
    """The moment this many days ago."""
    return now.astimezone(UTC).replace(tzinfo=None) - timedelta(days=days_back)

"""The arguments of journal_query: what they must be, and the search filter that they make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from processors.talos.rules.ontology import JOURNAL_ENTRY, LABELS
from storage.search.records.filter import Filter
from streams.errors import Refused

MAX_LIMIT = 100
ENTITY_TYPES = [*LABELS, JOURNAL_ENTRY]
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def search_filter(namespace: str, arguments: Mapping[str, Any]) -> Filter:
    """The filter that `entity_types`, `domains` and `time_range` ask for. Raises Refused for a wrong one."""
    created_from, created_before = _days(arguments.get("time_range") or {})
    return Filter(
        namespace,
        kinds=tuple(arguments.get("entity_types") or ()),
        toolsets=("talos",),
        domains=tuple(arguments.get("domains") or ()),
        created_from=created_from,
        created_before=created_before,
    )


def checked_limit(limit: int) -> int:
    """The limit, lowered to `MAX_LIMIT`. Refused below 1."""
    if limit < 1:
        raise Refused(f"The limit {limit} is below 1; it must be from 1 to {MAX_LIMIT}.")
    return min(limit, MAX_LIMIT)


def _days(time_range: Mapping[str, str]) -> tuple[datetime | None, datetime | None]:
    """First moment inside and first moment after the inclusive UTC days."""
    start, end = (_day(time_range, name) for name in ("start", "end"))
    if start and end and start > end:
        raise Refused(f"The time range ends on {end}, before it starts on {start}.", code="invalid_time_range")
    created_from = None if start is None else datetime.combine(start, time.min, UTC)
    created_before = (
        None if end is None or end == date.max else datetime.combine(end + timedelta(days=1), time.min, UTC)
    )
    return created_from, created_before


def _day(time_range: Mapping[str, str], name: str) -> date | None:
    text = time_range.get(name)
    if text is None:
        return None
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise Refused(f"The time_range.{name} {text[:40]!r} is not a calendar date YYYY-MM-DD.", code="invalid_time_range")

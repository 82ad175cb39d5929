"""The values in JSON, however deep: every text and number, every list, and what does not say when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

VOLATILE = {
    *("freshness", "latency_ms", "search_latency_ms", "embedding_latency_ms", "execution_time_ms", "timestamp"),
    *("created_at", "floor_used", "decided_at", "activity_level", "scheduler"),
    *("duration_ms", "last_duration_ms", "last_run", "abort_latency_ms", "elapsed_seconds", "time_in_state_ms"),
}
"""Fields that say when, or how long it took."""


def strings(value: Any) -> Iterator[str | int]:
    """Every text and whole number in an answer, names of fields too."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from strings(name)
            yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield value


def lists(value: Any, path: str = "") -> Iterator[tuple[str, bool]]:
    """Every list in an answer by its path, and whether something is in it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from lists(inner, f"{path}.{name}")
    elif isinstance(value, list):
        yield path, bool(value)
        for inner in value:
            yield from lists(inner, path)


def steady(value: Any) -> Any:
    """An answer without what says when."""
    if isinstance(value, dict):
        return {name: steady(inner) for name, inner in value.items() if name not in VOLATILE}
    return [steady(inner) for inner in value] if isinstance(value, list) else value

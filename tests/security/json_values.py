"""The values in JSON: every text and number, however deep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


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
